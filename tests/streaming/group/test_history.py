"""Tests of which records of a group become rows, and when. Rows wait for topic names and keep their order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streaming.events import SHARE, STREAMS, CurrentWritten, GroupEvent, GroupVanished, TopicMetadata, TopicsSampled
from streaming.group.advance import advance
from streaming.group.history import awaits_names, is_reportable, is_reread
from streaming.group.snapshot import GONE, STABLE, GroupSnapshot, GroupTotals, Resume
from tests.streaming.groups import (
    SECOND_MS,
    advanced,
    at,
    current,
    epoch,
    formed,
    joined,
    left,
    sampled,
    target,
    target_epoch,
    tombstoned,
    written,
)


def reported_states(events: Sequence[GroupEvent], snapshot: GroupSnapshot | None = None) -> list[tuple[int, str]]:
    """Return offset and state of each snapshot that becomes a row."""
    snapshot, found = snapshot or GroupSnapshot("g"), []
    for event in events:
        before, snapshot = snapshot, advance(snapshot, event)
        if is_reportable(before, event, snapshot) and not is_reread(snapshot):
            assert snapshot.position is not None
            found.append((snapshot.position.offsets_topic_offset, snapshot.state))
    return found


@pytest.mark.parametrize(
    ("events", "rows", "why"),
    [
        ([written(0, 1), written(1, 1)], [(0, "Stable"), (1, "Stable")], "each record of a classic group"),
        ([written(0, 1), tombstoned(1)], [(0, "Stable"), (1, "Dead")], "the tombstone of the group"),
        (
            formed(0),
            [(1, "Assigning"), (3, "Reconciling"), (4, "Stable")],
            "epoch, targets, and the last member that reconciles",
        ),
        (
            [*formed(0, group_type=SHARE), current(5, group_type=SHARE)],
            [(1, "Stable"), (3, "Stable"), (4, "Stable")],
            "a share group is always Stable; one more row when its last member has its target",
        ),
        (
            formed(0, group_type=STREAMS),
            [(1, "Unknown"), (3, "Unknown"), (4, "Unknown")],
            "the same for a streams group, whose state is in no record",
        ),
        ([*formed(0), current(5), current(6)], [(1, "Assigning"), (3, "Reconciling"), (4, "Stable")], "no change"),
        (
            [*formed(0), *left(5), epoch(8, 4)],
            [(1, "Assigning"), (3, "Reconciling"), (4, "Stable"), (8, "Empty")],
            "a member that leaves is reported with the next epoch, not with its three tombstones",
        ),
        (
            [*formed(0), *left(5), target_epoch(8, None), tombstoned(9)],
            [(1, "Assigning"), (3, "Reconciling"), (4, "Stable"), (9, "Dead")],
            "a deleted group was never Empty in between",
        ),
        ([joined(0), target(1)], [], "entries before the group's epoch"),
        ([written(0, 1), GroupVanished(0, 9)], [(0, "Stable"), (0, "Gone")], "an end without a record"),
        ([tombstoned(0), GroupVanished(0, 9)], [(0, "Dead")], "its end was already reported"),
        ([written(0, 1), sampled(9, orders=3)], [(0, "Stable")], "a sample is not a record"),
    ],
)
def test_a_row_is_written_if_the_group_changed(
    events: Sequence[GroupEvent], rows: list[tuple[int, str]], why: str
) -> None:
    """With a row for each record, the table would grow with the square of the group's size."""
    assert reported_states(events) == rows, why


def test_a_rebalance_gives_few_rows_for_any_group_size() -> None:
    ids = [f"{number}" for number in range(50)]
    events: list[GroupEvent] = [joined(offset, member_id) for offset, member_id in enumerate(ids)]
    events += [epoch(50), *(target(51 + offset, member_id) for offset, member_id in enumerate(ids)), target_epoch(101)]
    events += [current(102 + offset, member_id) for offset, member_id in enumerate(ids)]
    assert reported_states(events) == [(50, "Assigning"), (101, "Reconciling"), (151, "Stable")]


def test_rows_of_an_earlier_checkpoint_are_not_repeated_except_the_last() -> None:
    """The last row can exist without its verdicts, after a kill between two tables."""
    resumed = GroupSnapshot("g", resume=Resume(3, "consumer", STABLE, 3, GroupTotals()))
    assert reported_states(formed(0), resumed) == [(3, "Reconciling"), (4, "Stable")]
    gone = GroupSnapshot("g", resume=Resume(5, "classic", GONE, 3, GroupTotals()))
    assert reported_states([written(5, 3), GroupVanished(5, 9)], gone) == [(5, "Stable")], (
        "its end was already reported"
    )


def known(sampled_at_ms: int, topic_id: str | None) -> TopicsSampled:
    """Return a sample of the one topic."""
    return TopicsSampled({"orders": TopicMetadata(2, sampled_at_ms, topic_id=topic_id)})


@pytest.mark.parametrize(
    ("events", "awaits", "why"),
    [
        ([written(9, 1)], False, "classic records contain topic names"),
        ([epoch(9)], False, "no assignment, so no name is needed"),
        (formed(5), True, "an id without a sample"),
        ([*formed(5), known(20 * SECOND_MS, "id")], False, "named"),
        ([*formed(5), known(1 * SECOND_MS, "older")], True, "the sample is older than the record"),
        ([*formed(5), known(20 * SECOND_MS, "other")], False, "sampled after it: the topic was deleted or recreated"),
        ([*formed(5), known(20 * SECOND_MS, None)], False, "a broker without topic ids: the name will never be known"),
    ],
)
def test_rows_wait_as_long_as_a_sample_can_still_have_the_names(
    events: Sequence[GroupEvent], awaits: bool, why: str
) -> None:
    assert awaits_names(advanced(events)) is awaits, why


def test_tombstones_are_reported_with_the_records_after_them() -> None:
    before = advanced(formed(0))
    deletion = CurrentWritten(at(5), "consumer", "m", None)
    assert not is_reportable(before, deletion, advance(before, deletion))


def test_a_member_that_does_not_revoke_is_shown_with_the_member_that_waits() -> None:
    """KIP-848: without this row, the table would show a stuck group in its state before the target."""
    known = advanced([joined(0, "a"), joined(1, "b"), epoch(2), target(3, "a"), target(4, "b"), target_epoch(5)])
    events = [
        current(6, "b", (), 3, "UnreleasedPartitions"),
        current(7, "a", (), 2, "UnrevokedPartitions"),
        current(8, "b", (), 3, "UnreleasedPartitions"),
    ]
    assert reported_states(events, known) == [(7, "Reconciling")]
