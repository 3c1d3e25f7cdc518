"""A new checkpoint over old tables goes on from what their last rows say."""

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
def test_the_last_row_of_a_group_gives_back_its_totals(events: list[GroupEvent]) -> None:
    """Counters go on after `rebuild`, though the log may have lost what they counted."""
    update = apply_batch(GroupState(GroupSnapshot("g")), events, [assignor_named("range")])
    rows = arrow_table(REBALANCES, update_rows("c", [update], {})[REBALANCES]).to_pylist()
    rebalance_history = _rebalance_history(max(rows, key=lambda row: row["offsets_topic_offset"], default=None))
    assert rebalance_history.totals == update.record.rebalance_history.totals
    assert rebalance_history.reported_up_to == max((row["offsets_topic_offset"] for row in rows), default=-1)


def test_a_group_goes_on_from_its_latest_row_also_when_it_moved_to_a_shorter_partition() -> None:
    """Offsets of two partitions have no order: the row of the greater offset was the one from before the move."""
    rows = [
        {"group_id": "g", "offsets_topic_partition": partition, "offsets_topic_offset": offset, "record_time": time}
        for partition, offset, time in ((12, 9_000, 100), (42, 3, 200))
    ]
    for in_any_order in (rows, rows[::-1]):
        assert latest_by_group(in_any_order) == rows[1:]


def test_a_group_without_a_row_starts_a_story() -> None:
    assert _rebalance_history(None) == RebalanceHistory()
