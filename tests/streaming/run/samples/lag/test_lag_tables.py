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
from streaming.evaluation.limits import GroupLimits
from streaming.page.timeline.reader import TimelineReader
from streaming.past.reader import PastReader
from streaming.run.samples.lag.lag_tables import LagTables
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import CLUSTER, Commits, simulate

HOUR_MS, MINUTE_MS = 3_600_000, 60_000
LIMITS = GroupLimits(max_lag_seconds=0)
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
    for table, unchanged in ((GROUP_LAG, 1), (PARTITION_STATUS, 0)):
        hours = sorted(row["sampled_time"].timestamp() / 3600 for row in stored_rows(str(tmp_path), table))
        assert hours == [20] * 3 + [23] * unchanged + [24] * 3 + [25] * unchanged, "three partitions, one midnight"


def test_a_quiet_cluster_is_measured_and_its_time_above_the_limit_grows(tmp_path: Path) -> None:
    """The lag was 380 for 16 minutes, and no offset changed. The past showed that the monitor had not measured it.

    The time above the limit was 7 minutes, and a minute later 4 minutes. From minute 21 to 29, the monitor did not run.
    """
    tables = DeltaTables(str(tmp_path))
    tables.open_all()
    _, lag, _ = simulate({"late": Commits(["audit"], behind=50)})
    for minutes in (range(21), range(30, 36)):
        writer = LagTables(CLUSTER, MonitorState(), tables, 0)
        for minute in minutes:
            writer.write(at(lag, 20 * HOUR_MS + minute * MINUTE_MS), NO_COMMITS, {})
    assert len(stored_rows(str(tmp_path), GROUP_LAG)) == 3 + 20 + 3 + 5, "one row for each write without a change"
    for minute in (0, 5, 20, 23, 25, 30, 35):
        at_ms = 20 * HOUR_MS + minute * MINUTE_MS
        past = PastReader(str(tmp_path), CLUSTER).group("late", at_ms)
        assert past is not None
        is_measured = not 23 < minute < 30
        assert past.measurement.is_recent == is_measured
        assert past.report.lag.records == (150 if is_measured else None)
        timeline = TimelineReader(str(tmp_path), CLUSTER, lambda: 0).read_past(past, LIMITS, at_ms, "1h")
        above_ms = sum(span.to_ms - span.from_ms for span in timeline.above_limit)
        assert above_ms == MINUTE_MS * (minute if minute <= 23 else 20 if minute < 30 else minute - 10)


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
