"""A new checkpoint over old tables goes on from what their last rows say."""

from __future__ import annotations

from hypothesis import given

from assignors import assignor_named
from streaming.delta.rows import arrow_table, turn_rows
from streaming.delta.tables import REBALANCES
from streaming.evaluation.rebalances.story import Story
from streaming.evaluation.turn import GroupRecord, take_turn
from streaming.events import GroupEvent
from streaming.group.snapshot import GroupSnapshot
from streaming.run.query.prepare import _story, last_by_group
from tests.streaming.evaluation.rebalances.test_story import generations


@given(generations())
def test_the_last_row_of_a_group_gives_back_its_totals(events: list[GroupEvent]) -> None:
    """Counters go on after `rebuild`, though the log may have lost what they counted."""
    turn = take_turn(GroupRecord(GroupSnapshot("g")), events, [assignor_named("range")])
    rows = arrow_table(REBALANCES, turn_rows("c", [turn], {})[REBALANCES]).to_pylist()
    story = _story(max(rows, key=lambda row: row["kafka_offset"], default=None))
    assert story.totals == turn.record.story.totals
    assert story.told_up_to == max((row["kafka_offset"] for row in rows), default=-1)


def test_a_group_goes_on_from_its_latest_row_also_when_it_moved_to_a_shorter_partition() -> None:
    """Offsets of two partitions have no order: the row of the greater offset was the one from before the move."""
    rows = [
        {"group_id": "g", "kafka_partition": partition, "kafka_offset": offset, "record_time": time}
        for partition, offset, time in ((12, 9_000, 100), (42, 3, 200))
    ]
    for in_any_order in (rows, rows[::-1]):
        assert last_by_group(in_any_order) == rows[1:]


def test_a_group_without_a_row_starts_a_story() -> None:
    assert _story(None) == Story()
