"""Tests that a partition is removed only if its group is stable without it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.unsubscribed import ReadTopics, is_unsubscribed, read_topics
from streaming.events import TopicsNamed
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import GroupMetadata
from tests.streaming.groups import advanced, at, formed, joined, member, metadata, modern_member

ORDERS = frozenset({"orders"})


def commits(names: list[tuple[str, str]]) -> pa.Table:
    """Return the columns with the group and topic of each commit."""
    groups, topics = [group for group, _ in names], [topic for _, topic in names]
    return pa.table([pa.array(groups, pa.string()), pa.array(topics, pa.string())], names=["group_id", "topic"])


@pytest.mark.parametrize(
    ("group", "topic", "has_left", "why"),
    [
        (None, "old", False, "rule 1: a group that uses assign() has no membership records"),
        (ReadTopics("Empty", ORDERS), "old", False, "rule 2: no member is alive, which is when lag is needed most"),
        (ReadTopics("PreparingRebalance", ORDERS), "old", False, "rule 2: the next owner is not decided yet"),
        (ReadTopics("Dead", ORDERS), "old", False, "rule 2: a dead group is not stable"),
        (ReadTopics("Stable", None), "old", False, "rule 3: the subscription could not be decoded"),
        (ReadTopics("Stable", ORDERS), "orders", False, "rule 4: subscribed"),
        (ReadTopics("Stable", ORDERS), "old", True, "rule 5: Burrow 854, lag that grows without end"),
        (ReadTopics("Stable", frozenset()), "old", True, "rule 5: stable, and subscribes to no topic"),
    ],
)
def test_partitions_are_removed_by_the_rules(group: ReadTopics | None, topic: str, has_left: bool, why: str) -> None:
    groups = {} if group is None else {"g": group}
    assert is_unsubscribed(commits([("g", topic)]), groups).to_pylist() == [has_left], why


GROUPS = st.dictionaries(
    st.sampled_from("gh"),
    st.builds(
        ReadTopics,
        st.sampled_from(["Stable", "Empty"]),
        st.none() | st.frozensets(st.sampled_from(["a", "b"])),
    ),
)


@given(st.lists(st.tuples(st.sampled_from("ghi"), st.sampled_from("abc"))), GROUPS)
def test_rows_in_bulk_equal_rows_one_by_one(names: list[tuple[str, str]], groups: dict[str, ReadTopics]) -> None:
    alone = [is_unsubscribed(commits([name]), groups)[0].as_py() for name in names]
    assert is_unsubscribed(commits(names), groups).to_pylist() == alone


def snapshot(group_metadata: GroupMetadata | None, state: str = "Stable") -> GroupSnapshot:
    """Return a group as of one record."""
    return GroupSnapshot("g", state=state, position=at(0), classic=group_metadata)


NAMED = TopicsNamed(at(6), {"id": "old"})
READ_BADLY = replace(member("b"), subscription=None)


@pytest.mark.parametrize(
    ("group", "expected", "why"),
    [
        (
            snapshot(metadata(1, [member("a", {"orders": [0], "old": [1]}), member("b", topics=("payments",))])),
            ReadTopics("Stable", frozenset({"orders", "old", "payments"})),
            "the subscription may have changed since the assignment: both count until the next generation",
        ),
        (
            snapshot(metadata(1, [member("a"), READ_BADLY])),
            ReadTopics("Stable", None),
            "one subscription is undecodable",
        ),
        (
            snapshot(metadata(1, [replace(member("a"), assignment=None)])),
            ReadTopics("Stable", None),
            "one assignment is undecodable",
        ),
        (snapshot(None, "Seen"), ReadTopics("Seen", None), "a group of a type whose members are not read"),
        (
            snapshot(metadata(1, [member("a")], protocol_type="connect")),
            ReadTopics("Stable", None),
            "Kafka Connect's workers do not share topics",
        ),
        (
            advanced([*formed(0), NAMED]),
            ReadTopics("Stable", frozenset({"orders", "old"})),
            "KIP-848: its subscription and its assignment",
        ),
        (advanced(formed(0)), ReadTopics("Stable", None), "KIP-848: it has partitions of a topic without a name yet"),
        (
            advanced([*formed(0), NAMED, joined(9, member=modern_member((), regex="o.*"))]),
            ReadTopics("Stable", None),
            "KIP-848: the topics of its regular expression are unknown",
        ),
        (snapshot(metadata(2), "Empty"), ReadTopics("Empty", frozenset()), "all members have left"),
    ],
)
def test_the_topics_of_a_group_come_from_its_last_record(group: GroupSnapshot, expected: ReadTopics, why: str) -> None:
    assert read_topics(group) == expected, why
