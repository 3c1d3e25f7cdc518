"""Tests of groups that ended without a record, because no coordinator lists them. A rebuild must not change them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from assignors import assignor_named
from streaming.evaluation.group_update import GroupState, GroupUpdate, apply_batch
from streaming.evaluation.rebalances.rebalance_history import RebalanceHistory
from streaming.events import GroupEvent, GroupVanished
from streaming.group.snapshot import GONE, GroupSnapshot, GroupTotals, Resume
from tests.streaming.groups import written

RANGE = (assignor_named("range"),)
FRESH = GroupState(GroupSnapshot("g"))
LAST, LATER = [written(5, 7)], [written(9, 8)]
ENDED = [LAST, [GroupVanished(5, 90)]]
"""By the clock of the listing, the group was gone before its last record was written."""


def updates(batches: Iterable[Sequence[GroupEvent]], record: GroupState = FRESH) -> list[GroupUpdate]:
    """Return the updates of consecutive batches."""
    group_updates = []
    for batch in batches:
        group_updates.append(apply_batch(record, batch, RANGE))
        record = group_updates[-1].record
    return group_updates


def rows(group_updates: Iterable[GroupUpdate]) -> list[GroupSnapshot]:
    """Return the snapshots that became rows, ordered by time. `rebuild` continues from the last row."""
    reported = [snapshot for update in group_updates for snapshot in update.history]
    return sorted(reported, key=lambda one: one.position.timestamp_ms if one.position else 0)


def seed_of(last: GroupSnapshot) -> GroupState:
    """Return the state that `rebuild` makes from a group's last row."""
    assert last.position is not None
    resume = Resume(last.position.offsets_topic_offset, last.group_type, last.state, last.generation_id, last.totals, 0)
    return GroupState(
        GroupSnapshot("g", totals=last.totals, resume=resume), rebalance_history=RebalanceHistory(reported_up_to=5)
    )


def test_the_end_is_the_last_row_for_any_clock() -> None:
    """Both rows have the offset of the last record. Before, a rebuild used the wrong row and wrote the end again."""
    assert rows(updates(ENDED))[-1].state == GONE


@pytest.mark.parametrize("again", [[GroupVanished(5, 95)], []], ids=["found missing again by a poll", "not polled yet"])
def test_a_group_that_returns_after_a_rebuild_is_created_again(again: list[GroupEvent]) -> None:
    """The log may still have the last record. Before, the new group counted as a rebalance of the old group."""
    ended = updates(ENDED)
    (lived_on,) = updates([LATER], ended[-1].record)
    reread, found, rebuilt = updates([LAST, again, LATER], seed_of(rows(ended)[-1]))
    assert GONE not in {one.state for one in rows([reread, found, rebuilt])}, "this row is already in the table"
    assert rebuilt.record.snapshot.totals == lived_on.record.snapshot.totals == GroupTotals(incarnations=2)
    assert [one.rebalance.kind for one in rebuilt.rebalances] == ["created"]
    assert [one.rebalance.kind for one in lived_on.rebalances] == ["created"]
