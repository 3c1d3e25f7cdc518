"""Apply each micro-batch in the driver: first to the monitor state, then to the tables.

The monitor state is updated first, because on-call engineers need its values soon. After a failure, Spark repeats the
whole batch. A repeated batch is harmless: the monitor state stores absolute values, and the tables ignore a batch that
they already contain.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from streaming.combine.big_endian import Int64Array
from streaming.combine.combiner import GROUP_KIND
from streaming.combine.commits import COMMIT_SCHEMA
from streaming.combine.gaps import CommitGap
from streaming.combine.partition_state import (
    CommitsVanished,
    GapsClosed,
    PartitionBatch,
    PartitionEvent,
    PartitionSnapshot,
    advance_partition,
    decode_partition_event,
    table_of,
)
from streaming.delta.cells import Row
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table, commit_gap_rows, quarantine_rows, update_rows
from streaming.delta.tables import GROUP_GENERATIONS, Table
from streaming.evaluation.group_update import GroupUpdate, decode_update
from streaming.evaluation.lag.broker_clocks import RECORDS_PER_BROKER, ReceivedRecords
from streaming.evaluation.rebalances.failed_rebalances import decide_skips
from streaming.events import POLLED_PARTITION
from streaming.group.snapshot import GONE
from streaming.integrity.log_integrity import find_backward_positions
from streaming.run.cluster_clock import ClusterClock
from streaming.run.log_integrity import ForeignRecords, report_rewound
from streaming.run.query.prepare import Bootstrap, position_numbers
from streaming.run.query.table_progress import ProgressFile
from streaming.spark.causes import plain_cause
from streaming.spark.checkpoint import batch_end_positions
from streaming.spark.file_source_log import shorten_file_source_log
from streaming.spark.files import Files
from streaming.spark.freed_memory import LARGE_BYTES, return_freed_memory
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_state import MonitorState

SHORTEN_BATCHES = 1000
"""Number of batches after which the log of the file source is shortened again.

With one file per batch, the log then has at most 200 kB. More than one file per batch is rare.
"""

_log = logging.getLogger(__name__)


class BatchFailedError(Exception):
    """A batch failed. The message has one line.

    When a query is stopped during a batch, Spark 4.0 searches the message with a regular expression. In a long Java
    stack trace, this search causes a stack overflow.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class BatchSink:
    """The function of `foreachBatch`."""

    cluster: str
    monitor_state: MonitorState
    committed_offsets: CommittedOffsets
    tables: DeltaTables
    files: Files
    bootstrap: Bootstrap
    clock: ClusterClock
    on_end: Callable[[], None]

    def __post_init__(self) -> None:
        """Create the reports about all batches. They log a repeated problem only once."""
        self._foreign_records = ForeignRecords(self.cluster)
        self._progress_file = ProgressFile(self.cluster, self.files, self.tables)
        self.failure: Exception | None = None
        """The error that the last batch raised. Spark itself reports this error only as a long text."""

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Apply one batch. Raises BatchFailedError."""
        self.failure = None
        try:
            batch_bytes = self._apply(batch, batch_id)
        except Exception as failure:  # noqa: BLE001 - any error ends the query
            self.failure = failure
            raise BatchFailedError(plain_cause(failure)) from None
        self.on_end()
        if (batch_id + 1) % SHORTEN_BATCHES == 0:
            try:
                shorten_file_source_log(self.files)
            except (OSError, Py4JError) as failure:  # the next call tries again
                _log.debug("%s: the log of the file source was not shortened: %s", self.cluster, plain_cause(failure))
        if batch_bytes >= LARGE_BYTES:
            return_freed_memory()

    def _apply(self, batch: DataFrame, batch_id: int) -> int:
        started = time.monotonic()
        new_rows, batch_bytes = self._update_state(batch, batch_id)
        self._append(new_rows, batch_id)
        self._put_positions(batch_id)  # after the append: otherwise a cluster is ready although each append fails
        batch_seconds = time.monotonic() - started
        self.monitor_state.put_batch_end(batch_seconds, self.clock.monitor_ms())
        _log.debug("%s: batch %d took %.2f s", self.cluster, batch_id, batch_seconds)
        return batch_bytes + sum(int(rows.nbytes) for rows in new_rows.values())

    def _append(self, new_rows: Mapping[Table, pa.Table], batch_id: int) -> None:
        for table in self.tables.append_batches(new_rows, batch_id):
            _log.info("%s: batch %d is already in table %s", self.cluster, batch_id, table.name)
        self._progress_file.store()

    def _update_state(self, batch: DataFrame, batch_id: int) -> tuple[Mapping[Table, pa.Table], int]:
        """Apply a batch to the monitor state. Return the new rows of the tables, and the size of the batch in bytes.

        Collect the batch only once: a second Spark action would run the query's stateful plan again. The decoded batch
        exists only inside the method, so its memory is free again before the next append.
        """
        updates, partition_events, batch_bytes = _split_by_kind(batch.toArrow())
        received_ms = self.clock.monitor_ms()
        partition_batches = [event for event in partition_events if isinstance(event, PartitionBatch)]
        partition_states = self._merge_partitions(partition_batches)
        forgotten = [update.record.snapshot.group_id for update in updates if update.forgotten]
        closed = [event for event in partition_events if isinstance(event, GapsClosed)]
        self.monitor_state.put_batch([update.record for update in updates], partition_states.values(), forgotten)
        self.monitor_state.put_gap_totals(closed)
        last_records = [self._apply_commits(event) for event in partition_events]
        self.clock.take_records(_records(received_ms, last_records, updates))
        self._foreign_records.report(partition_batches)
        gaps = [gap for event in closed for gap in event.gaps]
        _log.debug(
            "%s: batch %d: %d groups, %d partitions", self.cluster, batch_id, len(updates), len(partition_states)
        )
        return self._new_rows(updates, partition_batches, gaps, partition_states), batch_bytes

    def _apply_commits(self, event: PartitionEvent) -> Int64Array:
        """Decode and apply the commits of one event. Outside the method, memory contains no decoded commits."""
        if isinstance(event, CommitsVanished):
            self.committed_offsets.forget(event.keys, event.kafka_offsets)
        if not isinstance(event, PartitionBatch):
            return np.empty((0, 3), dtype=np.int64)
        commits = table_of(event.commits, COMMIT_SCHEMA)
        self.committed_offsets.apply(commits)
        return _last_records(commits)

    def _put_positions(self, batch_id: int) -> None:
        known, positions = self.monitor_state.view().health.positions, self._positions(batch_id)
        report_rewound(self.cluster, self.monitor_state, find_backward_positions(known, positions))
        self.monitor_state.put_health(positions=positions)

    def _positions(self, batch_id: int) -> Mapping[int, int]:
        return end_positions(self.files, batch_id, self.monitor_state.view().partition_states)

    def _merge_partitions(self, partition_batches: Iterable[PartitionBatch]) -> Mapping[int, PartitionSnapshot]:
        """Return the changed partition states. The states contain no commits, because CommittedOffsets stores them."""
        partition_states = dict(self.monitor_state.view().partition_states)
        changed = {}
        for batch in partition_batches:
            partition = batch.offsets_topic_partition
            known = partition_states.get(partition, PartitionSnapshot(partition))
            changed[partition], _ = advance_partition(known, msgspec.structs.replace(batch, commits=b""))
        return changed

    def _new_rows(
        self,
        updates: list[GroupUpdate],
        partition_batches: list[PartitionBatch],
        gaps: list[CommitGap],
        partition_states: Mapping[int, PartitionSnapshot],
    ) -> Mapping[Table, pa.Table]:
        history = (snapshot for update in updates for snapshot in update.history)
        decisions = decide_skips(self.monitor_state.view().decided_skips, history, partition_states)
        rows: dict[Table, Iterable[Row]] = {**update_rows(self.cluster, updates, decisions)}
        decode_failures = (record for batch in partition_batches for record in batch.decode_failures)
        summaries = (summary for batch in partition_batches for summary in batch.failure_summaries)
        rows.update(quarantine_rows(self.cluster, decode_failures, summaries))
        rows.update(commit_gap_rows(self.cluster, gaps))
        return {table: self._unwritten(table, arrow_table(table, of_table)) for table, of_table in rows.items()}

    def _unwritten(self, table: Table, rows: pa.Table) -> pa.Table:
        written = self.bootstrap.positions.get(table.name)
        if written is None or not len(written) or not rows.num_rows:
            return rows
        positions = position_numbers(rows["offsets_topic_partition"], rows["offsets_topic_offset"])
        unwritten = ~np.isin(positions, written)
        if table is GROUP_GENERATIONS:
            # A row with the state Gone has the position of the group's last record. The table may already contain the
            # row of this record. So the position does not show whether the row with the state Gone is in the table.
            unwritten |= pc.equal(rows["state"], GONE).to_numpy()
        return rows.filter(pa.array(unwritten))


def _last_records(commits: pa.Table) -> Int64Array:
    names = ("offsets_topic_partition", "offsets_topic_offset", "timestamp_ms")
    if commits.num_rows > RECORDS_PER_BROKER:
        offsets = commits["offsets_topic_offset"].to_numpy()
        commits = commits.take(np.argpartition(offsets, -RECORDS_PER_BROKER)[-RECORDS_PER_BROKER:])
    return np.stack([commits[name].to_numpy().astype(np.int64) for name in names], axis=1)


def _records(received_ms: int, commits: Iterable[Int64Array], updates: Iterable[GroupUpdate]) -> ReceivedRecords:
    """Return the records of a batch. Polled groups have no log position and are omitted."""
    positions = [update.record.snapshot.position for update in updates]
    of_groups = [
        (one.offsets_topic_partition, one.offsets_topic_offset, one.timestamp_ms)
        for one in positions
        if one is not None and one.offsets_topic_partition != POLLED_PARTITION
    ]
    partitions, offsets, times_ms = np.concatenate([np.array(of_groups, dtype=np.int64).reshape(-1, 3), *commits]).T
    return ReceivedRecords(received_ms, partitions, offsets, times_ms)


def end_positions(files: Files, batch_id: int, partition_states: Mapping[int, PartitionSnapshot]) -> Mapping[int, int]:
    """Return the next offset to read in each partition after a batch. In the polling mode, see `polled_positions`."""
    return batch_end_positions(files, batch_id) or polled_positions(partition_states)


def polled_positions(partition_states: Mapping[int, PartitionSnapshot]) -> Mapping[int, int]:
    """Return the number after the last polled event that the query has read. If there is none, return `{}`."""
    polled = partition_states.get(POLLED_PARTITION)
    return {} if polled is None else {POLLED_PARTITION: polled.last_offset + 1}


def _split_by_kind(rows: pa.Table) -> tuple[list[GroupUpdate], list[PartitionEvent], int]:
    updates, partition_events = [], []
    for state_kind, payload in zip(rows["state_kind"], rows["payload"], strict=True):
        if state_kind.as_py() == GROUP_KIND:
            updates.append(decode_update(payload.as_py()))
        else:
            partition_events.append(decode_partition_event(payload.as_py()))
    return updates, partition_events, int(rows.nbytes)
