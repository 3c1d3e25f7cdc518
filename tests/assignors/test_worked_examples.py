"""Compares the worked examples of books and blogs with Kafka's own assignments and with ours.

`tests/golden/worked-examples.jsonl.gz` has the assignments of Kafka 4.2.0's own classes for the same groups
(`tests/assignors/oracle/regenerate.py`). Some published tables are wrong, because their authors computed them by hand:
one continues at the wrong member, one lists a partition twice, and one lists a partition that does not exist. `note`
names the first two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from assignors import BUILT_IN, TopicPartition
from assignors.what_if.scenario import parse_group
from tests.assignors.golden import golden_lines


@dataclass(frozen=True)
class Example:
    """A published example and Kafka's assignment. ``t1p0`` is partition 0 of topic t1.

    ``owned`` has the partitions that the members owned before. It is empty for a new group.
    """

    name: str
    strategy: str
    partitions: Mapping[str, int]
    subscriptions: Mapping[str, str]
    assignment: Mapping[str, str]
    owned: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    def as_scenario(self) -> dict[str, Any]:
        """Return the group in the JSON form that the oracle reads."""
        members = [
            {
                "member_id": member_id,
                "topics": topics.split(),
                "owned": list(map(list, parse_partitions(self.owned.get(member_id, "")))),
                "generation": 1 if member_id in self.owned else -1,
            }
            for member_id, topics in self.subscriptions.items()
        ]
        return {"id": self.name, "strategy": self.strategy, "partitions": dict(self.partitions), "members": members}


def parse_partitions(spelled: str) -> tuple[TopicPartition, ...]:
    """Read ``t0p1 t1p0``."""
    pairs = (word.split("p") for word in spelled.split())
    return tuple((topic, int(number)) for topic, number in pairs)


FIVE_AND_SEVEN = {"t1": 5, "t2": 7}
THREE_OF_FIVE_READ_T1 = {"C1": "t1 t2", "C2": "t1 t2", "C3": "t1 t2", "C4": "t2", "C5": "t2"}
TWO_THREE_FOUR = {"t0": 2, "t1": 3, "t2": 4}
THREE_READ_T0 = {"C0": "t0", "C1": "t0", "C2": "t0"}

EXAMPLES = [
    Example(
        "range: three of five members read t1",
        "range",
        FIVE_AND_SEVEN,
        THREE_OF_FIVE_READ_T1,
        {
            "C1": "t1p0 t1p1 t2p0 t2p1",
            "C2": "t1p2 t1p3 t2p2 t2p3",
            "C3": "t1p4 t2p4",
            "C4": "t2p5",
            "C5": "t2p6",
        },
        note="each topic gives its extra partitions to C1 and C2",
    ),
    Example(
        "roundrobin: three of five members read t1",
        "roundrobin",
        FIVE_AND_SEVEN,
        THREE_OF_FIVE_READ_T1,
        {
            "C1": "t1p0 t1p3 t2p3",
            "C2": "t1p1 t1p4 t2p4",
            "C3": "t1p2 t2p0 t2p5",
            "C4": "t2p1 t2p6",
            "C5": "t2p2",
        },
        note="the published table is wrong: it gives t2p0 to C1; Kafka continues after C2, which got t1p4",
    ),
    Example(
        "range: 5 partitions over 3 members",
        "range",
        {"t0": 5},
        THREE_READ_T0,
        {"C0": "t0p0 t0p1", "C1": "t0p2 t0p3", "C2": "t0p4"},
    ),
    Example(
        "roundrobin: 5 partitions over 3 members",
        "roundrobin",
        {"t0": 5},
        THREE_READ_T0,
        {"C0": "t0p0 t0p3", "C1": "t0p1 t0p4", "C2": "t0p2"},
    ),
    Example(
        "range: 2 topics with 4 partitions over 2 members",
        "range",
        {"t0": 4, "t1": 4},
        {"C0": "t0 t1", "C1": "t0 t1"},
        {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t0p3 t1p2 t1p3"},
        note="an even division has no extra partitions",
    ),
    Example(
        "range: 2 topics with 4 partitions over 3 members",
        "range",
        {"t0": 4, "t1": 4},
        {"C0": "t0 t1", "C1": "t0 t1", "C2": "t0 t1"},
        {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t1p2", "C2": "t0p3 t1p3"},
        note="topic skew: C0 has the extra partition of both topics",
    ),
    Example(
        "roundrobin: 7 partitions over 3 members",
        "roundrobin",
        {"t0": 7},
        THREE_READ_T0,
        {"C0": "t0p0 t0p3 t0p6", "C1": "t0p1 t0p4", "C2": "t0p2 t0p5"},
    ),
    Example(
        "sticky: topics with 2, 3 and 4 partitions",
        "sticky",
        TWO_THREE_FOUR,
        dict.fromkeys(("C0", "C1", "C2"), "t0 t1 t2"),
        {"C0": "t0p0 t1p1 t2p1", "C1": "t0p1 t1p2 t2p2", "C2": "t1p0 t2p0 t2p3"},
        note="a published sticky table lists t1p1 twice; each partition has one owner",
    ),
    Example(
        "sticky: topics with 2, 3 and 4 partitions, after C1 left",
        "sticky",
        TWO_THREE_FOUR,
        dict.fromkeys(("C0", "C2"), "t0 t1 t2"),
        {"C0": "t0p0 t0p1 t1p1 t2p1 t2p2", "C2": "t1p0 t1p2 t2p0 t2p3"},
        owned={"C0": "t0p0 t1p1 t2p1", "C2": "t1p0 t2p0 t2p3"},
        note="C0 and C2 keep their partitions and share those of C1",
    ),
    Example(
        "sticky: topics with 2, 3 and 4 partitions, different subscriptions",
        "sticky",
        TWO_THREE_FOUR,
        {"C0": "t0", "C1": "t0 t1", "C2": "t0 t1 t2"},
        {"C0": "t0p0 t0p1", "C1": "t1p0 t1p1 t1p2", "C2": "t2p0 t2p1 t2p2 t2p3"},
        note="only C2 reads t2, so no other assignment is more even",
    ),
    Example(
        "roundrobin: C2 does not read t0",
        "roundrobin",
        {"t0": 3, "t1": 3},
        {"C0": "t0 t1", "C1": "t0 t1", "C2": "t1"},
        {"C0": "t0p0 t0p2 t1p2", "C1": "t0p1 t1p0", "C2": "t1p1"},
        note="C0 gets t0p2 instead of C2, and nothing compensates C2 later; 2 partitions each are possible",
    ),
]

EVERY_EXAMPLE = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


def sets_of_partitions(assignment: Mapping[str, str]) -> dict[str, set[TopicPartition]]:
    """Return the partitions of each member of a spelled assignment."""
    return {member_id: set(parse_partitions(spelled)) for member_id, spelled in assignment.items()}


@EVERY_EXAMPLE
def test_an_example_lists_each_partition_of_its_topics_once(example: Example):
    """Two published tables break this rule."""
    listed = [one for spelled in example.assignment.values() for one in parse_partitions(spelled)]
    existing = [(topic, number) for topic, count in example.partitions.items() for number in range(count)]
    assert sorted(listed) == existing


@EVERY_EXAMPLE
def test_kafka_assigns_as_the_example_shows(example: Example):
    """The golden file has Kafka's assignment for the same scenario."""
    (golden,) = (line for line in golden_lines("worked-examples") if line["id"] == example.name)
    kafka = golden.pop("kafka")
    assert golden == example.as_scenario(), "the example changed: run tests/assignors/oracle/regenerate.py"
    assert {member_id: set(map(tuple, owned)) for member_id, owned in kafka.items()} == sets_of_partitions(
        example.assignment
    )


@EVERY_EXAMPLE
def test_our_strategy_assigns_as_the_example_shows(example: Example):
    """Then users can check the monitor against the books that they know."""
    found = BUILT_IN[example.strategy].assign(parse_group(example.as_scenario()))
    assert {member_id: set(owned) for member_id, owned in found.members.items()} == sets_of_partitions(
        example.assignment
    ), example.note
