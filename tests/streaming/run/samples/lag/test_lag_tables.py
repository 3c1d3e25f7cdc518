"""Tests of the writes to the lag tables: changed rows, and all rows once per date."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

from streaming.delta.on_disk import DeltaTables
from streaming.delta.stored import stored_rows
from streaming.delta.tables import GROUP_LAG, PARTITION_STATUS
from streaming.evaluation.lag.lag import LAG_SCHEMA
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.run.samples.lag.lag_tables import LagTables
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import CLUSTER, Commits, simulate

HOUR_MS = 3_600_000
NO_COMMITS = LAG_SCHEMA.empty_table()


def at(lag: LagEvaluation, sampled_at_ms: int) -> LagEvaluation:
    """Return the same lag at a different time."""
    return LagEvaluation(replace(lag.report, sampled_at_ms=sampled_at_ms), lag.partitions)


def test_the_first_write_of_each_date_contains_all_partitions(tmp_path: Path) -> None:
    """The past reads one date. An idle partition had its last row weeks ago, and the maintenance deleted this row."""
    tables = DeltaTables(str(tmp_path))
    tables.open_all()
    _, lag, _ = simulate({"idle": Commits(["audit"])})
    writer = LagTables(CLUSTER, MonitorState(), tables, 0)
    times_ms = [20 * HOUR_MS, 23 * HOUR_MS, 24 * HOUR_MS, 25 * HOUR_MS]
    for sampled_at_ms in times_ms:
        writer.write(at(lag, sampled_at_ms), NO_COMMITS, {})
    for table in (GROUP_LAG, PARTITION_STATUS):
        hours = [row["sampled_time"].timestamp() / 3600 for row in stored_rows(str(tmp_path), table)]
        assert hours == [20] * 3 + [24] * 3, "three partitions, nothing changes, one midnight"


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_partition_whose_offset_was_deleted_has_one_end_row(tmp_path: Path, *, is_restarted: bool) -> None:
    """A group was deleted at 21:00. Until midnight, its last rows were valid, also if the monitor was restarted."""
    tables = DeltaTables(str(tmp_path))
    tables.open_all()
    _, both, _ = simulate({"gone": Commits(["audit"]), "stays": Commits(["audit"])})
    rest = LagEvaluation(both.report, both.partitions.filter(pc.equal(both.partitions["group_id"], "stays")))
    writer = LagTables(CLUSTER, MonitorState(), tables, 0)
    writer.write(at(both, 20 * HOUR_MS), NO_COMMITS, {})
    for hour in (21, 22):
        if is_restarted:
            writer = LagTables(CLUSTER, MonitorState(), tables, 0)
        writer.write(at(rest, hour * HOUR_MS), NO_COMMITS, {})
    rows = [row for row in stored_rows(str(tmp_path), GROUP_LAG) if row["group_id"] == "gone"]
    hours = [(row["sampled_time"].timestamp() / 3600, row["unknown_reason"]) for row in rows]
    assert hours == [(20, None)] * 3 + [(21, "offset_deleted")] * 3
    assert {(row["lag"], row["committed_offset"], row["end_offset"]) for row in rows[3:]} == {(None, None, None)}
    assert sorted(row["partition"] for row in rows[3:]) == [0, 1, 2]
    statuses = [row["status"] for row in stored_rows(str(tmp_path), PARTITION_STATUS) if row["group_id"] == "gone"]
    assert statuses[3:] == [None] * 3
    writer.write(at(both, 23 * HOUR_MS), NO_COMMITS, {})
    rows = [row for row in stored_rows(str(tmp_path), GROUP_LAG) if row["group_id"] == "gone"]
    assert [row["unknown_reason"] for row in rows[6:]] == [None] * 3, "the group commits again"


@pytest.mark.parametrize("is_restarted", [False, True])
def test_an_end_row_shows_whether_the_offset_still_exists(tmp_path: Path, *, is_restarted: bool) -> None:
    """The end row of a topic that a group had unsubscribed claimed that the committed offset was deleted."""
    tables = DeltaTables(str(tmp_path))
    tables.open_all()
    _, both, _ = simulate({"gone": Commits(["audit"]), "left": Commits(["audit"]), "stays": Commits(["audit"])})
    is_left, stays = (pc.equal(both.partitions["group_id"], name) for name in ("left", "stays"))
    unsubscribed = both.partitions.filter(is_left).select(LAG_SCHEMA.names[:5])
    rest = LagEvaluation(both.report, both.partitions.filter(stays))
    writer = LagTables(CLUSTER, MonitorState(), tables, 0)
    writer.write(at(both, 20 * HOUR_MS), NO_COMMITS, {})
    for hour in (21, 22):
        if is_restarted:
            writer = LagTables(CLUSTER, MonitorState(), tables, 0)
        writer.write(at(rest, hour * HOUR_MS), unsubscribed, {})
    rows = [row for row in stored_rows(str(tmp_path), GROUP_LAG) if row["lag"] is None]
    assert sorted((row["group_id"], row["partition"], row["unknown_reason"]) for row in rows) == [
        *(("gone", partition, "offset_deleted") for partition in range(3)),
        *(("left", partition, "not_subscribed") for partition in range(3)),
    ]
