"""What one Kafka partition contributes to one batch, and what is remembered of it between batches.

Everything that is not membership travels in the lane of its Kafka partition: reduced commits, quarantined records and
counts. The lane's snapshot is the durable truth of the last commits: a monitor that starts again while every client is
idle knows them from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
import pyarrow as pa

from streaming.combine.boundaries import Boundary
from streaming.combine.commits import COMMIT_SCHEMA
from streaming.combine.gaps import CommitGap, GapTotals
from streaming.combine.live import LIVE_SCHEMA, live_commits
from streaming.combine.partition_gaps import Happened, MergedGaps, PartitionGaps, merged_gaps
from streaming.combine.runs import RUN_SCHEMA, of_boundary
from streaming.group.codec import StateCodec

STUCK_AFTER_SECONDS = 300
"""How long a gap stays open at most, unless the settings say otherwise."""


FOREIGN_PARTITION = "foreign_partition"
"""The reason for which records of a group are skipped that do not stand in the group's own partition."""


class DecodeFailure(msgspec.Struct, frozen=True):
    """A record nobody could read, whole, with the reason."""

    offsets_topic_partition: int
    offsets_topic_offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    reason: str
    field: str | None


class PartitionBatch(msgspec.Struct, frozen=True, tag="batch"):
    """One Kafka partition's part of one batch.

    `last_missing_offset` is the highest offset between `first_offset` and `last_offset` that told us nothing: not
    handed out (compacted away, aborted, or a transaction marker), or quarantined; -1 where there is none. `commits` is
    an Arrow IPC stream, and so is `runs` (RUN_SCHEMA); `clock` is of `encode_steps`. Those two and `boundaries` are
    for the lane alone: the driver gets none of them. `foreign_records` of a group stand in a different partition than
    the group's own (`own_partitions`); nothing else is known of them.
    """

    offsets_topic_partition: int
    first_offset: int
    last_offset: int
    last_missing_offset: int
    records_read: dict[str, int]
    decode_failures: tuple[DecodeFailure, ...]
    commits: bytes
    boundaries: tuple[Boundary, ...] = ()
    runs: bytes = b""
    clock: bytes = b""
    foreign_records: int = 0


class CommitsVanished(msgspec.Struct, frozen=True, tag="commits_vanished"):
    """Commits the coordinator knows no more, and no record says so: key and log offset of each.

    It is about the commit at that offset; a later one of the same key makes it void.
    """

    keys: tuple[bytes, ...]
    kafka_offsets: tuple[int, ...]


class GapsClosed(msgspec.Struct, frozen=True, tag="gaps_closed"):
    """What a lane tells the driver: gaps that closed, and by group id the totals after them; None: the group ended."""

    gaps: tuple[CommitGap, ...]
    totals: dict[str, GapTotals | None]


PartitionEvent = PartitionBatch | CommitsVanished | GapsClosed


class PartitionSnapshot(msgspec.Struct, frozen=True):
    """One Kafka partition as read so far: counts are absolute, `commits` those of every live key (LIVE_SCHEMA)."""

    offsets_topic_partition: int
    last_offset: int = -1
    last_missing_offset: int = -1
    records_read: dict[str, int] = {}
    records_skipped: dict[str, int] = {}
    commits: bytes = b""
    gaps: PartitionGaps = PartitionGaps()

    def gap_totals(self) -> Mapping[str, GapTotals]:
        """The totals of every group's commit gaps, by group id."""
        return {group.group_id: group.totals for group in self.gaps.groups.values()}

    def without_keys(self) -> PartitionSnapshot:
        """Positions and counts alone, whose size does not depend on how many keys and groups there are."""
        return msgspec.structs.replace(self, commits=b"", gaps=PartitionGaps())


PARTITION_CODEC = StateCodec(PartitionSnapshot, version=1)

_EVENT_ENCODER = msgspec.msgpack.Encoder()
_EVENT_DECODER: msgspec.msgpack.Decoder[PartitionEvent] = msgspec.msgpack.Decoder(PartitionEvent)


def encode_partition_event(event: PartitionEvent) -> bytes:
    """An event for the way between processes (never stored: it has no version)."""
    return _EVENT_ENCODER.encode(event)


def decode_partition_event(encoded: bytes) -> PartitionEvent:
    """The event of `encode_partition_event`."""
    return _EVENT_DECODER.decode(encoded)


def merge_partition(snapshot: PartitionSnapshot, event: PartitionEvent) -> PartitionSnapshot:
    """The snapshot after the event. A batch that starts behind the last offset leaves everything as it is."""
    return advance_partition(snapshot, event)[0]


def advance_partition(
    snapshot: PartitionSnapshot, event: PartitionEvent, stuck_after_seconds: int = STUCK_AFTER_SECONDS
) -> tuple[PartitionSnapshot, GapsClosed | None]:
    """The snapshot after the event, and the commit gaps that it closed."""
    if isinstance(event, CommitsVanished):
        return msgspec.structs.replace(snapshot, commits=_without(snapshot.commits, event)), None
    if isinstance(event, GapsClosed) or event.first_offset <= snapshot.last_offset:
        return snapshot, None
    return _merge_batch(snapshot, event, stuck_after_seconds)


def without_gaps(event: PartitionEvent) -> PartitionEvent:
    """The event as the driver gets it."""
    if not isinstance(event, PartitionBatch):
        return event
    return msgspec.structs.replace(event, boundaries=(), runs=b"", clock=b"")


def _without(known: bytes, vanished: CommitsVanished) -> bytes:
    commits = commits_table(known)
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
    skipped += Counter({FOREIGN_PARTITION: batch.foreign_records})
    runs = table_of(batch.runs, RUN_SCHEMA)
    known = live_table(snapshot.commits if batch.commits or batch.boundaries else b"")
    happened = Happened(batch.offsets_topic_partition, batch.boundaries, runs, batch.clock, missing_before)
    merged = merged_gaps(snapshot.gaps, known, happened, stuck_after_seconds)
    advanced = PartitionSnapshot(
        offsets_topic_partition=snapshot.offsets_topic_partition,
        last_offset=batch.last_offset,
        last_missing_offset=max(missing_before, batch.last_missing_offset),
        records_read=_added(snapshot.records_read, batch.records_read),
        records_skipped=_added(snapshot.records_skipped, skipped),
        commits=_live_after(known, batch, runs, merged)
        if batch.commits or merged.partition_commits
        else snapshot.commits,
        gaps=merged.gaps,
    )
    return advanced, _reported(snapshot.gaps, merged)


def _reported(before: PartitionGaps, merged: MergedGaps) -> GapsClosed | None:
    """What the driver is to hear of; a group that ended is known by its name before."""
    if not merged.closed and not merged.touched:
        return None
    after = merged.gaps.groups
    ended = {before.groups[group].group_id: None for group in merged.touched - after.keys() if group in before.groups}
    kept = {after[group].group_id: after[group].totals for group in merged.touched & after.keys()}
    return GapsClosed(merged.closed, {**ended, **kept})


def _added(totals: dict[str, int], increments: dict[str, int]) -> dict[str, int]:
    return {kind: totals.get(kind, 0) + increments.get(kind, 0) for kind in sorted({*totals, *increments})}


def _live_after(known: pa.Table, batch: PartitionBatch, runs: pa.Table, merged: MergedGaps) -> bytes:
    early = of_boundary(runs, is_before_any=True)
    return commits_bytes(live_commits(known, commits_table(batch.commits), early, merged.partition_commits))


def commits_bytes(commits: pa.Table) -> bytes:
    """Commits as an LZ4-compressed Arrow IPC stream; no bytes at all for no rows."""
    if commits.num_rows == 0:
        return b""
    stream = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(stream, commits.schema, options=options) as writer:
        writer.write_table(commits.combine_chunks())
    encoded: bytes = stream.getvalue().to_pybytes()
    return encoded


def commits_table(encoded: bytes) -> pa.Table:
    """The commits of `commits_bytes`; of a lane's, what it keeps beside them too."""
    return table_of(encoded, COMMIT_SCHEMA)


def live_table(encoded: bytes) -> pa.Table:
    """The live commits of a lane."""
    return table_of(encoded, LIVE_SCHEMA)


def table_of(encoded: bytes, schema: pa.Schema) -> pa.Table:
    """The table of `commits_bytes`; `schema` is that of an empty one."""
    return pa.ipc.open_stream(encoded).read_all() if encoded else schema.empty_table()
