"""Reduces the records of one Spark task to rows for the stateful step.

Call `Combiner.add` for each Arrow batch, then `Combiner.rows` once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streaming.combine.batch import RecordsBatch
from streaming.combine.big_endian import BoolArray, Int64Array
from streaming.combine.commit_runs import RUN_SCHEMA, join_runs, reduce_to_runs
from streaming.combine.commits import COMMIT_SCHEMA, TOMBSTONE, key_codes, last_per_slot
from streaming.combine.decode_failures import DecodeFailures
from streaming.combine.group_boundaries import (
    Boundary,
    MembershipChange,
    clock_steps,
    encode_steps,
    find_boundary,
    find_membership_change,
)
from streaming.combine.own_partitions import OwnPartitions
from streaming.combine.partition_state import PartitionBatch, commits_bytes, encode_partition_event
from streaming.events import LogEvent, encode_event
from streaming.events.from_records import decode_failed_event, log_event
from streaming.protocol import RecordType, UndecodableRecord, decode
from streaming.protocol.classic import Refusal
from streaming.protocol.offset_commit import KEY_TYPES

GROUP_KIND = "group"
PARTITION_KIND = "partition"

STATE_ROW_SCHEMA = pa.schema([("state_kind", pa.string()), ("state_key", pa.string()), ("payload", pa.binary())])
"""Schema of the rows for the stateful step.

If state_kind is `group`, `state_key` is the group id and `payload` is an event. If state_kind is `partition`,
`state_key` is the number of the `__consumer_offsets` partition and `payload` is a PartitionBatch.
"""

PENDING_COMMIT_ROWS = 250_000
"""Number of collected commits after which the combiner reduces them.

If many rows remain after a reduction, the next reduction starts at twice that number of rows. So the combiner rarely
reduces a row more than once.
"""

StateRow = tuple[str, str, bytes]


@dataclass(slots=True)
class _Span:
    """A summary of the records that one task has read from one `__consumer_offsets` partition."""

    first_offset: int
    last_offset: int
    last_missing_offset: int = -1
    records_read: Counter[str] = field(default_factory=Counter)
    decode_failures: DecodeFailures = field(default_factory=DecodeFailures)
    foreign_records: int = 0
    boundaries: list[Boundary] = field(default_factory=list)
    membership_changes: list[MembershipChange] = field(default_factory=list)
    clock_seconds: int = -1
    clock_steps: list[Int64Array] = field(default_factory=list)

    def advance_clock(self, mine: BoolArray, batch: RecordsBatch) -> None:
        columns = (batch.offsets_topic_offset, batch.timestamp_ms, batch.missing_below)
        steps = clock_steps(self.clock_seconds, *(column[mine] for column in columns))
        if len(steps):
            self.clock_steps.append(steps)
            self.clock_seconds = int(steps[-1, 0])


_EVERY_PARTITION = OwnPartitions()


class Combiner:
    """Collects the records of one task, which must be in offset order in each `__consumer_offsets` partition.

    A record that is not in its group's own partition (`own_partitions`) is only counted (`foreign_records`).
    """

    def __init__(self, own_partitions: OwnPartitions = _EVERY_PARTITION) -> None:
        self._own_partitions = own_partitions
        self._spans: dict[int, _Span] = {}
        self._group_rows: list[StateRow] = []
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._reduced = COMMIT_SCHEMA.empty_table()
        self._runs = RUN_SCHEMA.empty_table()

    def add(self, records: pa.RecordBatch) -> None:
        """Add records with the columns key, value, offsets_topic_partition, offsets_topic_offset, timestamp_ms."""
        if records.num_rows == 0:
            return
        batch = RecordsBatch(records)
        partitions = np.unique(batch.offsets_topic_partition).tolist()
        for offsets_topic_partition in partitions:
            self._extend_span(offsets_topic_partition, batch)
        for row in np.flatnonzero(~batch.is_commit):
            self._read_one(batch, int(row))
        batch.apply_missing()
        for offsets_topic_partition in partitions:
            mine = batch.offsets_topic_partition == offsets_topic_partition
            self._spans[offsets_topic_partition].advance_clock(mine, batch)
        commits = batch.commits()
        self._pending.append(commits)
        self._pending_rows += commits.num_rows
        if self._pending_rows + self._reduced.num_rows > max(PENDING_COMMIT_ROWS, 2 * self._reduced.num_rows):
            self._reduce()

    def rows(self) -> Iterator[StateRow]:
        """Return membership events in log order, then one row for each `__consumer_offsets` partition with records."""
        yield from self._group_rows
        self._reduce()
        for offsets_topic_partition, span in sorted(self._spans.items()):
            commits, runs = (
                table.filter(pa.array(table["offsets_topic_partition"].to_numpy() == offsets_topic_partition))
                for table in (self._reduced, self._runs)
            )
            event = PartitionBatch(
                offsets_topic_partition=offsets_topic_partition,
                first_offset=span.first_offset,
                last_offset=span.last_offset,
                last_missing_offset=span.last_missing_offset,
                records_read=dict(span.records_read),
                decode_failures=span.decode_failures.kept(),
                commits=commits_bytes(commits),
                boundaries=tuple(span.boundaries),
                membership_changes=tuple(span.membership_changes),
                runs=commits_bytes(runs),
                clock=encode_steps(span.clock_steps),
                foreign_records=span.foreign_records,
                failure_summaries=span.decode_failures.summaries(),
            )
            yield PARTITION_KIND, str(offsets_topic_partition), encode_partition_event(event)

    def _extend_span(self, offsets_topic_partition: int, batch: RecordsBatch) -> None:
        mine = batch.offsets_topic_partition == offsets_topic_partition
        offsets = batch.offsets_topic_offset[mine]
        span = self._spans.get(offsets_topic_partition)
        if span is None:
            span = self._spans[offsets_topic_partition] = _Span(int(offsets[0]), int(offsets[0]) - 1)
        missing_below = _missing_below(span, offsets)
        batch.missing_below[mine] = missing_below
        span.last_missing_offset = int(missing_below[-1])
        span.last_offset = int(offsets[-1])
        commits = batch.is_commit & mine
        tombstones = int(np.count_nonzero(commits & batch.is_tombstone))
        _count(span, RecordType.OFFSET_COMMIT, int(np.count_nonzero(commits)) - tombstones, is_tombstone=False)
        _count(span, RecordType.OFFSET_COMMIT, tombstones, is_tombstone=True)

    def _read_one(self, batch: RecordsBatch, row: int) -> None:
        """Decode one record that the bulk rules did not accept as a commit."""
        position, key, value = batch.record(row)
        span = self._spans[position.offsets_topic_partition]
        refusals: list[Refusal] = []
        try:
            record = decode(key, value)
            if record.key_type in KEY_TYPES:
                committed_offset = TOMBSTONE if record.value is None else record.value["offset"]
                batch.add_decoded_commit(row, committed_offset)
            elif (grouped := log_event(record, position, refusals)) is not None:
                group_id, event = grouped
                if self._add_group_event(group_id, event):
                    boundary = find_boundary(key or b"", group_id, event, batch.missing_below_row(row))
                    span.boundaries += [boundary] if boundary else []
                    change = find_membership_change(key or b"", event)
                    span.membership_changes += [change] if change else []
                else:
                    span.foreign_records += 1
                    refusals.clear()
        except UndecodableRecord as undecodable:
            span.decode_failures.add(position, key, value, undecodable)
            # The record may contain a generation. So a missing generation number does not prove a failed rebalance.
            span.last_missing_offset = max(span.last_missing_offset, position.offsets_topic_offset)
            batch.mark_missing(row)
            if key is not None and (grouped := decode_failed_event(key, position)) is not None:
                self._add_group_event(*grouped)
        else:
            _count(span, RecordType(record.key_type), 1, is_tombstone=record.value is None)
            # The row contains the whole record. So one row is enough if several members wrote undecodable bytes.
            for _, refusal in refusals[:1]:
                span.decode_failures.add(position, key, value, refusal)

    def _add_group_event(self, group_id: str, event: LogEvent) -> bool:
        """Add the event if the record is in the group's own partition. Return True if the event was added."""
        is_own = self._own_partitions.is_own(group_id, event.position.offsets_topic_partition)
        if is_own:
            self._group_rows.append((GROUP_KIND, group_id, encode_event(event)))
        return is_own

    def _reduce(self) -> None:
        if not self._pending_rows:
            return
        pending = pa.concat_tables(self._pending)
        keys, code = key_codes(pending)
        is_own = self._own_partitions.own_rows(keys, code, pending["offsets_topic_partition"].to_numpy())
        if not is_own.all():
            foreign = np.unique(pending["offsets_topic_partition"].to_numpy()[~is_own], return_counts=True)
            for offsets_topic_partition, records in zip(*foreign, strict=True):
                self._spans[int(offsets_topic_partition)].foreign_records += int(records)
            pending = pending.filter(pa.array(is_own))
            keys, code = key_codes(pending)
        runs = reduce_to_runs(pending, keys, code, {number: span.boundaries for number, span in self._spans.items()})
        self._runs = join_runs(pa.concat_tables([self._runs, runs])) if self._runs.num_rows else runs
        commits = pending.select(COMMIT_SCHEMA.names)
        if self._reduced.num_rows:
            self._reduced = last_per_slot(pa.concat_tables([self._reduced, commits]))
        else:
            self._reduced = last_per_slot(commits, code)
        self._pending, self._pending_rows = [], 0


def _missing_below(span: _Span, offsets: Int64Array) -> Int64Array:
    """For each offset, return the highest missing offset below it, or -1. `offsets` must follow `span.last_offset`."""
    is_jump = np.diff(offsets, prepend=span.last_offset) > 1
    return np.maximum.accumulate(np.where(is_jump, offsets - 1, span.last_missing_offset))


def _count(span: _Span, record_type: RecordType, records: int, *, is_tombstone: bool) -> None:
    if records:
        span.records_read[record_type.name.lower() + ("_tombstone" if is_tombstone else "")] += records
