"""Tests of the rules of `streaming.group.advance`, as tables of event sequences and as properties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from streaming.evaluation.rebalances.failed_rebalances import failed_rebalances
from streaming.events import (
    CLASSIC,
    CONSUMER,
    GroupEvent,
    GroupForgotten,
    GroupMetadataWritten,
    GroupTombstoned,
    GroupVanished,
    LogEvent,
    Position,
    SkipSettled,
    TopicMetadata,
)
from streaming.group.advance import KEPT_SKIPS
from streaming.group.snapshot import DEAD, EMPTY, GONE, STABLE, GroupSnapshot, GroupTotals, Resume, Skip
from tests.streaming.groups import advanced, at, emptied, epoch, formed, left, member, sampled, tombstoned, written

FRESH = GroupSnapshot("g")

SEQUENCES = [
    ([], GroupTotals(), "nothing known, nothing counted"),
    ([written(5, 40)], GroupTotals(), "rule 2: events before the first record are unknown"),
    ([tombstoned(5)], GroupTotals(), "only a tombstone; the records of the group were compacted"),
    ([epoch(5)], GroupTotals(), "rule 2 for a KIP-848 group"),
    ([written(0, 1), written(1, 1)], GroupTotals(), "rule 3: a static member rejoined"),
    ([written(0, 1), written(1, 1), written(2, 1)], GroupTotals(), "rule 3: two static rejoins"),
    ([written(0, 1), written(1, 2)], GroupTotals(rebalances=1), "rule 4: one rebalance"),
    ([written(0, 0), written(1, 1)], GroupTotals(rebalances=1), "rule 4: generation 0 is a generation"),
    ([written(0, 1), emptied(1, 2)], GroupTotals(empty_transitions=1), "rule 4: the last member left"),
    (
        [written(0, 1), emptied(1, 2), written(2, 3)],
        GroupTotals(rebalances=1, empty_transitions=1),
        "rule 4: left, and returned",
    ),
    ([emptied(0, 1), emptied(1, 2)], GroupTotals(empty_transitions=1), "joined and left before any sync"),
    ([written(0, 1), written(1, 4)], GroupTotals(rebalances=3), "rule 6: two generation numbers have no record"),
    (
        [written(0, 1), emptied(1, 4)],
        GroupTotals(rebalances=2, empty_transitions=1),
        "rule 6: only the last step is the transition to Empty",
    ),
    ([written(0, 9), written(1, 1)], GroupTotals(incarnations=2), "rule 5: a lower generation is a new group"),
    (
        [written(0, 1), written(1, 3), written(2, 1), written(3, 2)],
        GroupTotals(rebalances=3, incarnations=2),
        "rule 5: counters continue from their earlier values",
    ),
    (
        [written(0, 5), tombstoned(1), written(2, 9)],
        GroupTotals(incarnations=2),
        "rule 5: recreated with a higher number: nothing is counted",
    ),
    (
        [written(0, 5), tombstoned(1), written(2, 5)],
        GroupTotals(incarnations=2),
        "rule 5: recreated with the same number",
    ),
    ([tombstoned(0), written(1, 3)], GroupTotals(incarnations=2), "the group existed before"),
    ([written(0, 5), tombstoned(1), tombstoned(2)], GroupTotals(), "a group can have two tombstones"),
    ([*left(0), *formed(5)], GroupTotals(), "rule 2: the tombstones of a member that left are not an earlier group"),
    (
        [epoch(0, 7), written(1, 9)],
        GroupTotals(incarnations=2),
        "rule 5: a different type without a record of the change",
    ),
]


OLD_PARTITION, HOME = 3, 7
"""The group's partition before the partition count of `__consumer_offsets` changed, and after it."""


def in_partition(offsets_topic_partition: int, *events: GroupEvent) -> list[GroupEvent]:
    """Return the records in this partition, with the same offsets."""
    return [
        replace(event, position=replace(event.position, offsets_topic_partition=offsets_topic_partition))
        for event in events
        if isinstance(event, LogEvent)
    ]


def test_an_offset_is_compared_only_with_offsets_of_its_own_partition() -> None:
    """Before, a group in a different partition was frozen until that partition had as many records.

    Kafka's coordinator loads only the new partition, so the group starts again there.
    """
    before = advanced(in_partition(OLD_PARTITION, written(900, 40), written(901, 43)))
    assert before.unsettled_skips != ()
    after = advanced(in_partition(HOME, written(5, 1)), before)
    assert after.position == Position(HOME, 5, 5000)
    assert (after.generation_id, after.state, after.group_type) == (1, STABLE, CLASSIC)
    assert after.totals == GroupTotals(rebalances=3, incarnations=2)
    assert after.unsettled_skips == (), "the new partition's state cannot settle them: it has only its own offsets"
    assert advanced(in_partition(HOME, written(5, 1)), after) == after, "rule 1 continues in the new partition"
    assert advanced(in_partition(HOME, written(6, 2)), after).totals.rebalances == 4


def test_a_different_group_type_in_the_next_offset_of_a_different_partition_is_not_an_upgrade() -> None:
    """Rule 6 means the next record of the same partition."""
    after = advanced(
        in_partition(HOME, *formed(2)), advanced(in_partition(OLD_PARTITION, written(0, 7), tombstoned(1)))
    )
    assert (after.is_carried_over, after.totals.incarnations) == (False, 2)


def test_a_downgrade_whose_earlier_records_are_compacted_is_no_second_incarnation() -> None:
    """Rule 6: the first record that is left is the tombstone of the KIP-848 group. Only its key shows the type."""
    tombstone = GroupTombstoned(at(1), CONSUMER)
    metadata = written(2, 7)
    assert isinstance(metadata, GroupMetadataWritten)
    downgraded = replace(metadata, position=replace(metadata.position, timestamp_ms=at(1).timestamp_ms))
    after = advanced([tombstone, downgraded])
    assert (after.is_carried_over, after.totals.incarnations, after.generation_id) == (True, 1, 7)


def test_a_vanished_group_is_gone_only_in_its_partition() -> None:
    moved = advanced(in_partition(HOME, written(5, 1)))
    assert advanced([GroupVanished(5, 90, OLD_PARTITION)], moved) == moved
    assert advanced([GroupVanished(5, 90, HOME)], moved).state == GONE
    assert advanced([GroupVanished(5, 90)], moved).state == GONE, "an earlier version of the monitor sent no partition"


@pytest.mark.parametrize(
    ("resume_in", "totals", "why"),
    [
        (HOME, GroupTotals(), "its rows end after these records"),
        (None, GroupTotals(), "the seed of an earlier version: the partition is the one that is read"),
        (
            OLD_PARTITION,
            GroupTotals(1, 0, 0, 2),
            "its rows are from the earlier partition; here the group starts again",
        ),
    ],
)
def test_a_log_that_is_read_again_counts_nothing_up_to_its_last_row_of_the_same_partition(
    resume_in: int | None, totals: GroupTotals, why: str
) -> None:
    """A rebuild reads the log from its start."""
    resume = Resume(900, CLASSIC, STABLE, 40, GroupTotals(), resume_in)
    after = advanced(in_partition(HOME, written(5, 1), written(6, 2)), GroupSnapshot("g", resume=resume))
    assert after.totals == totals, why


@pytest.mark.parametrize(("events", "totals", "why"), SEQUENCES, ids=[why for *_, why in SEQUENCES])
def test_the_totals_after_a_sequence_of_events(events: list[GroupEvent], totals: GroupTotals, why: str) -> None:
    assert advanced(events).totals == totals, why


@pytest.mark.parametrize(
    ("events", "state", "generation_id"),
    [
        ([], DEAD, None),
        ([written(0, 4)], STABLE, 4),
        ([written(0, 4), emptied(1, 5)], EMPTY, 5),
        ([written(0, 4), tombstoned(1)], DEAD, 4),
        ([written(0, 4), tombstoned(1), written(2, 1)], STABLE, 1),
        ([epoch(0, 8)], EMPTY, 8),
        ([written(0, 4), epoch(1, 8), tombstoned(2)], DEAD, 8),
    ],
)
def test_the_state_is_the_last_records(events: list[GroupEvent], state: str, generation_id: int) -> None:
    snapshot = advanced(events)
    assert (snapshot.state, snapshot.generation_id) == (state, generation_id)
    assert (snapshot.classic is not None or snapshot.modern is not None) == (state in (STABLE, EMPTY))


@pytest.mark.parametrize(
    ("offsets_topic_offset", "why"),
    [(7, "the record itself"), (6, "the record before it"), (0, "a much earlier record")],
)
def test_a_position_that_was_read_before_changes_nothing(offsets_topic_offset: int, why: str) -> None:
    """Rule 1: a record that is read again changes nothing, whatever it contains."""
    snapshot = advanced([written(7, 4)])
    for again in (
        written(offsets_topic_offset, 9),
        emptied(offsets_topic_offset, 5),
        tombstoned(offsets_topic_offset),
        epoch(offsets_topic_offset),
    ):
        assert advanced([again], snapshot) == snapshot, why


# Rule 6: a number without a record is a failed rebalance only if no offset of the log is missing there.

SKIPPED = (written(10, 1), written(20, 4))


def test_a_skip_is_kept_with_its_range_until_it_is_settled() -> None:
    snapshot = advanced(SKIPPED)
    assert snapshot.unsettled_skips == (Skip(10, 20, 2),)
    assert snapshot.totals.rebalances_failed == 0


@pytest.mark.parametrize(
    ("answers", "failed", "left", "why"),
    [
        ([SkipSettled(20, log_was_whole=True)], 2, 0, "proven"),
        ([SkipSettled(20, log_was_whole=False)], 0, 0, "not proven, and it never will be"),
        ([SkipSettled(19, log_was_whole=True)], 0, 1, "an answer to a different skip"),
        ([SkipSettled(20, log_was_whole=True)] * 2, 2, 0, "the same answer twice counts once"),
        (
            [SkipSettled(20, log_was_whole=False), SkipSettled(20, log_was_whole=True)],
            0,
            0,
            "the first answer counts",
        ),
    ],
)
def test_an_answer_settles_its_skip_once(answers: list[GroupEvent], failed: int, left: int, why: str) -> None:
    snapshot = advanced([*SKIPPED, *answers])
    assert snapshot.totals == GroupTotals(rebalances=3, rebalances_failed=failed), why
    assert len(snapshot.unsettled_skips) == left


@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        ([], "nothing"),
        ([written(30, 5)], "the next rebalance"),
        ([written(30, 1)], "the group was recreated"),
        ([tombstoned(30)], "deleted: the rows already count the failure"),
        ([epoch(30)], "upgraded to the consumer protocol"),
    ],
)
def test_counts_do_not_depend_on_events_before_the_answer(meanwhile: list[GroupEvent], why: str) -> None:
    settled = SkipSettled(20, log_was_whole=True)
    late = advanced([*SKIPPED, *meanwhile, settled])
    early = advanced([*SKIPPED, settled, *meanwhile])
    assert late == early, why


def test_many_skips_neither_grow_the_state_nor_lower_the_count() -> None:
    """The oldest skips were removed. If the oldest was the largest, the count of failed rebalances fell."""
    snapshot, counts = advanced([written(0, 0), written(1, 6)]), []
    for offset in range(2, 40):
        snapshot = advanced([written(offset, 2 * offset + 10)], snapshot)
        decisions = {("g", skip.before_offset): True for skip in snapshot.unsettled_skips}
        counts.append(failed_rebalances(snapshot, decisions))
    assert len(snapshot.unsettled_skips) == KEPT_SKIPS
    assert counts == sorted(counts, key=lambda count: count or 0)


def test_the_first_record_and_a_new_incarnation_give_no_skip() -> None:
    assert advanced([written(0, 40), written(1, 2), tombstoned(2), written(3, 9)]).unsettled_skips == ()


# The state has the metadata of subscribed topics, and the later sample wins.

ON_ORDERS = written(0, 1, [member("m", topics=["orders"])])
ON_BOTH = written(1, 2, [member("m", topics=["orders"]), member("n", topics=["sales"])])


def test_samples_of_topics_without_a_subscriber_are_ignored() -> None:
    assert advanced([ON_ORDERS, sampled(5, orders=3, sales=9)]).topics == {"orders": TopicMetadata(3, 5)}


def test_an_unsubscribed_topic_is_removed_and_others_stay() -> None:
    both = advanced([ON_BOTH, sampled(5, orders=3, sales=9)])
    left = advanced([written(2, 3, [member("n", topics=["sales"])])], both)
    assert left.topics == {"sales": TopicMetadata(9, 5)}


@pytest.mark.parametrize("end", [tombstoned(9), epoch(9)])
def test_the_end_of_a_group_removes_its_topics(end: GroupEvent) -> None:
    assert advanced([ON_ORDERS, sampled(5, orders=3), end]).topics == {}


def test_an_empty_group_keeps_its_topics_and_their_samples_up_to_date() -> None:
    """A flapping group was Empty between its short generations. 858 of its 930 verdicts were unknown.

    Its next members remove the topics that they do not need.
    """
    empty = advanced([ON_BOTH, sampled(5, orders=3, sales=9), emptied(8, 8), sampled(9, orders=4)])
    assert empty.topics == {"orders": TopicMetadata(4, 9), "sales": TopicMetadata(9, 5)}
    assert advanced([written(10, 9, [member("m", topics=["orders"])])], empty).topics == {"orders": TopicMetadata(4, 9)}


@given(st.permutations([sampled(4, orders=2), sampled(5, orders=None), sampled(6, orders=3), sampled(6, orders=3)]))
def test_the_latest_sample_wins_in_any_order(samples: list[GroupEvent]) -> None:
    """Feedback is sent as files. One batch can contain two of them, in any order."""
    assert advanced([ON_ORDERS, *samples]).topics == {"orders": TopicMetadata(3, 6)}


def test_samples_change_neither_counts_nor_the_position() -> None:
    before = advanced([ON_ORDERS])
    after = advanced([sampled(5, orders=3)], before)
    assert (after.totals, after.position, after.classic) == (before.totals, before.position, before.classic)


def test_only_the_caller_removes_a_group() -> None:
    snapshot = advanced([written(0, 1), tombstoned(1)])
    assert advanced([GroupForgotten()], snapshot) == snapshot


@st.composite
def histories(draw: Callable[..., Any]) -> list[GroupEvent]:
    """Draw a group's log. Generations can change in any way, as in hostile input."""
    kinds = draw(st.lists(st.sampled_from(["written", "written", "emptied", "tombstoned", "epoch"]), max_size=12))
    offsets = sorted(draw(st.sets(st.integers(0, 60), min_size=len(kinds), max_size=len(kinds))))
    make: dict[str, Callable[[int, int], GroupEvent]] = {
        "written": written,
        "emptied": emptied,
        "tombstoned": lambda offsets_topic_offset, _: tombstoned(offsets_topic_offset),
        "epoch": epoch,
    }
    generations = st.integers(-2, 6) | st.sampled_from([2**31 - 1, -(2**31)])
    return [make[kind](offset, draw(generations)) for kind, offset in zip(kinds, offsets, strict=True)]


def _totals(events: Sequence[GroupEvent]) -> tuple[int, int, int, int]:
    totals = advanced(events).totals
    return totals.rebalances, totals.rebalances_failed, totals.empty_transitions, totals.incarnations


@given(histories())
def test_totals_never_fall(events: list[GroupEvent]) -> None:
    """In dashboards, a counter that falls is a counter reset."""
    through_time = [_totals(events[:end]) for end in range(len(events) + 1)]
    for before, after in pairwise(through_time):
        assert all(now >= then for then, now in zip(before, after, strict=True))


@given(histories(), st.data())
def test_replaying_any_section_changes_nothing(events: list[GroupEvent], data: st.DataObject) -> None:
    """Nothing is counted twice. A new checkpoint reads the topic from its start, with totals from the tables."""
    end = data.draw(st.integers(0, len(events)))
    start = data.draw(st.integers(0, end))
    assert advanced([*events[:end], *events[start:end], *events[end:]]) == advanced(events)


@given(histories())
def test_the_rebalances_are_the_generations_minus_the_transitions_to_empty(events: list[GroupEvent]) -> None:
    """Each counted step is one or the other, so skipped numbers never exceed the rebalances."""
    snapshot = advanced(events)
    skipped = sum(skip.generations for skip in snapshot.unsettled_skips)
    assert skipped <= snapshot.totals.rebalances
    answers = [SkipSettled(skip.before_offset, log_was_whole=True) for skip in snapshot.unsettled_skips]
    assert advanced(answers, snapshot).totals.rebalances_failed == skipped


def test_advancing_does_not_change_the_old_snapshot() -> None:
    """Snapshots are immutable: the monitor state shows one while the next one is made."""
    before = advanced([written(0, 1), sampled(5, orders=3)])
    copy = advanced([written(0, 1), sampled(5, orders=3)])
    advanced([written(1, 4), sampled(9, orders=4), tombstoned(2)], before)
    assert before == copy
    assert GroupSnapshot("g") == FRESH
