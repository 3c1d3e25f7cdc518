"""Defines the state of one `__consumer_offsets` partition, and updates the state with each batch.

The stored state (`PartitionSnapshot`) is the durable copy of the last commits. So if clients do not commit after a
restart of the monitor, the monitor still has their last commits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import Int64Array
from streaming.combine.commit_runs import RUN_SCHEMA, select_runs
from streaming.combine.commits import COMMIT_SCHEMA, TOMBSTONE, last_per_key
from streaming.combine.gaps import CommitGap, GapTotals, PartitionCommits
from streaming.combine.group_boundaries import Boundary, MembershipChange
from streaming.combine.partition_gaps import GapInputs, MergedGaps, PartitionGaps, merge_gaps
from streaming.combine.partition_state_migrations import from_version_1
from streaming.events import Position
from streaming.group.codec import StateCodec

LIVE_SCHEMA = COMMIT_SCHEMA.append(pa.field("run_first_ms", pa.int64())).append(pa.field("run_commits", pa.int64()))
"""The schema of live commits. A live commit is the last commit of a key.

`run_commits` counts the key's commits since the group's last boundary. `run_first_ms` is the time of the first, or -1.
"""

STUCK_AFTER_SECONDS = 300
"""Default of `evaluation.stuck_after_seconds`: the longest time that a gap stays open."""

FOREIGN_PARTITION = "foreign_partition"
"""Reason for skipping a record that is not in its group's own partition."""


class DecodeFailure(msgspec.Struct, frozen=True):
    """A record that could not be decoded, with the first bytes and full sizes of its key and value (None: missing)."""

    offsets_topic_partition: int
    offsets_topic_offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    reason: str
    field: str | None
    key_bytes: int | None = None
    value_bytes: int | None = None


class FailureSummary(msgspec.Struct, frozen=True):
    """A summary of all undecodable records with one reason that were only counted (`decode_failures`, rule 3)."""

    reason: str
    records: int
    first_offset: int
    last: Position


class PartitionBatch(msgspec.Struct, frozen=True, tag="batch"):
    """The records of one batch from one `__consumer_offsets` partition, in reduced form.

    Attributes:
        last_missing_offset: the highest missing offset (`gaps`, rule 7) from `first_offset` to `last_offset`, or -1.
        commits: an Arrow IPC stream (COMMIT_SCHEMA).
        boundaries, membership_changes, runs, clock: used only by the state function, so `without_gaps` removes them.
            `runs` is an Arrow IPC stream (RUN_SCHEMA). `clock` is a result of `encode_steps`.
        foreign_records: number of records that are not in their group's own partition (`own_partitions`).

    """

    offsets_topic_partition: int
    first_offset: int
    last_offset: int
    last_missing_offset: int
    records_read: dict[str, int]
    decode_failures: tuple[DecodeFailure, ...]
    commits: bytes
    boundaries: tuple[Boundary, ...] = ()
    membership_changes: tuple[MembershipChange, ...] = ()
    runs: bytes = b""
    clock: bytes = b""
    foreign_records: int = 0
    failure_summaries: tuple[FailureSummary, ...] = ()


class CommitsVanished(msgspec.Struct, frozen=True, tag="commits_vanished"):
    """Keys and offsets of deleted commits whose tombstones the monitor did not read. Later commits of a key stay."""

    keys: tuple[bytes, ...]
    kafka_offsets: tuple[int, ...]


class GapsClosed(msgspec.Struct, frozen=True, tag="gaps_closed"):
    """Event for the driver: the closed gaps, and the new totals by group id. The totals of an ended group are None."""

    gaps: tuple[CommitGap, ...]
    totals: dict[str, GapTotals | None]


PartitionEvent = PartitionBatch | CommitsVanished | GapsClosed


class PartitionSnapshot(msgspec.Struct, frozen=True):
    """The state of one `__consumer_offsets` partition.

    Each count is a total of all batches so far. `commits` has the live commits of all keys (LIVE_SCHEMA).
    """

    offsets_topic_partition: int
    last_offset: int = -1
    last_missing_offset: int = -1
    records_read: dict[str, int] = {}
    records_skipped: dict[str, int] = {}
    commits: bytes = b""
    gaps: PartitionGaps = PartitionGaps()

    def gap_totals(self) -> Mapping[str, GapTotals]:
        """Return the totals of commit gaps by group id."""
        return {group.group_id: group.totals for group in self.gaps.groups.values()}

    def without_keys(self) -> PartitionSnapshot:
        """Return a copy with only the positions and counts. Its size does not depend on the number of keys."""
        return msgspec.structs.replace(self, commits=b"", gaps=PartitionGaps())


PARTITION_CODEC = StateCodec(PartitionSnapshot, version=3, migrations={1: from_version_1, 2: lambda encoded: encoded})
"""Version 3 has the field `PartitionGaps.ended`. Bytes of version 2 do not have it, so it is empty after decoding."""

_EVENT_ENCODER = msgspec.msgpack.Encoder()
_EVENT_DECODER: msgspec.msgpack.Decoder[PartitionEvent] = msgspec.msgpack.Decoder(PartitionEvent)


def encode_partition_event(event: PartitionEvent) -> bytes:
    """Encode an event to send it between processes. Do not store the result, because it has no version number."""
    return _EVENT_ENCODER.encode(event)


def decode_partition_event(encoded: bytes) -> PartitionEvent:
    """Decode an event that `encode_partition_event` encoded."""
    return _EVENT_DECODER.decode(encoded)


def advance_partition(
    snapshot: PartitionSnapshot, event: PartitionEvent, stuck_after_seconds: int = STUCK_AFTER_SECONDS
) -> tuple[PartitionSnapshot, GapsClosed | None]:
    """Return the snapshot after the event, and the commit gaps that it closed. A batch is applied only once."""
    if isinstance(event, CommitsVanished):
        return msgspec.structs.replace(snapshot, commits=_without_vanished(snapshot.commits, event)), None
    if isinstance(event, GapsClosed) or event.first_offset <= snapshot.last_offset:
        return snapshot, None
    return _merge_batch(snapshot, event, stuck_after_seconds)


def without_gaps(event: PartitionEvent) -> PartitionEvent:
    """Return the event without the parts that only the state function needs."""
    if not isinstance(event, PartitionBatch):
        return event
    return msgspec.structs.replace(event, boundaries=(), membership_changes=(), runs=b"", clock=b"")


def _without_vanished(known: bytes, vanished: CommitsVanished) -> bytes:
    commits = table_of(known, LIVE_SCHEMA)
    gone = dict(zip(vanished.keys, vanished.kafka_offsets, strict=True))
    rows = zip(commits["key"].to_pylist(), commits["offsets_topic_offset"].to_pylist(), strict=True)
    stays = [gone.get(key) != offsets_topic_offset for key, offsets_topic_offset in rows]
    return commits_bytes(commits.filter(pa.array(stays, pa.bool_())))


def _merge_batch(
    snapshot: PartitionSnapshot, batch: PartitionBatch, stuck_after_seconds: int
) -> tuple[PartitionSnapshot, GapsClosed | None]:
    missing_between = batch.first_offset - 1 if batch.first_offset > snapshot.last_offset + 1 else -1
    missing_before = max(snapshot.last_missing_offset, missing_between)
    skipped = Counter(record.reason for record in batch.decode_failures)
    skipped += Counter({summary.reason: summary.records for summary in batch.failure_summaries})
    skipped += Counter({FOREIGN_PARTITION: batch.foreign_records})
    runs = table_of(batch.runs, RUN_SCHEMA)
    known = table_of(snapshot.commits if batch.commits or batch.boundaries else b"", LIVE_SCHEMA)
    inputs = GapInputs(
        batch.offsets_topic_partition, batch.boundaries, batch.membership_changes, runs, batch.clock, missing_before
    )
    merged = merge_gaps(snapshot.gaps, known, inputs, stuck_after_seconds)
    commits = snapshot.commits
    if batch.commits or merged.partition_commits:
        newer, early = table_of(batch.commits, COMMIT_SCHEMA), select_runs(runs, is_before_any=True)
        commits = commits_bytes(_update_live_commits(known, newer, early, merged.partition_commits))
    advanced = PartitionSnapshot(
        offsets_topic_partition=snapshot.offsets_topic_partition,
        last_offset=batch.last_offset,
        last_missing_offset=max(missing_before, batch.last_missing_offset),
        records_read=_add_counts(snapshot.records_read, batch.records_read),
        records_skipped=_add_counts(snapshot.records_skipped, skipped),
        commits=commits,
        gaps=merged.gaps,
    )
    return advanced, _gaps_closed(snapshot.gaps, merged)


def _gaps_closed(before: PartitionGaps, merged: MergedGaps) -> GapsClosed | None:
    """Return the event for the driver, or None if no gap closed and no group changed."""
    if not merged.closed and not merged.changed_groups:
        return None
    after = merged.gaps.groups
    ended = {
        before.groups[group].group_id: None for group in merged.changed_groups - after.keys() if group in before.groups
    }
    kept = {after[group].group_id: after[group].totals for group in merged.changed_groups & after.keys()}
    return GapsClosed(merged.closed, {**ended, **kept})


def _add_counts(totals: dict[str, int], increments: dict[str, int]) -> dict[str, int]:
    return {kind: totals.get(kind, 0) + increments.get(kind, 0) for kind in sorted({*totals, *increments})}


def _update_live_commits(
    known: pa.Table, newer: pa.Table, early: pa.Table, partition_commits: Mapping[bytes, PartitionCommits]
) -> pa.Table:
    """Return the live commits after a batch (LIVE_SCHEMA).

    `known` has the live commits before the batch, and `newer` the commits of the batch (COMMIT_SCHEMA). `early` has the
    runs (RUN_SCHEMA) before the first boundary of their group in the batch.
    """
    last = last_per_key(pa.concat_tables([known.select(COMMIT_SCHEMA.names), newer]))
    alive = last.filter(pc.not_equal(last["committed_offset"], TOMBSTONE))
    row = _find_rows(alive["key"], known["key"])
    first_ms = np.where(row >= 0, _take(known["run_first_ms"], row), -1)
    commits = np.where(row >= 0, _take(known["run_commits"], row), 0)
    row = _find_rows(alive["key"], early["key"])
    is_new = (row >= 0) & ((commits == 0) | (_take(early["dropped_offset"], row) >= 0))
    first_ms = np.where(is_new, _take(early["run_first_ms"], row), first_ms)
    commits = np.where(is_new, 0, commits) + np.where(row >= 0, _take(early["run_commits"], row), 0)
    if partition_commits:
        own = pa.array(list(partition_commits), pa.binary())
        row = _find_rows(alive["key"], pa.chunked_array([own]))
        runs = np.array([commits[3:] for commits in partition_commits.values()], dtype=np.int64)
        first_ms = np.where(row >= 0, runs[row, 0], first_ms)
        commits = np.where(row >= 0, runs[row, 1], commits)
    counts = (pa.array(first_ms, pa.int64()), pa.array(commits, pa.int64()))
    return pa.table([*alive.columns, *counts], schema=LIVE_SCHEMA)


def _find_rows(keys: pa.ChunkedArray, known_keys: pa.ChunkedArray) -> Int64Array:
    """For each key, return the row number of the same key in `known_keys`, or -1."""
    index = pc.index_in(keys, value_set=known_keys.combine_chunks())
    rows: Int64Array = pc.fill_null(index, -1).to_numpy().astype(np.int64)
    return rows


def _take(column: pa.ChunkedArray, rows: Int64Array) -> Int64Array:
    """Return the values at these rows. The value for row -1 has no meaning."""
    values = column.to_numpy()
    return values[rows] if len(values) else np.full(len(rows), -1, dtype=np.int64)


def commits_bytes(commits: pa.Table) -> bytes:
    """Encode commits as an LZ4-compressed Arrow IPC stream. For a table without rows, return empty bytes."""
    if commits.num_rows == 0:
        return b""
    stream = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(stream, commits.schema, options=options) as writer:
        writer.write_table(commits.combine_chunks())
    encoded: bytes = stream.getvalue().to_pybytes()
    return encoded


def table_of(encoded: bytes, schema: pa.Schema) -> pa.Table:
    """Decode a table that `commits_bytes` encoded. For empty bytes, return a table with `schema` and no rows."""
    return pa.ipc.open_stream(encoded).read_all() if encoded else schema.empty_table()
