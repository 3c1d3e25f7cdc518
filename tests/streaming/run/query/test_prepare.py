"""Tests that a new checkpoint continues from the last rows of existing tables."""

from __future__ import annotations

from hypothesis import given

from assignors import assignor_named
from streaming.delta.rows import arrow_table, update_rows
from streaming.delta.tables import REBALANCES
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.rebalances.rebalance_history import RebalanceHistory
from streaming.events import GroupEvent
from streaming.group.snapshot import GroupSnapshot
from streaming.run.query.prepare import _rebalance_history, latest_by_group
from tests.streaming.evaluation.rebalances.test_rebalance_history import generations


@given(generations())
def test_totals_are_restored_from_the_last_row_of_a_group(events: list[GroupEvent]) -> None:
    """Counters continue after `rebuild`, although the log may have lost the counted records."""
    update = apply_batch(GroupState(GroupSnapshot("g")), events, [assignor_named("range")])
    rows = arrow_table(REBALANCES, update_rows("c", [update], {})[REBALANCES]).to_pylist()
    rebalance_history = _rebalance_history(max(rows, key=lambda row: row["offsets_topic_offset"], default=None))
    assert rebalance_history.totals == update.record.rebalance_history.totals
    assert rebalance_history.reported_up_to == max((row["offsets_topic_offset"] for row in rows), default=-1)


def test_the_latest_row_of_a_group_counts_also_after_it_moved_to_a_shorter_partition() -> None:
    """Offsets of two partitions cannot be compared. Here the row with the greater offset is older than the move."""
    rows = [
        {"group_id": "g", "offsets_topic_partition": partition, "offsets_topic_offset": offset, "record_time": time}
        for partition, offset, time in ((12, 9_000, 100), (42, 3, 200))
    ]
    for ordered_rows in (rows, rows[::-1]):
        assert latest_by_group(ordered_rows) == rows[1:]


def test_a_group_without_a_row_starts_an_empty_rebalance_history() -> None:
    assert _rebalance_history(None) == RebalanceHistory()
