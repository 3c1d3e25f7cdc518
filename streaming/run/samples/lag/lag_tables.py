"""Write lag, status and work shares to the tables at a fixed interval. Update the work shares in the monitor state.

The first time that the monitor writes on a UTC date, it writes the rows of all partitions. At all other times, it
writes only the rows that changed. So the rows of at most two dates are sufficient to find the lag at a given time
(`streaming/past/lag.py`), and the deletion of old dates never deletes the last row of a partition.

If no row of `group_lag` changed, the monitor writes one unchanged row. This row proves that the monitor
measured the lag (`streaming/past/silence.py`).

If a committed offset was deleted, or if the group no longer reads the topic, the monitor adds an *end row* for the
partition when it writes again. The `unknown_reason` of an end row is `offset_deleted` or `not_subscribed`, and all
values are null. Before the monitor writes for the first time after a restart, it compares the lag with the rows that
the table has for the same date. So the monitor also finds the partitions that ended since it last wrote on this date.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from streaming.delta.cells import utc
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import lag_rows
from streaming.delta.stored import last_rows
from streaming.delta.tables import ASSIGNMENT_IMBALANCE, GROUP_LAG, PARTITION_STATUS
from streaming.delta.tables.lag import END_REASONS, NOT_SUBSCRIBED, OFFSET_DELETED
from streaming.evaluation.fairness.imbalance import Weights
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.run.samples.lag.work_watch import WorkWatch
from streaming.state.monitor_state import MonitorState


class LagTables:
    """The writer of the lag tables. Only the sampler's thread calls the methods."""

    def __init__(self, cluster: str, monitor_state: MonitorState, tables: DeltaTables, every_seconds: float) -> None:
        self._cluster = cluster
        self._monitor_state = monitor_state
        self._tables = tables
        self._every_seconds = every_seconds
        self._work_watch = WorkWatch(cluster)
        self._written: pa.Table | None = None
        self._written_date: date | None = None
        self._written_seconds = float("-inf")

    @property
    def is_due(self) -> bool:
        """True if the interval since the last write has passed."""
        return time.monotonic() - self._written_seconds >= self._every_seconds

    def write(self, lag: LagEvaluation, unsubscribed: pa.Table, rates: Weights) -> None:
        """Write the rows that changed since the last write. The first write of a UTC date contains all rows.

        If nothing changed, the table `group_lag` gets one unchanged row as proof that the monitor measured the cluster.
        `unsubscribed` contains the commits for topics that their groups no longer read. `rates` contains the produce
        rate of each topic partition, in records per second.
        """
        now_seconds, today = time.monotonic(), utc(lag.report.sampled_at_ms).date()
        before = self._written if today == self._written_date else None
        written_keys = self._stored_keys(lag.report.sampled_at_ms) if self._written is None else self._written
        ended = _end_rows(lag.partitions, written_keys, unsubscribed)
        for table, compared in _WRITTEN_WHEN_CHANGED.items():
            changed = lag.partitions if before is None else _changed_rows(lag.partitions, before, compared)
            rows = pa.concat_tables([changed, ended])
            if table is GROUP_LAG and not rows.num_rows:
                rows = lag.partitions.slice(length=1)
            if rows.num_rows:
                self._tables.append(table, lag_rows(table, self._cluster, lag.report.sampled_at_ms, rows))
        self._written, self._written_date, self._written_seconds = lag.partitions, today, now_seconds
        work, rows = self._work_watch.measure(self._monitor_state.view(), lag, rates)
        self._monitor_state.put_work(work)
        try:
            self._tables.append(ASSIGNMENT_IMBALANCE, rows)
        except Exception:
            self._work_watch.forget_written()
            raise

    def _stored_keys(self, now_ms: int) -> pa.Table:
        """Return the partitions whose last row on the date of `now_ms` is not an end row. Raises NoTableError."""
        now = utc(now_ms)
        columns, dates = (*_KEYS, "sampled_time", "unknown_reason"), {now.date()}
        rows = last_rows(self._tables.root, GROUP_LAG, _KEYS, now, columns=columns, dates=dates, cluster=self._cluster)
        keys = [{name: row[name] for name in _KEYS} for row in rows if row["unknown_reason"] not in END_REASONS]
        return pa.Table.from_pylist(keys, schema=pa.schema([GROUP_LAG.schema.field(name) for name in _KEYS]))


_KEYS = ("group_id", "topic", "partition")
_LAG_COLUMNS = ("committed_offset", "end_offset", "log_start_offset", "lag", "unknown_reason")
_WRITTEN_WHEN_CHANGED = {GROUP_LAG: _LAG_COLUMNS, PARTITION_STATUS: ("status", "records_lost")}
"""For each table, the columns whose change causes a new row. Values that increase with time are not included."""


def _changed_rows(now: pa.Table, before: pa.Table, compared: Sequence[str]) -> pa.Table:
    """Return the rows of `now` that differ from `before`. Null becomes -1 or "", because null does not equal null."""

    def comparable(rows: pa.Table) -> pa.Table:
        for name in compared:
            no_value = "" if pa.types.is_string(rows[name].type) else -1
            rows = rows.set_column(rows.column_names.index(name), name, pc.fill_null(rows[name], no_value))
        return rows

    keys = [*_KEYS, *compared]
    fresh = comparable(now.select(keys)).append_column("row", pa.array(range(now.num_rows), pa.int64()))
    rows = fresh.join(comparable(before.select(keys)), keys=keys, join_type="left anti", use_threads=False)["row"]
    return now.take(rows.combine_chunks().sort())


def _end_rows(now: pa.Table, before: pa.Table, unsubscribed: pa.Table) -> pa.Table:
    schema = pa.schema([now.schema.field(name) for name in _KEYS])
    keys, committed = before.select(_KEYS).cast(schema), unsubscribed.select(_KEYS).cast(schema)
    ended = keys.join(now.select(_KEYS), keys=list(_KEYS), join_type="left anti", use_threads=False)
    parts = []
    for reason, join_type in ((OFFSET_DELETED, "left anti"), (NOT_SUBSCRIBED, "left semi")):
        rows = ended.join(committed, keys=list(_KEYS), join_type=join_type, use_threads=False)
        columns = {field.name: pa.nulls(rows.num_rows, field.type) for field in now.schema}
        columns["unknown_reason"] = pa.repeat(reason, rows.num_rows).cast(now.schema.field("unknown_reason").type)
        parts.append(pa.table({**columns, **{name: rows[name] for name in _KEYS}}, schema=now.schema))
    return pa.concat_tables(parts)
