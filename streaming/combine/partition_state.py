"""Defines the state of one `__consumer_offsets` partition, and updates the state with each batch.

The state contains reduced commits, counts and commit gaps, but no members. The stored state (`PartitionSnapshot`) is
the durable copy of the last commits. If clients do not commit after a restart of the monitor, the monitor still has
their last commits in the stored state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import pyarrow as pa

from streaming.combine.commit_runs import RUN_SCHEMA, select_runs
from streaming.combine.commits import COMMIT_SCHEMA
from streaming.combine.gaps import CommitGap, GapTotals
from streaming.combine.group_boundaries import Boundary, MembershipChange
from streaming.combine.live import LIVE_SCHEMA, update_live_commits
from streaming.combine.partition_gaps import GapInputs, MergedGaps, PartitionGaps, merge_gaps
from streaming.combine.partition_state_migrations import from_version_1
from streaming.events import Position
from streaming.group.codec import StateCodec

STUCK_AFTER_SECONDS = 300
"""Default of `evaluation.stuck_after_seconds`: the longest time that a gap stays open."""


FOREIGN_PARTITION = "foreign_partition"
"""Reason for skipping a record that is not in its group's own partition."""


class DecodeFailure(msgspec.Struct, frozen=True):
    """A record that could not be decoded: the reason, the first bytes of key and value, and their full sizes.

    The size of a missing key or value is None.
    """

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
    """A summary of the undecodable records that were only counted, for one reason (`decode_failures`, rule 3)."""

    reason: str
    records: int
    first_offset: int
    last: Position


class PartitionBatch(msgspec.Struct, frozen=True, tag="batch"):
    """The records of one batch from one `__consumer_offsets` partition, in reduced form.

    Attributes:
        last_missing_offset: the highest missing offset between `first_offset` and `last_offset`, or -1. An offset is
            missing if Spark returned no record for it, or if its record could not be decoded.
        commits: an Arrow IPC stream (COMMIT_SCHEMA).
        boundaries, membership_changes, runs, clock: used only by the state function. `without_gaps` removes these four
            values before the event is sent to the driver. `runs` is an Arrow IPC stream (RUN_SCHEMA). `clock` is a
            result of `encode_steps`.
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
    """Keys and offsets of deleted commits whose tombstones the monitor did not read.

    `CommitsVanished` removes only the commits at these offsets, and no later commit of the same key.
    """

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
        """For each group id, return the totals of the group's commit gaps."""
        return {group.group_id: group.totals for group in self.gaps.groups.values()}

    def without_keys(self) -> PartitionSnapshot:
        """Return a copy that has only the positions and counts.

        The size of the result does not depend on the number of keys and groups.
        """
        return msgspec.structs.replace(self, commits=b"", gaps=PartitionGaps())


PARTITION_CODEC = StateCodec(PartitionSnapshot, version=2, migrations={1: from_version_1})

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
    """Return the snapshot after the event, and the commit gaps that the event closed.

    If the batch was applied before, return the same snapshot.
    """
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
    advanced = PartitionSnapshot(
        offsets_topic_partition=snapshot.offsets_topic_partition,
        last_offset=batch.last_offset,
        last_missing_offset=max(missing_before, batch.last_missing_offset),
        records_read=_add_counts(snapshot.records_read, batch.records_read),
        records_skipped=_add_counts(snapshot.records_skipped, skipped),
        commits=_live_after(known, batch, runs, merged)
        if batch.commits or merged.partition_commits
        else snapshot.commits,
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


def _live_after(known: pa.Table, batch: PartitionBatch, runs: pa.Table, merged: MergedGaps) -> bytes:
    newer, early = table_of(batch.commits, COMMIT_SCHEMA), select_runs(runs, is_before_any=True)
    return commits_bytes(update_live_commits(known, newer, early, merged.partition_commits))


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
    """Decode a table that `commits_bytes` encoded. For empty bytes, return a table with `schema` and no rows.

    The commits of a batch have COMMIT_SCHEMA. The live commits of a partition's state have LIVE_SCHEMA, which adds two
    columns.
    """
    return pa.ipc.open_stream(encoded).read_all() if encoded else schema.empty_table()
