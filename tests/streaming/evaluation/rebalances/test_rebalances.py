"""Tests of rebalances: kinds, causes, joined and left members, moves and necessary moves. Each row has its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import assignor_named
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.rebalances.partition_movement import PartitionMovement
from streaming.evaluation.rebalances.rebalances import Rebalance
from streaming.events import (
    DecodeFailed,
    GroupEvent,
    GroupMetadataWritten,
    GroupVanished,
    Position,
    RegexResolved,
    TopicMetadata,
    TopicsNamed,
    TopicsSampled,
)
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import ClassicMember
from tests.streaming.groups import (
    SECOND_MS,
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
    sampled,
    target,
    target_epoch,
    tombstoned,
    written,
)
from tests.streaming.polled.answers import answered, classic, classic_member

FRESH = GroupState(GroupSnapshot("g"))
RANGE = (assignor_named("range"),)
NAMED = TopicsSampled({"orders": TopicMetadata(9, 99 * SECOND_MS, topic_id="id")})


def rebalances_of(events: Sequence[GroupEvent], record: GroupState = FRESH) -> list[Rebalance]:
    """Return the rebalances of the events. Feedback arrives in separate batches, with names last."""
    rebalances: list[Rebalance] = []
    for _, batch in groupby([*events, NAMED], key=lambda event: isinstance(event, TopicsSampled | GroupVanished)):
        update = apply_batch(record, list(batch), RANGE)
        rebalances += [one.rebalance for one in update.rebalances]
        record = update.record
    return rebalances


def last(*events: GroupEvent) -> Rebalance:
    """Return the last rebalance of the events."""
    return rebalances_of(events)[-1]


def a(*held: int, **more: object) -> ClassicMember:
    """Return member `a` with these partitions of `orders`."""
    return member("a", {"orders": held}, **more)  # type: ignore[arg-type]


def b(*held: int, **more: object) -> ClassicMember:
    """Return member `b` with these partitions of `orders`."""
    return member("b", {"orders": held}, **more)  # type: ignore[arg-type]


def cooperative(offsets_topic_offset: int, generation_id: int, *members: ClassicMember) -> GroupEvent:
    """Return a generation made by a cooperative leader."""
    return GroupMetadataWritten(
        at(offsets_topic_offset), metadata(generation_id, members, protocol="cooperative-sticky")
    )


@pytest.mark.parametrize(
    ("events", "kind", "why"),
    [
        ([written(0, 7)], "first_seen", "the time before the first record is unknown"),
        ([emptied(0, 7)], "first_seen", "the same for an empty group"),
        ([written(0, 7), written(1, 8)], "rebalance", "the next generation"),
        ([written(0, 7), written(1, 9)], "rebalance", "a join in between never synced"),
        ([written(0, 7), emptied(1, 8)], "became_empty", "the last member left"),
        ([written(0, 7), emptied(1, 7)], "became_empty", "in the same generation: written by an old coordinator"),
        ([emptied(0, 7), emptied(1, 9)], "became_empty", "a member joined, never synced, and left"),
        ([emptied(0, 7), written(1, 8)], "rebalance", "a member joined"),
        ([written(0, 7), tombstoned(1)], "deleted", "the tombstone of the group"),
        ([written(0, 7), tombstoned(1), tombstoned(2)], "deleted", "the end is reported once"),
        ([written(0, 7), tombstoned(1), written(2, 8)], "created", "a record after the tombstone, with any generation"),
        ([written(0, 7), written(1, 2)], "created", "a lower generation: the tombstone was compacted"),
        (
            [written(0, 7), written(1, 7, [member("x")])],
            "created",
            "other members in the same generation: the tombstone was compacted",
        ),
        ([written(0, 7), tombstoned(1, append_of=2), *formed(2, 7)], "upgraded", "a KIP-848 group in the next record"),
        ([written(0, 7), tombstoned(1, append_of=3), *formed(3, 7)], "created", "not the next record: a new group"),
        ([*formed(0), tombstoned(5, append_of=6), written(6, 3)], "downgraded", "a downgrade to a classic group"),
        ([written(0, 7), *formed(1, 8)], "created", "a different group type without a tombstone: it was compacted"),
        (
            [written(0, 7, [a(0, instance_id="i")]), written(1, 7, [b(0, instance_id="i")])],
            "static_rejoin",
            "the same instance with a new member id, in the same generation",
        ),
    ],
)
def test_kinds(events: list[GroupEvent], kind: str, why: str) -> None:
    assert last(*events).kind == kind, why
    rebalances_by_batch, record = [], FRESH
    for event in [*events, NAMED]:
        update = apply_batch(record, [event], RANGE)
        rebalances_by_batch += update.rebalances
        record = update.record
    assert rebalances_by_batch[-1].rebalance.kind == kind, f"{why}, one record a batch"


@pytest.mark.parametrize(
    ("events", "rows", "why"),
    [
        ([written(0, 7), written(1, 7)], 1, "a repeated record without a change"),
        ([tombstoned(0)], 0, "the tombstone of an unknown group"),
        ([written(0, 7), GroupVanished(0, 9)], 1, "no record shows that the group is gone"),
        ([epoch(0), joined(1), epoch(2, 4)], 1, "empty, then an epoch without targets yet"),
        ([*formed(0)], 1, "an epoch is one rebalance: neither its number nor the end of reconciliation adds one"),
        (
            [*formed(0), current(5, number=3, state="UnrevokedPartitions"), current(6)],
            1,
            "a member moves to its target",
        ),
        (
            [*formed(0), joined(5, "n"), epoch(6, 4), target(7, "n", ()), target_epoch(8, 4)],
            2,
            "the next epoch is a second rebalance",
        ),
    ],
)
def test_events_without_a_row(events: list[GroupEvent], rows: int, why: str) -> None:
    assert len(rebalances_of(events)) == rows, why


BEFORE = written(0, 1, [a(0, 1), b(2, 3)])
ON_BOTH = {"topics": ["orders", "sales"]}


@pytest.mark.parametrize(
    ("before", "after", "causes", "why"),
    [
        (BEFORE, [a(0, 1, 2, 3)], ["member_gone"], "left, timed out or fenced: the log shows no difference"),
        (BEFORE, [a(0, 1), b(2), member("c", {"orders": [3]})], ["member_joined"], "one more member joined"),
        (
            BEFORE,
            [a(0, 1), member("c", {"orders": [2, 3]})],
            ["member_gone", "member_joined"],
            "a member was replaced: it left first",
        ),
        (BEFORE, [a(0, 1), b(2, 3)], ["unexplained"], "the records show no cause"),
        (BEFORE, [a(0, 1), b(2, 3, **ON_BOTH)], ["subscription_changed"], "b subscribes to one more topic"),
        (BEFORE, [a(0, 1, 4), b(2, 3, 5)], ["metadata_changed"], "partitions without an earlier owner: the topic grew"),
        (
            BEFORE,
            [a(0, 1), b(2)],
            ["unexplained"],
            "one partition is not assigned, and no record shows whether the topic shrank",
        ),
        (
            written(0, 1, [a(0), b(2, 3)]),
            [a(0, 1), b(2, 3)],
            ["unexplained"],
            "partition 1 existed before, because 2 and 3 did: it was only unassigned",
        ),
        (written(0, 1, [a(), b()]), [a(0), b(1)], ["metadata_changed"], "the topic was created meanwhile"),
        (
            written(0, 1, [a(0, 1, instance_id="i"), b(2, 3)]),
            [member("a2", {"orders": [0, 1]}, instance_id="i"), b(2, 3)],
            ["unexplained"],
            "a static member is the same with a new member id",
        ),
        (
            BEFORE,
            [a(0, 1, 2, 3, **ON_BOTH)],
            ["member_gone", "subscription_changed"],
            "all proven causes are in the set",
        ),
    ],
)
def test_causes(before: GroupEvent, after: list[ClassicMember], causes: list[str], why: str) -> None:
    rebalance = last(before, written(1, 2, after))
    assert list(rebalance.causes or ()) == causes, why
    assert rebalance.primary_cause == causes[0]


def test_a_strategy_change_comes_before_all_other_causes() -> None:
    """A rolling change of strategy ends in a generation in which the last member returns."""
    rebalance = last(BEFORE, cooperative(1, 2, a(0, 1), member("c", {"orders": [2, 3]})))
    assert rebalance.causes == ("strategy_changed", "member_gone", "member_joined")
    assert (rebalance.previous_protocol, rebalance.protocol) == ("range", "cooperative-sticky")


GONE, GONE_AGAIN = sampled(1_500, orders=None), sampled(2_500, orders=3)
CLAIMED = [("orders", number) for number in range(4)]


@pytest.mark.parametrize(
    ("events", "samples", "why"),
    [
        ([BEFORE, written(1, 2, [a(), b()])], [GONE], "range: the topic was deleted, and the group has no partitions"),
        ([BEFORE, written(1, 2, [a(0, 1), b(2)])], [GONE_AGAIN], "range: created again with three partitions"),
        (
            [cooperative(0, 1, a(0, 1), b(2, 3)), cooperative(1, 2, a(owned=CLAIMED[:2]), b(owned=CLAIMED[2:]))],
            [GONE],
            "cooperative-sticky: the topic was deleted",
        ),
        (
            [
                cooperative(0, 1, a(0, 1), b(2, 3)),
                cooperative(1, 2, a(owned=CLAIMED[:2]), b(owned=CLAIMED[2:])),
                cooperative(2, 3, a(0, 1), b(2, 3)),
            ],
            [GONE, GONE_AGAIN],
            "cooperative-sticky: created again",
        ),
    ],
)
@pytest.mark.parametrize("at_record", [1, 2])
def test_a_sample_does_not_change_a_row(
    events: list[GroupEvent], samples: list[GroupEvent], why: str, at_record: int
) -> None:
    """Before, the rows of a monitor that followed the log differed from the rows of a monitor that caught up.

    A sample before or after the record of the rebalance changed causes, moves and unowned partitions.
    """
    followed = [*events[:at_record], *samples, *events[at_record:]]
    assert rebalances_of(followed) == rebalances_of(events), why


def test_the_records_do_not_show_why_partitions_are_no_longer_assigned() -> None:
    """Rule 6. The topic was deleted, or the leader left its partitions without an owner."""
    row = last(BEFORE, written(1, 2, [a(), b()]))
    assert row.causes == ("unexplained",)
    found = row.movement
    assert (found.moved_partitions, found.fewest_moves, len(found.unowned)) == (0, None, 4)


def test_partitions_that_return_to_their_owners_are_no_cooperative_followup() -> None:
    """Rule 5. The topic was deleted and created again. Before, the cause was `cooperative_followup`."""
    deleted = cooperative(1, 2, a(owned=CLAIMED[:2]), b(owned=CLAIMED[2:]))
    rounds = [cooperative(0, 1, a(0, 1), b(2, 3)), deleted]
    assert last(*rounds, cooperative(2, 3, a(0, 1), b(2, 3))).causes == ("unexplained",)
    again = cooperative(2, 3, a(), b())  # the members join again at once, because they gave up their partitions
    assert last(*rounds, again, cooperative(3, 4, a(0, 1), b(2, 3))).causes == ("unexplained",)
    assert last(*rounds, again, cooperative(3, 4, a(0, 1, 4), b(2, 3))).causes == ("metadata_changed",)
    assert last(*rounds, cooperative(2, 3, a(0, 1, 2), b(3))).causes == ("cooperative_followup",)


def test_partitions_of_a_member_that_timed_out_are_no_cooperative_followup() -> None:
    """Rule 5. A leader of kafka-python 3.0.12 left them without an owner for one round, and withheld another partition.

    Before, the cause was `cooperative_followup`, although the withheld partition returned to its owner.
    """
    timed_out = cooperative(1, 2, a(0, owned=CLAIMED[:2]), b())
    rounds = [cooperative(0, 1, a(0, 1), b(), member("c", {"orders": [2, 3]})), timed_out]
    assert last(*rounds).movement.withheld == (("orders", 1),)
    assert last(*rounds).movement.unowned == (("orders", 1), ("orders", 2), ("orders", 3))
    assert last(*rounds, cooperative(2, 3, a(0, 1), b(2, 3))).causes == ("unexplained",)
    assert last(*rounds, cooperative(2, 3, a(0), b(1, 2, 3))).causes == ("cooperative_followup",)


def test_a_deleted_topic_of_a_kip_848_group_leaves_no_partitions_without_an_owner() -> None:
    """The coordinator knows the topics. A monitor that catches up does not know the name of a deleted topic."""
    known = TopicsSampled({"orders": TopicMetadata(2, 4_500, topic_id="id")})
    gone = TopicsSampled({"orders": TopicMetadata(None, 20_000)})
    without = [epoch(5, 4), target(6, "m", ()), target_epoch(7, 4)]
    followed, caught_up = ([*formed(0), *samples, *without, gone] for samples in ([known], []))
    assert {last(*events).movement for events in (followed, caught_up)} == {
        PartitionMovement(moved_partitions=0, fewest_moves=0, is_exact=True)
    }


def test_a_topic_of_a_kip_848_group_that_was_created_again_has_new_partitions() -> None:
    """The targets contain topic ids. Before, the partitions counted as needless moves with the cause `unexplained`."""

    def two_targets(offsets_topic_offset: int, topic_id: str, of_a: int, of_n: int) -> list[GroupEvent]:
        held = [target(offsets_topic_offset, "a", ((topic_id, (of_a,)),))]
        return [*held, target(offsets_topic_offset + 1, "n", ((topic_id, (of_n,)),))]

    joins = [joined(1, "a"), joined(2, "n"), epoch(3, 3), *two_targets(4, "old", 0, 1), target_epoch(6, 3)]
    again = [epoch(8, 4), *two_targets(9, "id", 1, 0), target_epoch(11, 4)]
    sampled_before = TopicsSampled({"orders": TopicMetadata(2, 6_500, topic_id="old")})
    cases = {
        "followed, on Kafka 4.1": [*joins, sampled_before, *again],
        "followed, on Kafka 4.0": [
            *[TopicsNamed(at(0), {"old": "orders"}), *joins, sampled_before],
            *[TopicsNamed(at(7), {"id": "orders"}), *again],
        ],
        "caught up, on Kafka 4.1": [*joins, *again],
    }
    for why, events in cases.items():
        row = rebalances_of(events)[-1]
        assert row.causes == ("metadata_changed",), why
        assert row.movement == PartitionMovement(moved_partitions=0, fewest_moves=0, is_exact=True), why
        assert row.changes[0].assigned == (("orders", 1),), why


@pytest.mark.parametrize(
    ("named", "revoked", "why"),
    [
        ([TopicsNamed(at(0), {"old": "orders"})], "orders", "the records contain the name of the old topic"),
        ([TopicsSampled({"orders": TopicMetadata(1, 4_500, topic_id="old")})], "orders", "a sample shows the old name"),
        ([], "old", "the monitor has never seen the name of the old topic"),
    ],
)
def test_a_revoked_partition_of_a_topic_that_was_created_again_has_the_name_of_the_topic(
    named: list[GroupEvent], revoked: str, why: str
) -> None:
    """TABLES.md promises the name if it is known. Before, the row contained the id of the old topic."""
    formed_on_old = [*named, joined(1, "m"), epoch(2, 3), target(3, "m", (("old", (0,)),)), target_epoch(4, 3)]
    names = [TopicsNamed(at(5), {"id": "orders"})]
    again = [epoch(6, 4), target(7, "m", (("id", (0,)),)), target_epoch(8, 4)]
    row = rebalances_of([*formed_on_old, *named, *names, *again])[-1]
    assert row.causes == ("metadata_changed",), why
    assert [(change.revoked, change.assigned) for change in row.changes] == [(((revoked, 0),), (("orders", 0),))], why


GENERATIONS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 3), max_size=4, unique=True),
        st.lists(st.integers(0, 3), max_size=4, unique=True),
        st.lists(st.integers(0, 3), max_size=2, unique=True),
        st.sampled_from([None, 2, 3, 4]),
    ),
    min_size=2,
    max_size=5,
)


@given(GENERATIONS, st.sampled_from(["range", "cooperative-sticky"]))
def test_rows_do_not_depend_on_samples(
    generations: list[tuple[list[int], list[int], list[int], int | None]], protocol: str
) -> None:
    """Live and caught-up tables are equal, whatever the samples show."""
    records: list[GroupEvent] = []
    followed: list[GroupEvent] = []
    for number, (of_a, of_b, claimed, count) in enumerate(generations):
        members = a(*of_a, owned=[("orders", at) for at in claimed]), b(*of_b)
        records.append(GroupMetadataWritten(at(number), metadata(number, members, protocol=protocol)))
        followed += [records[-1], sampled(number * SECOND_MS + 500, orders=count)]
    assert rebalances_of(followed) == rebalances_of(records)


def test_changed_members_are_listed_with_lost_and_gained_partitions() -> None:
    before = written(0, 1, [a(0, 1, instance_id="i"), b(2, 3), member("d", {"orders": [4]})])
    rebalance = last(
        before,
        written(
            1,
            2,
            [
                member("a2", {"orders": [0, 2]}, instance_id="i"),
                member("c", {"orders": [1, 3]}),
                member("d", {"orders": [4]}),
            ],
        ),
    )
    shown = [(one.member_id, one.changes, one.revoked, one.assigned) for one in rebalance.changes]
    assert shown == [
        ("b", ("gone",), (("orders", 2), ("orders", 3)), ()),
        ("c", ("joined",), (), (("orders", 1), ("orders", 3))),
        ("a2", ("rejoined",), (("orders", 1),), (("orders", 2),)),
    ], "d did not change"
    assert rebalance.changes[2].previous_member_id == "a"


@pytest.mark.parametrize(
    ("before", "after", "moved", "fewest", "why"),
    [
        ([a(0, 1, 2, 3)], [a(0, 1), b(2, 3)], 2, 2, "b's new partitions had to move"),
        ([a(0, 1, 2, 3)], [a(0), b(1, 2, 3)], 3, 1, "moving one partition gives the same 3 to 1"),
        ([a(0, 1), b(2, 3)], [a(2, 3), b(0, 1)], 4, 0, "two partitions were exchanged without need"),
        ([a(0, 1), b(2, 3)], [a(0, 1, 2, 3)], 2, 2, "b has left"),
        ([a(0, 1), b(2, 3)], [a(0, 1), b(2, 3)], 0, 0, "no partition moved"),
        ([a(0), b(1)], [a(0, 2), b(1, 3)], 0, 0, "a new owner for an unowned partition is not a move"),
        ([a(0, 1), b(2, 3)], [a(0, 1), b(2)], 0, None, "a partition without an owner: no minimum exists"),
        (
            [a(0, 1), b(2, 3)],
            [a(0, 1, 2), b(2, 3)],
            0,
            None,
            "two owners: no minimum exists, and the partition has not left its first owner",
        ),
        ([a(0, 1, 2), b(2, 3)], [a(0, 1), b(2, 3)], 0, 0, "if one of two owners loses a partition, it is not a move"),
        ([a(0, 2**31 - 1)], [a(0), b(2**31 - 1)], 1, None, "absurd partition numbers must not cause a long loop"),
        (
            [a(0, 1, instance_id="i"), b(2, 3)],
            [member("z", {"orders": [0, 1]}, instance_id="i"), b(2, 3)],
            0,
            0,
            "a static member keeps its partitions with a new member id",
        ),
        (
            [a(0, 2), b(1, 3)],
            [a(0, 1, 2, 3), replace(b(), subscription=None)],
            2,
            None,
            "the bytes of b's subscription cannot be decoded: b had to lose its partitions, or not",
        ),
        ([a(0), b(1)], [a(0), replace(b(1), subscription=None)], 0, 0, "no partition moved, also with unknown bytes"),
    ],
)
def test_moves(
    before: list[ClassicMember], after: list[ClassicMember], moved: int, fewest: int | None, why: str
) -> None:
    found = last(written(0, 1, before), written(1, 2, after)).movement
    assert (found.moved_partitions, found.fewest_moves) == (moved, fewest), why
    assert found.is_exact == (fewest is not None)


FIRST_ROUND = cooperative(1, 2, a(0, 1, owned=[("orders", number) for number in range(4)]), b())


def test_two_cooperative_rounds_count_their_moves_once() -> None:
    """KIP-429: the first round only revokes partitions, and the second round assigns them."""
    rounds = [cooperative(0, 1, a(0, 1, 2, 3)), FIRST_ROUND, cooperative(2, 3, a(0, 1), b(2, 3))]
    _, first, second = rebalances_of(rounds)
    assert (first.movement.moved_partitions, first.movement.fewest_moves) == (None, None)
    assert first.movement.withheld == (("orders", 2), ("orders", 3))
    assert (second.movement.moved_partitions, second.movement.fewest_moves) == (2, 2)
    assert (first.causes, second.causes) == (("member_joined",), ("cooperative_followup",))


def test_two_rounds_that_start_with_the_first_record_have_owners_from_claims() -> None:
    """The records before the first round were compacted."""
    (first, second) = rebalances_of([FIRST_ROUND, cooperative(2, 3, a(0, 1), b(2, 3))])
    assert first.kind == "first_seen"
    assert second.movement.moved_partitions == 2


def test_a_static_rejoin_between_the_rounds_does_not_change_the_count() -> None:
    first = cooperative(1, 2, a(0, 1, instance_id="i", owned=[("orders", 2), ("orders", 3)]), b())
    rejoin = cooperative(2, 2, member("a2", {"orders": [0, 1]}, instance_id="i"), b())
    second = cooperative(3, 3, member("a2", {"orders": [0, 1]}, instance_id="i"), b(2, 3))
    rows = rebalances_of([cooperative(0, 1, a(0, 1, 2, 3, instance_id="i")), first, rejoin, second])
    assert [row.kind for row in rows] == ["first_seen", "rebalance", "static_rejoin", "rebalance"]
    assert rows[-1].movement.moved_partitions == 2


def test_an_eager_leader_that_does_not_assign_a_partition_withholds_nothing() -> None:
    found = last(BEFORE, written(1, 2, [a(0, 1), b(2)])).movement
    assert (found.withheld, found.unowned) == ((), (("orders", 3),))


def test_partitions_that_stay_unassigned_are_counted() -> None:
    left_out = [a(0, 1), b(2)]
    found = last(BEFORE, written(1, 2, left_out), written(2, 3, left_out)).movement
    assert (found.unowned, found.unowned_before_partitions) == ((("orders", 3),), 1)


@pytest.mark.parametrize(
    ("timestamp_ms", "began_ms", "sync_time_ms", "why"),
    [
        (9_000, 8_900, 100, "from the end of the join phase to the leader's assignment"),
        (9_000, 9_000, 0, "within the same millisecond"),
        (9_000, None, None, "the record does not contain the start"),
        (9_000, 9_001, None, "a clock went back"),
        (
            9_000_000,
            9_000,
            None,
            "longer than the rebalance timeout: written again much later, and the first record was compacted",
        ),
    ],
)
def test_sync_time(timestamp_ms: int, began_ms: int | None, sync_time_ms: int | None, why: str) -> None:
    of_generation = replace(metadata(2, [a(0)]), current_state_timestamp_ms=began_ms)
    event = GroupMetadataWritten(Position(0, 1, timestamp_ms), of_generation)
    assert last(written(0, 1), event).sync_time_ms == sync_time_ms, why
    assert rebalances_of([event])[0].sync_time_ms is None, (
        "the first record that was read may not be the first of its generation"
    )


@pytest.mark.parametrize(
    ("events", "skipped"),
    [
        ([written(0, 1), written(1, 2)], 0),
        ([written(0, 1), written(1, 5)], 3),
        ([written(0, 1), emptied(1, 3)], 1),
        ([written(0, 1)], None),
        ([written(0, 5), tombstoned(1), written(2, 9)], None),
        ([*formed(0), epoch(5, 4), epoch(6, 5), target(7), target_epoch(8, 5)], None),
        ([*formed(0), joined(5, "n"), epoch(6, 4), *left(7, "n"), epoch(10, 5), *left(11), epoch(14, 6)], None),
    ],
)
def test_generations_without_a_record_are_counted(events: list[GroupEvent], skipped: int | None) -> None:
    """Only classic groups skip generations. Each KIP-848 epoch has a record, even without a target.

    Before, ten members that left within a second made "9 skipped" and a storm: each is an epoch, the last one empty.
    """
    assert last(*events).skipped_generations == skipped


def test_without_the_members_records_no_cause_is_reported() -> None:
    """Compaction removed the member record of `n`. Only its target is known."""
    rebalance = last(*formed(0), target(5, "n", ()), epoch(6, 4), target_epoch(7, 4))
    assert (rebalance.causes, rebalance.primary_cause) == (None, None)
    assert rebalance.not_known == ("member_metadata",)


WITH_REGEX = modern_member((), regex="o.*")
RESOLVED = RegexResolved(at(9), "o.*", ("orders",))


def test_a_member_with_a_regular_expression_joins_first_and_then_gets_topics() -> None:
    """The coordinator resolves the expression after the join. Before, both rebalances had an unknown cause."""
    joins = [joined(5, "n", WITH_REGEX), epoch(6, 4), target(7, "n", ()), target_epoch(8, 4)]
    resolves = [RESOLVED, epoch(10, 5), target(11, "m", (("id", (0,)),)), target(12, "n", (("id", (1,)),))]
    _, came, got = rebalances_of([*formed(0), *joins, *resolves, target_epoch(13, 5)])
    assert (came.causes, came.not_known) == (("member_joined",), ())
    assert (got.causes, got.not_known) == (("subscription_changed",), ())


def test_without_the_resolved_expression_no_cause_is_reported() -> None:
    """The member has a target, so its expression was resolved.

    The only record of the expression in the log is later.
    """
    joins = [joined(5, "n", WITH_REGEX), epoch(6, 4), target(7, "n", (("id", (1,)),)), target_epoch(8, 4)]
    _, came, got = rebalances_of([*formed(0), *joins, RESOLVED, epoch(10, 5), target_epoch(11, 5)])
    assert (came.causes, came.not_known) == (None, ("resolved_regex",))
    assert (got.causes, got.not_known) == (None, ("resolved_regex",))


def test_a_kip_848_rebalance_compares_targets_with_targets() -> None:
    """Members that still move to their targets do not add moves."""
    joins = [joined(5, "n"), epoch(6, 4), target(7, "m", (("id", (0,)),)), target(8, "n", (("id", (1,)),))]
    first, second = rebalances_of([*formed(0), *joins, target_epoch(9, 4), current(10, "m", (("id", (0,)),), 4)])
    assert (first.kind, second.kind, second.causes) == ("first_seen", "rebalance", ("member_joined",))
    assert (second.position.offsets_topic_offset, second.generation_id) == (9, 4)
    assert (second.movement.moved_partitions, second.movement.fewest_moves) == (1, 1)
    emptied_now = last(*formed(0), *left(5), epoch(8, 4))
    assert (emptied_now.kind, emptied_now.causes) == ("became_empty", ("member_gone",))
    assert emptied_now.primary_cause is None, "the cause of this event is not counted"


def test_groups_without_partitions_to_assign_have_no_moves() -> None:
    """Connect's members share connectors, and a share group's members share a partition."""
    connect = [
        GroupMetadataWritten(at(number), metadata(number, [a(number)], protocol_type="connect")) for number in (1, 2)
    ]
    assert last(*connect).movement.moved_partitions is None
    share = [*formed(0, 3, "share"), epoch(5, 4, "share"), target_epoch(6, 4, "share")]
    assert last(*share).movement.moved_partitions is None
    streams = [
        GroupMetadataWritten(at(n), metadata(n, [a(0, 1)] if n == 1 else [a(0), b(1)], protocol="stream"))
        for n in (1, 2)
    ]
    assert last(*streams).movement == PartitionMovement(moved_partitions=1), "its assignor does not only minimise moves"


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=2, max_size=2), st.data())
def test_lost_partitions_are_gained_by_another_member_or_by_none(held: list[list[int]], data: st.DataObject) -> None:
    """The net changes add up to the difference of the two assignments."""
    now = [data.draw(st.lists(st.integers(0, 5), max_size=6)) for _ in held]
    rebalance = last(written(0, 1, [a(*held[0]), b(*held[1])]), written(1, 2, [a(*now[0]), b(*now[1])]))
    changes = {one.member_id: one for one in rebalance.changes}
    for member_id, before, after in zip("ab", held, now, strict=True):
        revoked = {partition for _, partition in changes[member_id].revoked} if member_id in changes else set()
        assigned = {partition for _, partition in changes[member_id].assigned} if member_id in changes else set()
        assert (set(before) - revoked) | assigned == set(after)
    moved, fewest = rebalance.movement.moved_partitions, rebalance.movement.fewest_moves
    assert moved is not None
    assert fewest is None or fewest <= moved


def test_a_polled_classic_group_has_no_rows() -> None:
    """DescribeGroups returns no generation. Only `group_generations` has the changes."""
    assert (
        rebalances_of([answered(1, classic(classic_member("a", [0]))), answered(2, classic(classic_member("b", [0])))])
        == []
    )


def test_an_undecodable_record_is_a_skipped_generation() -> None:
    """The hostile record becomes a row in quarantine. Its content is not guessed."""
    rebalance = last(BEFORE, DecodeFailed(at(1), "classic", "group", ""), written(2, 3, [a(0, 1, 2, 3)]))
    assert (rebalance.kind, rebalance.causes, rebalance.skipped_generations) == ("rebalance", ("member_gone",), 1)


TWO = [
    *(joined(0, "a"), joined(1, "n"), epoch(2, 3)),
    *(target(3, "a", (("id", (0,)),)), target(4, "n", (("id", (1,)),)), target_epoch(5, 3)),
]
"""Two members of a KIP-848 group, each with one partition of `orders`."""
JOINING = [joined(6, "b"), epoch(7, 4)]
"""A member joins, but the coordinator computes no target."""
DOWNGRADE = tombstoned(9, append_of=10)


def test_after_a_downgrade_the_number_of_partitions_is_no_cause() -> None:
    """A downgrade record has only the remaining members' partitions.

    Before, the next rebalance was `metadata_changed`.
    """
    classic = [written(10, 4, [a(0)]), written(11, 5, [a(0, 1)]), written(12, 6, [a(0, 1, 2)])]
    rows = rebalances_of([*TWO, NAMED, DOWNGRADE, *classic])
    assert [row.kind for row in rows] == ["first_seen", "deleted", "downgraded", "rebalance", "rebalance"]
    assert [row.causes for row in rows[-2:]] == [("member_gone",), ("metadata_changed",)]


@pytest.mark.parametrize(
    ("events", "causes", "moved", "fewest", "why"),
    [
        (
            [DOWNGRADE, written(10, 4, [a(0)]), written(11, 5, [a(0, 1)])],
            ("member_gone",),
            1,
            1,
            "n left, and a got n's partition",
        ),
        (
            [DOWNGRADE, written(10, 4, [a(0)]), written(11, 4, [a(0)]), written(12, 5, [a(0, 1)])],
            ("member_gone",),
            1,
            1,
            "the record of the downgrade was written again",
        ),
        (
            [DOWNGRADE, cooperative(10, 4, a(0, owned=[("orders", 1)])), cooperative(11, 5, a(0, 1))],
            ("member_gone",),
            1,
            1,
            "the record contains old claims, so it is not the first round of a cooperative rebalance",
        ),
        (
            [*JOINING, DOWNGRADE, written(10, 4, [a(0), b()]), written(11, 5, [a(0), b(1)])],
            ("member_gone", "member_joined"),
            1,
            1,
            "b joined before, but the coordinator never computed its target",
        ),
        (
            [DOWNGRADE, *(written(10 + n, 4 + n, [a(0), member("n", {"orders": [1]})]) for n in (0, 1))],
            ("unexplained",),
            0,
            0,
            "all members stayed",
        ),
        (
            [DOWNGRADE, written(10, 4, [a(0)]), written(11, 5, [a(0, 1)]), written(12, 6, [a(0, 1)])],
            ("unexplained",),
            0,
            0,
            "only the first rebalance has the causes of the downgrade",
        ),
    ],
)
def test_a_rebalance_after_a_downgrade_has_its_causes_and_its_moves(
    events: list[GroupEvent], causes: tuple[str, ...], moved: int, fewest: int, why: str
) -> None:
    """Every downgrade ended with a rebalance without a cause, and "no partition moved" although partitions moved."""
    row = rebalances_of([*TWO, NAMED, *events])[-1]
    assert (row.kind, row.causes) == ("rebalance", causes), why
    assert (row.movement.moved_partitions, row.movement.fewest_moves) == (moved, fewest), why


def test_the_moves_after_a_downgrade_are_counted_in_the_last_cooperative_round() -> None:
    """Member n left with the downgrade. The first round withholds orders-0 and assigns n's partition."""
    rounds = [
        cooperative(10, 4, a(0), b()),
        cooperative(11, 5, a(1, owned=[("orders", 0)]), b()),
        cooperative(12, 6, a(1), b(0)),
    ]
    first, second = rebalances_of([*TWO, NAMED, *JOINING, DOWNGRADE, *rounds])[-2:]
    assert (first.causes, first.movement.moved_partitions) == (("member_gone", "member_joined"), None)
    assert (second.causes, second.movement.moved_partitions) == (("cooperative_followup",), 2)


def test_causes_and_moves_are_unknown_if_the_owners_before_a_downgrade_are_unknown() -> None:
    """Compaction removed the target of a member. Before, the cause was `unexplained`, and 0 partitions had moved."""
    without_target = [joined(0, "a"), joined(1, "n"), epoch(2, 3), target(3, "a", (("id", (0,)),)), target_epoch(5, 3)]
    row = rebalances_of([*without_target, NAMED, DOWNGRADE, written(10, 4, [a(0)]), written(11, 5, [a(0, 1)])])[-1]
    assert (row.kind, row.causes, row.not_known) == ("rebalance", None, ("target_assignment",))
    assert (row.movement.moved_partitions, row.movement.fewest_moves) == (None, None)


def test_a_starting_share_group_gets_no_changed_number_of_partitions() -> None:
    """A share group gets a topic's partitions after they were initialised, some epochs after its first epoch."""
    share = "share"
    starts = [joined(0, group_type=share), epoch(1, 1, share), target(2, "m", (), share), target_epoch(3, 1, share)]
    goes_on = [epoch(4, 2, share), target(5, group_type=share), target_epoch(6, 2, share)]
    assert [row.causes for row in rebalances_of([*starts, *goes_on])][-1] == ("unexplained",)


def test_a_round_without_handed_over_partitions_is_not_a_cooperative_followup() -> None:
    """A topic was deleted while members claimed its partitions. Before, the next rebalance was called a follow-up."""
    both = ["orders", "gone"]
    had = member("a", {"orders": [0], "gone": [0]}, both)
    claims = member("a", {"orders": [0]}, both, owned=[("orders", 0), ("gone", 0)])
    rows = rebalances_of(
        [cooperative(0, 1, had), cooperative(1, 2, claims), cooperative(2, 3, member("a", {"orders": [0]}, both))]
    )
    assert rows[-1].causes == ("unexplained",)
