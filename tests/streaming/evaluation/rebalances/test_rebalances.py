"""What a rebalance was: kinds and causes, who came and went, what moved and what had to. Each row says why."""

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


def reported(events: Sequence[GroupEvent], record: GroupState = FRESH) -> list[Rebalance]:
    """Return the rebalances of the events; what is handed back comes in batches of its own, names last."""
    rebalances: list[Rebalance] = []
    for _, batch in groupby([*events, NAMED], key=lambda event: isinstance(event, TopicsSampled | GroupVanished)):
        update = apply_batch(record, list(batch), RANGE)
        rebalances += [one.rebalance for one in update.rebalances]
        record = update.record
    return rebalances


def last(*events: GroupEvent) -> Rebalance:
    """Return the last of them."""
    return reported(events)[-1]


def a(*held: int, **more: object) -> ClassicMember:
    """Return member `a`, who was given these partitions of `orders`."""
    return member("a", {"orders": held}, **more)  # type: ignore[arg-type]


def b(*held: int, **more: object) -> ClassicMember:
    """Return member `b` likewise."""
    return member("b", {"orders": held}, **more)  # type: ignore[arg-type]


def cooperative(offsets_topic_offset: int, generation_id: int, *members: ClassicMember) -> GroupEvent:
    """Return a generation made by a cooperative leader."""
    return GroupMetadataWritten(
        at(offsets_topic_offset), metadata(generation_id, members, protocol="cooperative-sticky")
    )


@pytest.mark.parametrize(
    ("events", "kind", "why"),
    [
        ([written(0, 7)], "first_seen", "what came before the first record is unknown"),
        ([emptied(0, 7)], "first_seen", "of an empty group too"),
        ([written(0, 7), written(1, 8)], "rebalance", "the next generation"),
        ([written(0, 7), written(1, 9)], "rebalance", "a join that never synced in between"),
        ([written(0, 7), emptied(1, 8)], "became_empty", "the last member left"),
        ([written(0, 7), emptied(1, 7)], "became_empty", "at the same generation: an old coordinator's"),
        ([emptied(0, 7), emptied(1, 9)], "became_empty", "somebody joined, never synced, and left"),
        ([emptied(0, 7), written(1, 8)], "rebalance", "somebody came"),
        ([written(0, 7), tombstoned(1)], "deleted", "its end"),
        ([written(0, 7), tombstoned(1), tombstoned(2)], "deleted", "told once"),
        ([written(0, 7), tombstoned(1), written(2, 8)], "created", "a record after the end, whatever its generation"),
        ([written(0, 7), written(1, 2)], "created", "a lower generation: the tombstone was compacted away"),
        ([written(0, 7), written(1, 7, [member("x")])], "created", "other members at one generation: likewise"),
        ([written(0, 7), tombstoned(1), *formed(2, 7)], "upgraded", "a KIP-848 group in the very next record"),
        ([written(0, 7), tombstoned(1), *formed(3, 7)], "created", "not the next record: another group"),
        ([*formed(0), tombstoned(5), written(6, 3)], "downgraded", "the way back"),
        ([written(0, 7), *formed(1, 8)], "created", "another type without a tombstone: it was compacted away"),
        (
            [written(0, 7, [a(0, instance_id="i")]), written(1, 7, [b(0, instance_id="i")])],
            "static_rejoin",
            "the same instance under a new member id, at the same generation",
        ),
    ],
)
def test_kinds(events: list[GroupEvent], kind: str, why: str) -> None:
    assert last(*events).kind == kind, why
    told_in_batches, record = [], FRESH
    for event in [*events, NAMED]:
        update = apply_batch(record, [event], RANGE)
        told_in_batches += update.rebalances
        record = update.record
    assert told_in_batches[-1].rebalance.kind == kind, f"{why}, one record a batch"


@pytest.mark.parametrize(
    ("events", "rows", "why"),
    [
        ([written(0, 7), written(1, 7)], 1, "a rewrite that changes nothing"),
        ([tombstoned(0)], 0, "the end of a group nobody saw alive"),
        ([written(0, 7), GroupVanished(0, 9)], 1, "no record tells that it is gone"),
        ([epoch(0), joined(1), epoch(2, 4)], 1, "empty, then an epoch whose targets are still to be made"),
        ([*formed(0)], 1, "an epoch is one rebalance: neither its number nor the end of reconciliation"),
        ([*formed(0), current(5, number=3, state="UnrevokedPartitions"), current(6)], 1, "on their way"),
        ([*formed(0), joined(5, "n"), epoch(6, 4), target(7, "n", ()), target_epoch(8, 4)], 2, "the next"),
    ],
)
def test_what_is_no_row(events: list[GroupEvent], rows: int, why: str) -> None:
    assert len(reported(events)) == rows, why


BEFORE = written(0, 1, [a(0, 1), b(2, 3)])
ON_BOTH = {"topics": ["orders", "sales"]}


@pytest.mark.parametrize(
    ("before", "after", "causes", "why"),
    [
        (BEFORE, [a(0, 1, 2, 3)], ["member_gone"], "left, timed out, fenced: alike in the log"),
        (BEFORE, [a(0, 1), b(2), member("c", {"orders": [3]})], ["member_joined"], "one more"),
        (BEFORE, [a(0, 1), member("c", {"orders": [2, 3]})], ["member_gone", "member_joined"], "replaced: gone first"),
        (BEFORE, [a(0, 1), b(2, 3)], ["unexplained"], "nothing in the records says why"),
        (BEFORE, [a(0, 1), b(2, 3, **ON_BOTH)], ["subscription_changed"], "b wants another topic too"),
        (BEFORE, [a(0, 1, 4), b(2, 3, 5)], ["metadata_changed"], "partitions nobody had: the topic grew"),
        (BEFORE, [a(0, 1), b(2)], ["unexplained"], "one is left out, and no sample says that the topic shrank"),
        (
            written(0, 1, [a(0), b(2, 3)]),
            [a(0, 1), b(2, 3)],
            ["unexplained"],
            "partition 1 was there before, for 2 and 3 were: it was only left out",
        ),
        (written(0, 1, [a(), b()]), [a(0), b(1)], ["metadata_changed"], "the topic was created meanwhile"),
        (
            written(0, 1, [a(0, 1, instance_id="i"), b(2, 3)]),
            [member("a2", {"orders": [0, 1]}, instance_id="i"), b(2, 3)],
            ["unexplained"],
            "a static member is the same under a new member id",
        ),
        (
            BEFORE,
            [a(0, 1, 2, 3, **ON_BOTH)],
            ["member_gone", "subscription_changed"],
            "all that is proven is in the set",
        ),
    ],
)
def test_causes(before: GroupEvent, after: list[ClassicMember], causes: list[str], why: str) -> None:
    rebalance = last(before, written(1, 2, after))
    assert list(rebalance.causes or ()) == causes, why
    assert rebalance.primary_cause == causes[0]


def test_another_strategy_comes_before_all_other_causes() -> None:
    """A rolling change of strategy ends in one generation in which the last member comes back, too."""
    rebalance = last(BEFORE, cooperative(1, 2, a(0, 1), member("c", {"orders": [2, 3]})))
    assert rebalance.causes == ("strategy_changed", "member_gone", "member_joined")
    assert (rebalance.previous_protocol, rebalance.protocol) == ("range", "cooperative-sticky")


def test_a_topic_that_shrank_needs_a_samples_word() -> None:
    """Deleted and created anew with fewer partitions; without a sample it might be a partition left out."""
    assert last(BEFORE, sampled(500, orders=3), written(1, 2, [a(0, 1), b(2)])).causes == ("metadata_changed",)


def test_who_changed_is_listed_with_what_it_lost_and_got() -> None:
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
    ], "d is as it was"
    assert rebalance.changes[2].previous_member_id == "a"


@pytest.mark.parametrize(
    ("before", "after", "moved", "fewest", "why"),
    [
        ([a(0, 1, 2, 3)], [a(0, 1), b(2, 3)], 2, 2, "what b gets had to move"),
        ([a(0, 1, 2, 3)], [a(0), b(1, 2, 3)], 3, 1, "as uneven a 3 to 1 is reached by moving one"),
        ([a(0, 1), b(2, 3)], [a(2, 3), b(0, 1)], 4, 0, "swapped for nothing"),
        ([a(0, 1), b(2, 3)], [a(0, 1, 2, 3)], 2, 2, "b is gone"),
        ([a(0, 1), b(2, 3)], [a(0, 1), b(2, 3)], 0, 0, "nothing moved"),
        ([a(0), b(1)], [a(0, 2), b(1, 3)], 0, 0, "from nobody to somebody is no move"),
        ([a(0, 1), b(2, 3)], [a(0, 1), b(2)], 0, None, "a partition without an owner: no law to be fewest under"),
        (
            [a(0, 1), b(2, 3)],
            [a(0, 1, 2), b(2, 3)],
            0,
            None,
            "two owners: likewise; nor has it left the one that keeps it",
        ),
        ([a(0, 1, 2), b(2, 3)], [a(0, 1), b(2, 3)], 0, 0, "who of two owners gave it up is no move"),
        ([a(0, 2**31 - 1)], [a(0), b(2**31 - 1)], 1, None, "absurd numbers are no reason to count to them"),
        (
            [a(0, 1, instance_id="i"), b(2, 3)],
            [member("z", {"orders": [0, 1]}, instance_id="i"), b(2, 3)],
            0,
            0,
            "a static member's partitions stay with it under its new member id",
        ),
    ],
)
def test_moves(
    before: list[ClassicMember], after: list[ClassicMember], moved: int, fewest: int | None, why: str
) -> None:
    found = last(written(0, 1, before), written(1, 2, after)).movement
    assert (found.moved_partitions, found.fewest_moves) == (moved, fewest), why
    assert found.is_exact == (fewest is not None)


FIRST_ROUND = cooperative(1, 2, a(0, 1, owned=[("orders", number) for number in range(4)]), b())


def test_a_cooperative_pair_of_rounds_counts_its_moves_once() -> None:
    """KIP-429: round one takes away and gives to nobody, round two hands over."""
    rounds = [cooperative(0, 1, a(0, 1, 2, 3)), FIRST_ROUND, cooperative(2, 3, a(0, 1), b(2, 3))]
    _, first, second = reported(rounds)
    assert (first.movement.moved_partitions, first.movement.fewest_moves) == (None, None)
    assert first.movement.withheld == (("orders", 2), ("orders", 3))
    assert (second.movement.moved_partitions, second.movement.fewest_moves) == (2, 2)
    assert (first.causes, second.causes) == (("member_joined",), ("cooperative_followup",))


def test_a_pair_whose_first_round_is_the_first_record_has_owners_from_its_claims() -> None:
    """The log was compacted between the rounds' records and those before."""
    (first, second) = reported([FIRST_ROUND, cooperative(2, 3, a(0, 1), b(2, 3))])
    assert first.kind == "first_seen"
    assert second.movement.moved_partitions == 2


def test_a_static_rejoin_between_the_rounds_changes_nothing_of_their_count() -> None:
    first = cooperative(1, 2, a(0, 1, instance_id="i", owned=[("orders", 2), ("orders", 3)]), b())
    rejoin = cooperative(2, 2, member("a2", {"orders": [0, 1]}, instance_id="i"), b())
    second = cooperative(3, 3, member("a2", {"orders": [0, 1]}, instance_id="i"), b(2, 3))
    rows = reported([cooperative(0, 1, a(0, 1, 2, 3, instance_id="i")), first, rejoin, second])
    assert [row.kind for row in rows] == ["first_seen", "rebalance", "static_rejoin", "rebalance"]
    assert rows[-1].movement.moved_partitions == 2


def test_an_eager_leader_that_leaves_a_partition_out_withholds_nothing() -> None:
    found = last(BEFORE, written(1, 2, [a(0, 1), b(2)])).movement
    assert (found.withheld, found.unowned) == ((), (("orders", 3),))


def test_partitions_left_out_again_are_counted_as_such() -> None:
    left_out = [a(0, 1), b(2)]
    found = last(BEFORE, written(1, 2, left_out), written(2, 3, left_out)).movement
    assert (found.unowned, found.unowned_before_partitions) == ((("orders", 3),), 1)


def test_a_deleted_topics_partitions_are_not_missed() -> None:
    assert last(BEFORE, sampled(500, orders=None), written(1, 2, [a(), b()])).movement.unowned == ()


@pytest.mark.parametrize(
    ("timestamp_ms", "began_ms", "sync_time_ms", "why"),
    [
        (9_000, 8_900, 100, "from the join's end to the leader's assignment"),
        (9_000, 9_000, 0, "within the same millisecond"),
        (9_000, None, None, "the record does not say"),
        (9_000, 9_001, None, "a clock that went back"),
        (9_000_000, 9_000, None, "longer than the rebalance timeout: a rewrite long after; the first was compacted"),
    ],
)
def test_sync_time(timestamp_ms: int, began_ms: int | None, sync_time_ms: int | None, why: str) -> None:
    of_generation = replace(metadata(2, [a(0)]), current_state_timestamp_ms=began_ms)
    event = GroupMetadataWritten(Position(0, 1, timestamp_ms), of_generation)
    assert last(written(0, 1), event).sync_time_ms == sync_time_ms, why
    assert reported([event])[0].sync_time_ms is None, (
        "nobody knows whether the first record seen is its generation's first"
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
    """Of classic groups only. Each epoch of KIP-848 has its record, also where no target was made for it.

    Ten members that left within a second were ten epochs, the last of an empty group: "9 skipped", and a storm.
    """
    assert last(*events).skipped_generations == skipped


def test_where_members_records_are_missing_no_cause_is_told() -> None:
    """Compaction took what `n` said of itself; that it has a target is all there is."""
    rebalance = last(*formed(0), target(5, "n", ()), epoch(6, 4), target_epoch(7, 4))
    assert (rebalance.causes, rebalance.primary_cause) == (None, None)
    assert rebalance.not_known == ("member_metadata",)


WITH_REGEX = modern_member((), regex="o.*")
RESOLVED = RegexResolved(at(9), "o.*", ("orders",))


def test_a_member_that_joins_with_a_regular_expression_has_come_and_then_has_topics() -> None:
    """The coordinator resolves the expression after the join. Both rebalances were of unknown cause."""
    joins = [joined(5, "n", WITH_REGEX), epoch(6, 4), target(7, "n", ()), target_epoch(8, 4)]
    resolves = [RESOLVED, epoch(10, 5), target(11, "m", (("id", (0,)),)), target(12, "n", (("id", (1,)),))]
    _, came, got = reported([*formed(0), *joins, *resolves, target_epoch(13, 5)])
    assert (came.causes, came.not_known) == (("member_joined",), ())
    assert (got.causes, got.not_known) == (("subscription_changed",), ())


def test_where_compaction_took_what_an_expression_stood_for_no_cause_is_told() -> None:
    """Its member has a target, so it was resolved. The expression's one record in the log is a later one."""
    joins = [joined(5, "n", WITH_REGEX), epoch(6, 4), target(7, "n", (("id", (1,)),)), target_epoch(8, 4)]
    _, came, got = reported([*formed(0), *joins, RESOLVED, epoch(10, 5), target_epoch(11, 5)])
    assert (came.causes, came.not_known) == (None, ("resolved_regex",))
    assert (got.causes, got.not_known) == (None, ("resolved_regex",))


def test_a_kip_848_rebalance_goes_from_targets_to_targets() -> None:
    """Members on their way to their targets move nothing that was not told before."""
    joins = [joined(5, "n"), epoch(6, 4), target(7, "m", (("id", (0,)),)), target(8, "n", (("id", (1,)),))]
    first, second = reported([*formed(0), *joins, target_epoch(9, 4), current(10, "m", (("id", (0,)),), 4)])
    assert (first.kind, second.kind, second.causes) == ("first_seen", "rebalance", ("member_joined",))
    assert (second.position.offsets_topic_offset, second.generation_id) == (9, 4)
    assert (second.movement.moved_partitions, second.movement.fewest_moves) == (1, 1)
    emptied_now = last(*formed(0), *left(5), epoch(8, 4))
    assert (emptied_now.kind, emptied_now.causes) == ("became_empty", ("member_gone",))
    assert emptied_now.primary_cause is None, "it is no rebalance that a cause is counted for"


def test_of_groups_that_divide_no_partitions_no_moves_are_told() -> None:
    """Connect's members share connectors, a share group's members one partition."""
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
    assert last(*streams).movement == PartitionMovement(moved_partitions=1), "its assignor weighs more than partitions"


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=2, max_size=2), st.data())
def test_what_one_lost_another_got_or_nobody(held: list[list[int]], data: st.DataObject) -> None:
    """Rule: net changes add up to the difference of the two assignments."""
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


def test_a_classic_group_whose_coordinator_was_asked_has_no_rows() -> None:
    """DescribeGroups names no generation: what changed is told by `group_generations` alone."""
    assert (
        reported([answered(1, classic(classic_member("a", [0]))), answered(2, classic(classic_member("b", [0])))]) == []
    )


def test_a_record_nobody_could_read_is_a_generation_skipped() -> None:
    """Rule: hostile input is a row in quarantine. What it said is not made up."""
    rebalance = last(BEFORE, DecodeFailed(at(1), "classic", "group", ""), written(2, 3, [a(0, 1, 2, 3)]))
    assert (rebalance.kind, rebalance.causes, rebalance.skipped_generations) == ("rebalance", ("member_gone",), 1)


def test_after_a_downgrade_the_number_of_partitions_proves_nothing() -> None:
    """The record of a downgrade has the partitions of those who stay: `metadata_changed` was said of the next one."""
    two = [
        *(joined(0, "m"), joined(1, "n"), epoch(2, 3)),
        *(target(3, "m", (("id", (0,)),)), target(4, "n", (("id", (1,)),)), target_epoch(5, 3)),
    ]
    classic = [written(10, 4, [a(0)]), written(11, 5, [a(0, 1)]), written(12, 6, [a(0, 1, 2)])]
    rows = reported([*two, NAMED, tombstoned(9), *classic])
    assert [row.kind for row in rows] == ["first_seen", "deleted", "downgraded", "rebalance", "rebalance"]
    assert [row.causes for row in rows[-2:]] == [("unexplained",), ("metadata_changed",)]


def test_a_share_group_that_starts_is_given_no_other_number_of_partitions() -> None:
    """A share group gets the partitions of a topic after they were initialised, some epochs after its first."""
    share = "share"
    starts = [joined(0, group_type=share), epoch(1, 1, share), target(2, "m", (), share), target_epoch(3, 1, share)]
    goes_on = [epoch(4, 2, share), target(5, group_type=share), target_epoch(6, 2, share)]
    assert [row.causes for row in reported([*starts, *goes_on])][-1] == ("unexplained",)


def test_a_round_that_hands_nothing_over_is_no_cooperative_followup() -> None:
    """A topic was deleted while members claimed its partitions; the rebalance after it was called a follow-up."""
    both = ["orders", "gone"]
    had = member("a", {"orders": [0], "gone": [0]}, both)
    claims = member("a", {"orders": [0]}, both, owned=[("orders", 0), ("gone", 0)])
    rows = reported(
        [cooperative(0, 1, had), cooperative(1, 2, claims), cooperative(2, 3, member("a", {"orders": [0]}, both))]
    )
    assert rows[-1].causes == ("unexplained",)
