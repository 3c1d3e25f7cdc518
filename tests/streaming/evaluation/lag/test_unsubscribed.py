"""Tests that a partition is removed only if its group provably no longer reads it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.group_update import GROUP_CODEC, GroupState, apply_batch
from streaming.evaluation.lag.unsubscribed import STOPPED_IN_STAGES_MS, ReadTopics, is_unsubscribed, read_topics
from streaming.events import GroupEvent, TopicsNamed
from streaming.events.compression import compressed, decompressed
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import GroupMetadata
from tests.streaming.groups import (
    SECOND_MS,
    advanced,
    at,
    current,
    emptied,
    epoch,
    formed,
    joined,
    left,
    member,
    metadata,
    modern_member,
    target,
    target_epoch,
    tombstoned,
    written,
)

ORDERS = frozenset({"orders"})
COMMITTED_MS = 1_000_000
LONG_AFTER_MS = COMMITTED_MS + STOPPED_IN_STAGES_MS + 1


def commits(names: list[tuple[str, str]]) -> pa.Table:
    """Return the columns with the group, topic and time of each commit."""
    groups, topics = [group for group, _ in names], [topic for _, topic in names]
    columns = [pa.array(groups, pa.string()), pa.array(topics, pa.string()), pa.array([COMMITTED_MS] * len(names))]
    return pa.table(columns, names=["group_id", "topic", "commit_timestamp_ms"])


@pytest.mark.parametrize(
    ("group", "topic", "has_left", "why"),
    [
        (None, "old", False, "rule 1: a group that uses assign() has no membership records"),
        (ReadTopics("Empty", None), "old", False, "rule 2: the topics of the last members are unknown"),
        (ReadTopics("Empty", ORDERS, LONG_AFTER_MS), "orders", False, "rule 2: lag is needed most without members"),
        (ReadTopics("Empty", ORDERS, LONG_AFTER_MS), "old", True, "rule 2: not read for a long time"),
        (ReadTopics("Empty", ORDERS, LONG_AFTER_MS - 1), "old", False, "rule 2: the members may have left in stages"),
        (ReadTopics("Empty", ORDERS, COMMITTED_MS - 1), "old", False, "rule 2: offsets were reset for an Empty group"),
        (ReadTopics("PreparingRebalance", ORDERS), "old", False, "rule 3: the next owner is not decided yet"),
        (ReadTopics("Dead", ORDERS), "old", False, "rule 3: a dead group has no subscriptions"),
        (ReadTopics("Assigning", ORDERS), "old", True, "rules 3 and 6: KIP-848, the records have the subscriptions"),
        (ReadTopics("Reconciling", ORDERS), "old", True, "rules 3 and 6: KIP-848, the records have the subscriptions"),
        (ReadTopics("Reconciling", ORDERS), "orders", False, "rules 3 and 5: KIP-848, subscribed"),
        (ReadTopics("Stable", None), "old", False, "rule 4: the subscription could not be decoded"),
        (ReadTopics("Stable", ORDERS), "orders", False, "rule 5: subscribed"),
        (ReadTopics("Stable", ORDERS), "old", True, "rule 6: Burrow 854, lag that grows without end"),
        (ReadTopics("Stable", frozenset()), "old", True, "rule 6: stable, and subscribes to no topic"),
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
        st.sampled_from([None, COMMITTED_MS, LONG_AFTER_MS]),
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
        (snapshot(metadata(2), "Empty"), ReadTopics("Empty", None), "all members have left"),
    ],
)
def test_the_topics_of_a_group_come_from_its_last_record(group: GroupSnapshot, expected: ReadTopics, why: str) -> None:
    assert read_topics(group) == expected, why


LONG = STOPPED_IN_STAGES_MS // SECOND_MS
"""A time without records, as a difference of offsets. A shorter time does not prove that a topic is no longer read."""
BOTH, ONE = [member("a", {"orders": [0]}), member("b", {"old": [0]}, topics=("old",))], [member("a", {"orders": [0]})]
MODERN = [
    *(joined(0), joined(1, "n", modern_member(("old",))), epoch(2), target(3), target(4, "n", (("id2", (0,)),))),
    *(target_epoch(5), current(6), current(7, "n", (("id2", (0,)),))),
    TopicsNamed(at(8), {"id": "orders", "id2": "old"}),
]
"""A KIP-848 group with two members. `n` reads only `old`."""


@pytest.mark.parametrize(
    ("events", "topics", "empty_at", "why"),
    [
        ([written(0, 1, BOTH), emptied(LONG, 2)], {"orders", "old"}, LONG, "all members left at once"),
        (
            [written(0, 1, BOTH), written(LONG, 2, ONE), emptied(2 * LONG, 3)],
            {"orders"},
            2 * LONG,
            "the group was Stable without `old` for a long time",
        ),
        (
            [written(0, 1, BOTH), written(LONG, 2, ONE), emptied(LONG + 9, 3)],
            {"orders", "old"},
            LONG + 9,
            "the members left one after the other, so nobody decided not to read `old`",
        ),
        (
            [written(0, 1, BOTH), written(LONG, 2, ONE), emptied(2 * LONG, 3), emptied(2 * LONG + 7, 5)],
            {"orders"},
            2 * LONG,
            "a member joined the Empty group and never synced",
        ),
        ([emptied(0, 7)], None, None, "the members were never seen"),
        ([written(0, 1, ONE), emptied(9, 2)], None, None, "it is unknown what the group read a minute ago"),
        (
            [written(0, 1, ONE), emptied(LONG, 2), tombstoned(LONG + 1), emptied(LONG + 2, 1)],
            None,
            None,
            "created again",
        ),
        ([written(0, 1, [READ_BADLY]), emptied(LONG, 2)], None, None, "the subscription is undecodable"),
        (
            [*MODERN, *left(LONG + 9), *left(LONG + 12, "n"), epoch(LONG + 15, 5)],
            {"orders", "old"},
            LONG + 14,
            "KIP-848: the state is Stable between the records of one append",
        ),
        (
            [
                *(*MODERN, *left(LONG + 9, "n"), epoch(LONG + 12, 4)),
                *(target_epoch(LONG + 13, 4), current(LONG + 14, number=4)),
                *(*left(2 * LONG + 14), epoch(2 * LONG + 17, 5)),
            ],
            {"orders"},
            2 * LONG + 16,
            "KIP-848: the group was Stable without `old` for a long time",
        ),
    ],
)
@pytest.mark.parametrize("is_one_batch", [True, False])
def test_an_empty_group_has_the_topics_that_its_members_read_before_it_became_empty(
    events: list[GroupEvent], topics: set[str] | None, empty_at: int | None, why: str, *, is_one_batch: bool
) -> None:
    """A stopped service had "records lost" in a topic that it had not read for days. So the last topics are stored.

    Each batch decodes the stored state, as after a restart.
    """
    record = GroupState(GroupSnapshot("g"))
    for batch in [events] if is_one_batch else [[event] for event in events]:
        record = GROUP_CODEC.decode(*GROUP_CODEC.encode(apply_batch(record, batch, []).record))
    read = read_topics(record.snapshot, record.last_read)
    assert (read.state, read.topics) == ("Empty", None if topics is None else frozenset(topics)), why
    assert read.empty_since_ms == (None if empty_at is None else empty_at * SECOND_MS), why


def test_a_group_state_of_version_1_has_no_last_topics() -> None:
    """The upgrade of a checkpoint: it is unknown what the members of an Empty group read. So nothing is excluded."""
    record = apply_batch(GroupState(GroupSnapshot("g")), [written(0, 1, ONE), emptied(LONG, 2)], []).record
    stored = msgspec.msgpack.decode(decompressed(GROUP_CODEC.encode(record)[1]))
    assert stored.pop("last_read")
    migrated = GROUP_CODEC.decode(1, compressed(msgspec.msgpack.encode(stored)))
    assert migrated == msgspec.structs.replace(record, last_read=None)
