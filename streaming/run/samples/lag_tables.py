"""Write lag, status and work shares to the tables at a fixed interval. Update the work shares in the monitor state."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import lag_rows
from streaming.delta.tables import ASSIGNMENT_IMBALANCE, GROUP_LAG, PARTITION_STATUS
from streaming.evaluation.fairness.imbalance import Weights
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.run.samples.work_watch import WorkWatch
from streaming.state.monitor_state import MonitorState


class LagTables:
    """The writer of the lag tables. Only the sampler's thread uses this object."""

    def __init__(self, cluster: str, monitor_state: MonitorState, tables: DeltaTables, every_seconds: float) -> None:
        self._cluster = cluster
        self._monitor_state = monitor_state
        self._tables = tables
        self._every_seconds = every_seconds
        self._work_watch = WorkWatch(cluster)
        self._written: pa.Table | None = None
        self._written_seconds = float("-inf")

    @property
    def is_due(self) -> bool:
        """True if the interval since the last write has passed."""
        return time.monotonic() - self._written_seconds >= self._every_seconds

    def write(self, lag: LagEvaluation, rates: Weights) -> None:
        """Write the rows that changed since the last write.

        `rates` has the rate of each topic partition, in records per second.
        """
        now_seconds = time.monotonic()
        for table, numbers in _WRITTEN_WHEN_CHANGED.items():
            changed = lag.partitions if self._written is None else _changed_rows(lag.partitions, self._written, numbers)
            if changed.num_rows:
                self._tables.append(table, lag_rows(table, self._cluster, lag.report.sampled_at_ms, changed))
        self._written, self._written_seconds = lag.partitions, now_seconds
        work, rows = self._work_watch.measure(self._monitor_state.view(), lag, rates)
        self._monitor_state.put_work(work)
        try:
            self._tables.append(ASSIGNMENT_IMBALANCE, rows)
        except Exception:
            self._work_watch.forget_written()
            raise


_LAG_NUMBERS = ("committed_offset", "end_offset", "log_start_offset", "lag")
_WRITTEN_WHEN_CHANGED = {GROUP_LAG: _LAG_NUMBERS, PARTITION_STATUS: ("status", "records_lost")}
"""For each table, the columns that cause a new row if their value changes.

Columns whose values only increase with time do not cause a new row.
"""


def _changed_rows(now: pa.Table, before: pa.Table, numbers: Sequence[str]) -> pa.Table:
    """Return the rows of `now` that differ from `before`.

    For the comparison, null is replaced by -1, which is not a valid offset or status.
    """

    def comparable(rows: pa.Table) -> pa.Table:
        for name in numbers:
            rows = rows.set_column(rows.column_names.index(name), name, pc.fill_null(rows[name], -1))
        return rows

    keys = ["group_id", "topic", "partition", *numbers]
    fresh = comparable(now.select(keys)).append_column("row", pa.array(range(now.num_rows), pa.int64()))
    rows = fresh.join(comparable(before.select(keys)), keys=keys, join_type="left anti")["row"]
    return now.take(rows.combine_chunks().sort())
