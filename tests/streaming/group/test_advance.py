"""The rules of `streaming.group.advance`, each as a table of stories, and their laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from streaming.events import (
    CLASSIC,
    GroupEvent,
    GroupForgotten,
    GroupVanished,
    LogEvent,
    Position,
    SkipSettled,
    TopicMetadata,
)
from streaming.group.advance import KEPT_SKIPS
from streaming.group.snapshot import DEAD, EMPTY, GONE, STABLE, GroupSnapshot, GroupTotals, Resume, Skip
from tests.streaming.groups import advanced, emptied, epoch, formed, left, member, sampled, tombstoned, written

FRESH = GroupSnapshot("g")

STORIES = [
    ([], GroupTotals(), "nothing known, nothing counted"),
    ([written(5, 40)], GroupTotals(), "rule 2: what came before the first record is unknown"),
    ([tombstoned(5)], GroupTotals(), "a tombstone alone, the group before it compacted away"),
    ([epoch(5)], GroupTotals(), "rule 2 for a KIP-848 group"),
    ([written(0, 1), written(1, 1)], GroupTotals(), "rule 3: a static member rejoined"),
    ([written(0, 1), written(1, 1), written(2, 1)], GroupTotals(), "rule 3, twice"),
    ([written(0, 1), written(1, 2)], GroupTotals(rebalances=1), "rule 4: one rebalance"),
    ([written(0, 0), written(1, 1)], GroupTotals(rebalances=1), "rule 4: generation 0 is a generation"),
    ([written(0, 1), emptied(1, 2)], GroupTotals(empty_transitions=1), "rule 4: the last member left"),
    (
        [written(0, 1), emptied(1, 2), written(2, 3)],
        GroupTotals(rebalances=1, empty_transitions=1),
        "rule 4: left, and came back",
    ),
    ([emptied(0, 1), emptied(1, 2)], GroupTotals(empty_transitions=1), "joined and gone before anything was synced"),
    ([written(0, 1), written(1, 4)], GroupTotals(rebalances=3), "rule 6: two numbers without a record"),
    (
        [written(0, 1), emptied(1, 4)],
        GroupTotals(rebalances=2, empty_transitions=1),
        "rule 6: only the last step is the transition to Empty",
    ),
    ([written(0, 9), written(1, 1)], GroupTotals(incarnations=2), "rule 5: a lower generation is a new group"),
    (
        [written(0, 1), written(1, 3), written(2, 1), written(3, 2)],
        GroupTotals(rebalances=3, incarnations=2),
        "rule 5: counters go on from where they were",
    ),
    (
        [written(0, 5), tombstoned(1), written(2, 9)],
        GroupTotals(incarnations=2),
        "rule 5: created anew with a higher number: nothing is counted",
    ),
    (
        [written(0, 5), tombstoned(1), written(2, 5)],
        GroupTotals(incarnations=2),
        "rule 5: created anew with the same number",
    ),
    ([tombstoned(0), written(1, 3)], GroupTotals(incarnations=2), "it had been there before"),
    ([written(0, 5), tombstoned(1), tombstoned(2)], GroupTotals(), "one group may be buried twice"),
    ([*left(0), *formed(5)], GroupTotals(), "rule 2: what a departed member left in the log is no earlier life"),
    ([epoch(0, 7), written(1, 9)], GroupTotals(incarnations=2), "rule 5: another type, and no record says how it came"),
]


OLD_PARTITION, HOME = 3, 7
"""Where a group's records stood before the partition count of `__consumer_offsets` changed, and since."""


def stands_in(offsets_topic_partition: int, *events: GroupEvent) -> list[GroupEvent]:
    """Return the records at the same offsets of a partition."""
    return [
        replace(event, position=replace(event.position, offsets_topic_partition=offsets_topic_partition))
        for event in events
        if isinstance(event, LogEvent)
    ]


def test_an_offset_is_compared_with_offsets_of_its_own_partition_only() -> None:
    """A group whose records stand in a different partition was frozen until that partition was as long.

    Kafka's coordinator loads the new partition alone: the group begins anew there.
    """
    before = advanced(stands_in(OLD_PARTITION, written(900, 40), written(901, 43)))
    assert before.unsettled_skips != ()
    after = advanced(stands_in(HOME, written(5, 1)), before)
    assert after.position == Position(HOME, 5, 5000)
    assert (after.generation_id, after.state, after.group_type) == (1, STABLE, CLASSIC)
    assert after.totals == GroupTotals(rebalances=3, incarnations=2)
    assert after.unsettled_skips == (), "no lane can settle them: it knows the offsets of one partition"
    assert advanced(stands_in(HOME, written(5, 1)), after) == after, "rule 1 goes on there"
    assert advanced(stands_in(HOME, written(6, 2)), after).totals.rebalances == 4


def test_a_different_group_type_in_the_next_offset_of_a_different_partition_is_no_upgrade() -> None:
    """Rule 6 means the very next record, and offsets of two partitions have no next."""
    after = advanced(stands_in(HOME, *formed(2)), advanced(stands_in(OLD_PARTITION, written(0, 7), tombstoned(1))))
    assert (after.is_carried_over, after.totals.incarnations) == (False, 2)


def test_that_a_group_vanished_is_about_the_partition_it_was_found_in() -> None:
    moved = advanced(stands_in(HOME, written(5, 1)))
    assert advanced([GroupVanished(5, 90, OLD_PARTITION)], moved) == moved
    assert advanced([GroupVanished(5, 90, HOME)], moved).state == GONE
    assert advanced([GroupVanished(5, 90)], moved).state == GONE, "an earlier version of the monitor sent it"


@pytest.mark.parametrize(
    ("resume_in", "totals", "why"),
    [
        (HOME, GroupTotals(), "its rows reach beyond the records"),
        (None, GroupTotals(), "an earlier version's seed: the partition is the one that is read"),
        (OLD_PARTITION, GroupTotals(1, 0, 0, 2), "its rows are those of the earlier partition; here it begins anew"),
    ],
)
def test_a_log_read_again_counts_nothing_up_to_its_last_row_of_the_same_partition(
    resume_in: int | None, totals: GroupTotals, why: str
) -> None:
    """After a rebuild."""
    resume = Resume(900, CLASSIC, STABLE, 40, GroupTotals(), resume_in)
    after = advanced(stands_in(HOME, written(5, 1), written(6, 2)), GroupSnapshot("g", resume=resume))
    assert after.totals == totals, why


@pytest.mark.parametrize(("events", "totals", "why"), STORIES, ids=[why for *_, why in STORIES])
def test_a_story_ends_with_these_totals(events: list[GroupEvent], totals: GroupTotals, why: str) -> None:
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
    ("offsets_topic_offset", "why"), [(7, "the very record"), (6, "the one before it"), (0, "long before it")]
)
def test_a_position_already_seen_changes_nothing(offsets_topic_offset: int, why: str) -> None:
    """Rule 1: reading the log again is free, whatever the record says now."""
    snapshot = advanced([written(7, 4)])
    for again in (
        written(offsets_topic_offset, 9),
        emptied(offsets_topic_offset, 5),
        tombstoned(offsets_topic_offset),
        epoch(offsets_topic_offset),
    ):
        assert advanced([again], snapshot) == snapshot, why


# Rule 6: a number without a record is a failed rebalance only if nothing of the log was missing there.

SKIPPED = (written(10, 1), written(20, 4))


def test_a_skip_is_kept_with_its_stretch_until_it_is_settled() -> None:
    snapshot = advanced(SKIPPED)
    assert snapshot.unsettled_skips == (Skip(10, 20, 2),)
    assert snapshot.totals.rebalances_failed == 0


@pytest.mark.parametrize(
    ("answers", "failed", "left", "why"),
    [
        ([SkipSettled(20, log_was_whole=True)], 2, 0, "proven"),
        ([SkipSettled(20, log_was_whole=False)], 0, 0, "not proven, and never will be"),
        ([SkipSettled(19, log_was_whole=True)], 0, 1, "an answer to another skip"),
        ([SkipSettled(20, log_was_whole=True)] * 2, 2, 0, "the same answer twice counts once"),
        (
            [SkipSettled(20, log_was_whole=False), SkipSettled(20, log_was_whole=True)],
            0,
            0,
            "the first answer stands",
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
        ([written(30, 1)], "created anew"),
        ([tombstoned(30)], "deleted: the rows it has written already count the failure"),
        ([epoch(30)], "upgraded to the consumer protocol"),
    ],
)
def test_what_is_counted_does_not_depend_on_what_happened_before_the_answer(
    meanwhile: list[GroupEvent], why: str
) -> None:
    settled = SkipSettled(20, log_was_whole=True)
    late = advanced([*SKIPPED, *meanwhile, settled])
    early = advanced([*SKIPPED, settled, *meanwhile])
    assert late == early, why


def test_a_storm_of_skips_does_not_grow_the_state() -> None:
    snapshot = advanced(written(offset, 2 * offset) for offset in range(100))
    assert [skip.before_offset for skip in snapshot.unsettled_skips] == list(range(100 - KEPT_SKIPS, 100))


def test_no_skip_stems_from_the_first_record_or_a_new_incarnation() -> None:
    assert advanced([written(0, 40), written(1, 2), tombstoned(2), written(3, 9)]).unsettled_skips == ()


# Metadata of subscribed topics: the state follows the subscriptions, and the later sample wins.

ON_ORDERS = written(0, 1, [member("m", topics=["orders"])])
ON_BOTH = written(1, 2, [member("m", topics=["orders"]), member("n", topics=["sales"])])


def test_samples_of_topics_nobody_subscribes_to_are_left_out() -> None:
    assert advanced([ON_ORDERS, sampled(5, orders=3, sales=9)]).topics == {"orders": TopicMetadata(3, 5)}


def test_a_topic_that_is_left_is_forgotten_and_others_stay_known() -> None:
    both = advanced([ON_BOTH, sampled(5, orders=3, sales=9)])
    left = advanced([written(2, 3, [member("n", topics=["sales"])])], both)
    assert left.topics == {"sales": TopicMetadata(9, 5)}


@pytest.mark.parametrize("end", [emptied(9, 9), tombstoned(9), epoch(9)])
def test_a_group_without_subscriptions_knows_no_topics(end: GroupEvent) -> None:
    assert advanced([ON_ORDERS, sampled(5, orders=3), end]).topics == {}


@given(st.permutations([sampled(4, orders=2), sampled(5, orders=None), sampled(6, orders=3), sampled(6, orders=3)]))
def test_the_latest_sample_wins_in_whatever_order_they_arrive(samples: list[GroupEvent]) -> None:
    """Facts handed back travel as files; two of them may reach one turn in any order."""
    assert advanced([ON_ORDERS, *samples]).topics == {"orders": TopicMetadata(3, 6)}


def test_samples_change_no_count_and_no_position() -> None:
    before = advanced([ON_ORDERS])
    after = advanced([sampled(5, orders=3)], before)
    assert (after.totals, after.position, after.classic) == (before.totals, before.position, before.classic)


def test_only_the_caller_forgets_a_group() -> None:
    snapshot = advanced([written(0, 1), tombstoned(1)])
    assert advanced([GroupForgotten()], snapshot) == snapshot


@st.composite
def histories(draw: Callable[..., Any]) -> list[GroupEvent]:
    """Draw a group's log, hostile or not: generations may jump anywhere."""
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
    """A counter that falls is a counter reset to every dashboard."""
    through_time = [_totals(events[:end]) for end in range(len(events) + 1)]
    for before, after in pairwise(through_time):
        assert all(now >= then for then, now in zip(before, after, strict=True))


@given(histories(), st.data())
def test_replaying_any_stretch_again_changes_nothing(events: list[GroupEvent], data: st.DataObject) -> None:
    """Rule: nothing twice. A new checkpoint reads the topic from its start over totals that are there already."""
    end = data.draw(st.integers(0, len(events)))
    start = data.draw(st.integers(0, end))
    assert advanced([*events[:end], *events[start:end], *events[end:]]) == advanced(events)


@given(histories())
def test_the_rebalances_are_the_generations_minus_the_transitions_to_empty(events: list[GroupEvent]) -> None:
    """Every step counted is one or the other, so skipped numbers are never more than the rebalances."""
    snapshot = advanced(events)
    skipped = sum(skip.generations for skip in snapshot.unsettled_skips)
    assert skipped <= snapshot.totals.rebalances
    answers = [SkipSettled(skip.before_offset, log_was_whole=True) for skip in snapshot.unsettled_skips]
    assert advanced(answers, snapshot).totals.rebalances_failed == skipped


def test_advancing_leaves_the_old_snapshot_as_it_was() -> None:
    """Snapshots are values: the registry shows one while the next is made."""
    before = advanced([written(0, 1), sampled(5, orders=3)])
    copy = advanced([written(0, 1), sampled(5, orders=3)])
    advanced([written(1, 4), sampled(9, orders=4), tombstoned(2)], before)
    assert before == copy
    assert GroupSnapshot("g") == FRESH
