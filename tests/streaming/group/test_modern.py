"""Tests of groups with server-side assignment (KIP-848, share, streams).

Records are replayed as the coordinator does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.events import (
    CONSUMER,
    SHARE,
    STREAMS,
    DecodeFailed,
    GroupVanished,
    LogEvent,
    Position,
    RegexResolved,
    TopicMetadata,
    TopicsNamed,
    TopicsSampled,
)
from streaming.events.from_records import log_event
from streaming.group.modern import ModernGroup, recount_members
from streaming.group.not_known import not_known
from streaming.group.snapshot import (
    ASSIGNING,
    DEAD,
    EMPTY,
    GONE,
    RECONCILING,
    STABLE,
    UNKNOWN,
    GroupSnapshot,
    GroupTotals,
    Resume,
)
from streaming.protocol import decode
from streaming.protocol.layouts import CONSUMER_GROUP_PARTITION_METADATA
from tests.bench.encoder import record_key
from tests.streaming.groups import (
    advanced,
    at,
    current,
    emptied,
    epoch,
    formed,
    joined,
    left,
    modern_member,
    target,
    target_epoch,
    tombstoned,
    written,
)

STATES = [
    ([joined(0), epoch(1, 1)], ASSIGNING, "epoch 1, with the targets of epoch 0"),
    (
        [joined(0), epoch(1, 1), target(2), target_epoch(3, 1)],
        RECONCILING,
        "targets exist, but no member has its target yet",
    ),
    (formed(0), STABLE, "the only member has its target"),
    ([*formed(0, 3), current(5, number=2)], RECONCILING, "the member is one epoch behind"),
    (
        [*formed(0, 3), current(5, number=3, state="UnrevokedPartitions")],
        RECONCILING,
        "the member has to revoke a partition",
    ),
    ([*formed(0, 3), current(5, number=3, state="UnreleasedPartitions")], RECONCILING, "the member waits for others"),
    ([*formed(0, 3), joined(5, "n"), epoch(6, 4)], ASSIGNING, "a member joined, without a target yet"),
    ([*formed(0, 3), *left(5), epoch(8, 4)], EMPTY, "the last member left"),
    ([*formed(0, 3), tombstoned(5)], DEAD, "deleted"),
    ([epoch(0)], EMPTY, "an epoch without members"),
    ([epoch(0), target(1)], UNKNOWN, "a target for a member whose record was compacted"),
    ([epoch(0), current(1)], UNKNOWN, "a current assignment without its member's record"),
    ([epoch(0), current(1), joined(2)], ASSIGNING, "the member's record arrives"),
    ([joined(0), target(1), current(2)], UNKNOWN, "the epoch record is missing"),
    ([*formed(0, group_type=SHARE)], STABLE, "ShareGroup: its state only depends on whether it has members"),
    ([joined(0, group_type=SHARE), epoch(1, 1, SHARE)], STABLE, "the same before it has targets"),
    ([epoch(0, 1, SHARE)], EMPTY, "a share group without members"),
    ([*formed(0, group_type=STREAMS)], UNKNOWN, "StreamsGroup: no record shows whether its topology is ready"),
    ([epoch(0, 1, STREAMS)], EMPTY, "a streams group without members"),
]


@pytest.mark.parametrize(("events", "state", "why"), STATES, ids=[why for *_, why in STATES])
def test_the_state_follows_from_the_records_as_in_the_coordinator(
    events: Sequence[LogEvent], state: str, why: str
) -> None:
    """`ConsumerGroup.maybeUpdateGroupState`. A state that records cannot show is Unknown."""
    assert advanced(events).state == state, why


TOTALS = [
    (formed(0, 9), GroupTotals(), 9, "rule 2: events before the first epoch are unknown"),
    ([*formed(0, 3), joined(5, "n"), epoch(6, 4)], GroupTotals(), 4, "rule 4: no assignment of this epoch yet"),
    (
        [*formed(0, 3), joined(5, "n"), epoch(6, 4), target_epoch(7, 4)],
        GroupTotals(rebalances=1),
        4,
        "rule 4: a member joined",
    ),
    ([*formed(0, 3), *left(5), epoch(8, 4)], GroupTotals(empty_transitions=1), 4, "rule 4: the last member left"),
    (
        [*formed(0, 3), joined(5, "n"), epoch(6, 7), target_epoch(7, 7)],
        GroupTotals(rebalances=1),
        7,
        "rule 4: the records do not show whether the epochs 4 to 6 had assignments",
    ),
    ([*formed(0, 3), epoch(5, 2)], GroupTotals(incarnations=2), 2, "rule 5: its tombstone was compacted"),
    ([*formed(0, 3), tombstoned(5), *formed(9, 1)], GroupTotals(incarnations=2), 1, "rule 5: recreated"),
    (
        [written(0, 5), tombstoned(1, append_of=2), *formed(2, 5), joined(7, "n"), epoch(8, 6), target_epoch(9, 6)],
        GroupTotals(rebalances=1),
        6,
        "rule 6: upgraded at its generation; then the member that caused it joins",
    ),
    (
        [*formed(0, 5), tombstoned(5, append_of=6), written(6, 5), written(7, 6)],
        GroupTotals(rebalances=1),
        6,
        "rule 6: downgraded at its epoch; then the classic members rebalance",
    ),
    (
        [emptied(0, 5), tombstoned(1, append_of=2), *formed(2, 1)],
        GroupTotals(),
        1,
        "rule 6: a KIP-848 member joins an empty classic group, which starts at epoch 1",
    ),
    (
        [epoch(0, 5), tombstoned(1, append_of=2), emptied(2, 0), written(3, 1)],
        GroupTotals(rebalances=1),
        1,
        "rule 6: a classic member joins an empty KIP-848 group",
    ),
    (
        [epoch(0, 5, STREAMS), tombstoned(1, append_of=3), emptied(3, 0), written(4, 1)],
        GroupTotals(rebalances=1),
        1,
        "rule 6: a classic member joins an empty streams group; its topology's tombstone is in between",
    ),
    (
        [epoch(0, 5, STREAMS), tombstoned(1, append_of=4), written(4, 6)],
        GroupTotals(incarnations=2),
        6,
        "a streams group, with a record of a different group in between",
    ),
    (
        [written(0, 5), tombstoned(1, append_of=3), *formed(3, 6)],
        GroupTotals(incarnations=2),
        6,
        "not the next record: deleted, and recreated with a different type",
    ),
    (
        [written(0, 5), tombstoned(1, append_of=2), written(2, 6)],
        GroupTotals(incarnations=2),
        6,
        "the same type: recreated",
    ),
    (
        [emptied(0, 5), tombstoned(1), *formed(2, 1)],
        GroupTotals(incarnations=2),
        1,
        "the next record, but of a later append: an operator deleted the classic group",
    ),
    (
        [*formed(0, 5), tombstoned(5), written(6, 1)],
        GroupTotals(incarnations=2),
        1,
        "the next record, but of a later append: an operator deleted the KIP-848 group",
    ),
    (
        [*formed(0, 5, SHARE), tombstoned(5, append_of=6), written(6, 1)],
        GroupTotals(incarnations=2),
        1,
        "Kafka has no downgrade from a share group",
    ),
]


@pytest.mark.parametrize(("events", "totals", "generation_id", "why"), TOTALS, ids=[why for *_, why in TOTALS])
def test_the_totals_and_the_epoch_of_a_group(
    events: Sequence[LogEvent], totals: GroupTotals, generation_id: int, why: str
) -> None:
    snapshot = advanced(events)
    assert (snapshot.totals, snapshot.generation_id) == (totals, generation_id), why
    assert snapshot.unsettled_skips == (), "an epoch without a record was compacted, so nothing must be proven"


def test_a_static_member_that_restarts_is_the_same_member_with_a_new_id() -> None:
    """`replaceStaticMember` replaces the three entries of the old id in one append, in the same epoch."""
    static = modern_member(instance_id="i")
    before = [joined(0, "old", static), epoch(1), target(2, "old"), target_epoch(3), current(4, "old")]
    after = advanced([*before, *left(5, "old"), joined(8, "new", static), target(9, "new"), current(10, "new")])
    assert after.state == STABLE
    assert after.totals == GroupTotals()
    assert after.modern is not None
    assert {member_id: one.group_instance_id for member_id, one in after.modern.members.items()} == {"new": "i"}


def test_a_tombstone_of_an_unknown_entry_changes_nothing() -> None:
    """Compaction keeps a tombstone for a day after the deleted record.

    Before, the tombstone of the topic names changed a dead group, and also a classic group, to an Unknown group.
    """
    key = record_key(CONSUMER_GROUP_PARTITION_METADATA, groupId="g")
    _, names = log_event(decode(key, None), at(6)) or ("", None)
    assert isinstance(names, TopicsNamed)
    for known in (advanced([*formed(0), tombstoned(5)]), advanced([written(5, 3)])):
        for deletion in (*left(6), names):
            assert advanced([deletion], known) == msgspec.structs.replace(known, position=deletion.position)
    assert advanced([names]) == GroupSnapshot("g")


def test_subscriptions_are_topic_names_and_the_topics_of_regular_expressions() -> None:
    by_name, by_regex = modern_member(["a", "b"]), modern_member([], regex="x.*")
    events = [joined(0, "m", by_name), joined(1, "n", by_regex), epoch(2)]
    unresolved = advanced(events)
    assert unresolved.subscribed_topics() == ("a", "b")
    resolved = advanced([RegexResolved(at(3), "x.*", ("x1", "b"))], unresolved)
    assert resolved.subscribed_topics() == ("a", "b", "x1")
    assert resolved.modern is not None
    assert resolved.modern.topics_of("n") == ("b", "x1")
    assert advanced([RegexResolved(at(4), "x.*", None)], resolved).subscribed_topics() == ("a", "b")


def named(sampled_at_ms: int, **topics: str | None) -> TopicsSampled:
    """Return topics of two partitions with their ids, as in feedback from the driver.

    None means that a topic is absent.
    """
    return TopicsSampled(
        {
            topic: TopicMetadata(2 if topic_id else None, sampled_at_ms, topic_id=topic_id)
            for topic, topic_id in topics.items()
        }
    )


def names_of(snapshot: GroupSnapshot) -> dict[str, str]:
    """Return names by topic id."""
    assert snapshot.modern is not None
    return snapshot.modern.topic_names


def test_topic_ids_get_names_from_samples_and_from_records_of_older_coordinators() -> None:
    group = advanced(formed(0))
    assert group.modern is not None
    assert group.modern.unnamed_topic_ids() == {"id"}
    assert names_of(advanced([named(9, orders="id")], group)) == {"id": "orders"}
    assert names_of(advanced([TopicsNamed(at(9), {"id": "orders"})], group)) == {"id": "orders"}


def test_a_deleted_topic_keeps_its_name_until_a_recreated_topic_has_it() -> None:
    known = advanced([*formed(0), named(9, orders="id")])
    deleted = advanced([named(10, orders=None)], known)
    assert names_of(deleted) == {"id": "orders"}
    recreated = advanced([named(11, orders="new")], deleted)
    assert names_of(recreated) == {"new": "orders"}, "two topics with one name would give one row for two partitions"
    assert recreated.modern is not None
    assert recreated.modern.unnamed_topic_ids() == {"id"}


def test_names_of_unused_topics_are_removed() -> None:
    known = advanced([*formed(0), named(9, orders="id"), target(10, held=(("other", (0,)),))])
    without = advanced([current(11, held=()), target(12, held=()), named(13, orders="new")], known)
    assert names_of(without) == {"new": "orders"}


@pytest.mark.parametrize("events", [formed(0), [written(0, 3)], [epoch(0, 1, STREAMS)]])
def test_a_group_that_brokers_no_longer_list_is_gone_until_its_next_record(events: Sequence[LogEvent]) -> None:
    """An outage longer than `delete.retention.ms` loses the tombstone. Only the listing shows the end."""
    alive = advanced(events)
    assert alive.position is not None
    last = alive.position.offsets_topic_offset
    gone = advanced([GroupVanished(last, 99_000)], alive)
    assert (gone.state, gone.totals, gone.subscribed_topics(), gone.member_count()) == (GONE, alive.totals, (), 0)
    assert gone.position == Position(0, last, 99_000), "gone since the time of the listing"
    assert advanced([GroupVanished(last - 1, 99)], alive) == alive, "rule 9: a record came after the listing"
    back = advanced([written(20, 1)], gone)
    assert (back.state, back.totals.incarnations) == (STABLE, 2)
    dead = advanced([tombstoned(20)], gone)
    assert advanced([GroupVanished(20, 99)], dead).state == DEAD


# Rule 10: the log is read again from its start. Counts continue from the tables of an earlier checkpoint.


@st.composite
def logs(draw: st.DrawFn) -> list[LogEvent]:
    """Draw a group's log: classic and KIP-848 records and tombstones, in any order."""
    makers = st.sampled_from(
        [
            lambda offset, number: [written(offset, number)],
            lambda offset, number: [emptied(offset, number)],
            lambda offset, _: [tombstoned(offset)],
            formed,
            lambda offset, number: [epoch(offset, number)],
            lambda offset, _: [joined(offset, "n")],
            lambda offset, _: left(offset),
            lambda offset, number: [target(offset), target_epoch(offset + 1, number)],
            lambda offset, number: [current(offset, number=number)],
        ]
    )
    steps = draw(st.lists(st.tuples(makers, st.integers(0, 5), st.integers(0, 2)), max_size=10))
    offset, events = 0, []
    for make, number, gap in steps:
        made = make(offset + gap, number)
        events += made
        offset += gap + len(made)
    return events


@given(logs(), st.data())
def test_a_rebuilt_group_equals_a_group_without_interruption(events: list[LogEvent], data: st.DataObject) -> None:
    """`rebuild` starts a new checkpoint with the old tables. Members are read again, and nothing counts twice."""
    uninterrupted = advanced(events)
    until = data.draw(st.integers(0, len(events)))
    then = advanced(events[:until])
    if then.position is None:
        return
    resume = Resume(then.position.offsets_topic_offset, then.group_type, then.state, then.generation_id, then.totals)
    rebuilt = advanced(events, GroupSnapshot("g", totals=then.totals, resume=resume))
    assert msgspec.structs.replace(rebuilt, resume=None, unsettled_skips=()) == msgspec.structs.replace(
        uninterrupted, unsettled_skips=()
    )


@given(logs(), st.data())
def test_after_compaction_the_values_of_the_tables_stay(events: list[LogEvent], data: st.DataObject) -> None:
    until = data.draw(st.integers(1, len(events))) if events else 0
    then = advanced(events[:until])
    if then.position is None:
        return
    resume = Resume(then.position.offsets_topic_offset, then.group_type, then.state, then.generation_id, then.totals)
    rebuilt = advanced([tombstoned(500)], GroupSnapshot("g", totals=then.totals, resume=resume))
    assert (rebuilt.state, rebuilt.totals, rebuilt.generation_id) == (DEAD, then.totals, then.generation_id)


@given(logs())
def test_any_log_of_any_types_keeps_only_the_entries_of_one_incarnation(events: list[LogEvent]) -> None:
    """A deleted group has no members. Entries without a member record are counted separately."""
    for end in range(len(events) + 1):
        snapshot = advanced(events[:end])
        if snapshot.is_over:
            assert (snapshot.classic, snapshot.modern) == (None, None)
        if (modern := snapshot.modern) is not None:
            assert snapshot.group_type == CONSUMER
            assert modern.strays == {*modern.targets, *modern.currents} - modern.members.keys()
            assert modern == recount_members(modern), "the running count equals the count at the end"


def test_a_rebalance_of_a_thousand_members_reads_each_record_once() -> None:
    """The rebalance has 3,000 records. Reading every member for each record would be three million steps."""
    ids = [f"{number:04}" for number in range(1_000)]
    offsets = iter(range(10_000))
    joins = [joined(next(offsets), member_id) for member_id in ids]
    records = chain(
        joins,
        [epoch(next(offsets), 3)],
        [target(next(offsets), member_id) for member_id in ids],
        [target_epoch(next(offsets), 3)],
        [current(next(offsets), member_id) for member_id in ids],
    )
    snapshot = advanced(records)
    assert (snapshot.state, snapshot.member_count()) == (STABLE, 1_000)
    assert snapshot.modern is not None
    assert snapshot.modern.not_known() == ()


@pytest.mark.parametrize(
    ("group", "missing"),
    [
        (ModernGroup(), ("group_epoch",)),
        (ModernGroup(epoch=1, strays=frozenset({"m"})), ("member_metadata",)),
        (ModernGroup(epoch=1, members={"m": modern_member()}), ("current_assignment",)),
        (
            ModernGroup(epoch=1, assignment_epoch=1, members={"m": modern_member()}),
            ("current_assignment", "target_assignment"),
        ),
        (ModernGroup(epoch=2, assignment_epoch=1), ()),
    ],
)
def test_missing_records_are_named(group: ModernGroup, missing: tuple[str, ...]) -> None:
    assert group.not_known() == missing


@pytest.mark.parametrize(
    ("wishes", "assignor"),
    [
        ([], None),
        ([None, None], None),
        ([None, "range"], "range"),
        (["uniform", "range", "uniform"], "uniform"),
        (["uniform", "range"], None),
    ],
)
def test_the_groups_assignor_has_the_most_votes(wishes: list[str | None], assignor: str | None) -> None:
    """`ModernGroup.computePreferredServerAssignor`. In a tie any of them is possible, so none is named."""
    members = {str(number): modern_member(server_assignor=wish) for number, wish in enumerate(wishes)}
    assert ModernGroup(members=members).server_assignor() == assignor


def test_positions_are_kept_for_member_records_too() -> None:
    """Rule 1 applies to every record: a batch that is read again adds nothing."""
    once = advanced(formed(0))
    assert advanced(formed(0), once) == once
    assert once.position == Position(0, 4, 4_000)


def undecodable(offsets_topic_offset: int, entry: str, entry_of: str = "", group_type: str = CONSUMER) -> LogEvent:
    """Return an event for a record with an undecodable value."""
    return DecodeFailed(at(offsets_topic_offset), group_type, entry, entry_of)


@pytest.mark.parametrize(
    ("events", "state", "why"),
    [
        ([*formed(0), undecodable(5, "current", "m")], UNKNOWN, "the member's present assignment is unknown"),
        ([*formed(0), undecodable(5, "current", "m"), current(6)], STABLE, "its next record shows the assignment"),
        (
            [*formed(0), undecodable(5, "member", "n"), epoch(6, 4)],
            UNKNOWN,
            "a group with an undecodable member is not empty",
        ),
        ([undecodable(0, "member", "n"), epoch(1)], UNKNOWN, "Kafka 3.7's early access: only epochs can be decoded"),
        (
            [*formed(0), undecodable(5, "current", "m"), *left(6), epoch(9, 4)],
            EMPTY,
            "all records of the member were deleted",
        ),
        ([*formed(0), undecodable(5, "group"), epoch(6, 5)], ASSIGNING, "the next epoch is decodable"),
        ([*formed(0), undecodable(5, "group"), tombstoned(6)], DEAD, "the tombstone ends the group"),
    ],
)
def test_an_undecodable_record_makes_the_state_unknown_until_the_next_record_of_its_kind(
    events: Sequence[LogEvent], state: str, why: str
) -> None:
    """Rule 2: the last value is not used.

    Before, a decodable epoch with quarantined members looked like an Empty group.
    """
    assert advanced(events).state == state, why


def test_a_classic_group_is_unknown_from_a_quarantined_record_to_the_next_record() -> None:
    known = advanced([written(0, 4)])
    lost = advanced([undecodable(1, "group", group_type="classic")], known)
    assert (lost.state, lost.generation_id, lost.classic, lost.totals) == (UNKNOWN, None, None, known.totals)
    assert not_known(lost) == ("unreadable_record",)
    found = advanced([written(2, 9)], lost)
    assert (found.state, found.totals) == (STABLE, GroupTotals()), "the number of rebalances in between is unknown"
