"""What one Kafka partition contributes to one batch, and what is remembered of it between batches.

Everything that is not membership travels in the lane of its Kafka partition: reduced commits, quarantined records and
counts. The lane's snapshot is the durable truth of the last commits: a monitor that starts again while every client is
idle knows them from here.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.commits import COMMIT_SCHEMA, TOMBSTONE, last_per_key
from streaming.group.codec import StateCodec


class QuarantinedRecord(msgspec.Struct, frozen=True):
    """A record nobody could read, whole, with the reason."""

    kafka_partition: int
    kafka_offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    reason: str
    field: str | None


class PartitionBatch(msgspec.Struct, frozen=True, tag="batch"):
    """One Kafka partition's part of one batch.

    `last_missing_offset` is the highest offset between `first_offset` and `last_offset` that told us nothing: not
    handed out (compacted away, aborted, or a transaction marker), or quarantined; -1 where there is none. `commits` is
    an Arrow IPC stream.
    """

    kafka_partition: int
    first_offset: int
    last_offset: int
    last_missing_offset: int
    records_read: dict[str, int]
    quarantined: tuple[QuarantinedRecord, ...]
    commits: bytes


class CommitsVanished(msgspec.Struct, frozen=True, tag="commits_vanished"):
    """Commits the coordinator knows no more, and no record says so: key and log offset of each.

    It is about the commit at that offset; a later one of the same key makes it void.
    """

    keys: tuple[bytes, ...]
    kafka_offsets: tuple[int, ...]


PartitionEvent = PartitionBatch | CommitsVanished


class PartitionSnapshot(msgspec.Struct, frozen=True):
    """One Kafka partition as read so far: counts are absolute, `commits` holds the last commit of every live key."""

    kafka_partition: int
    last_offset: int = -1
    last_missing_offset: int = -1
    records_read: dict[str, int] = {}
    records_skipped: dict[str, int] = {}
    commits: bytes = b""


LANE_CODEC = StateCodec(PartitionSnapshot, version=1)

_EVENT_ENCODER = msgspec.msgpack.Encoder()
_EVENT_DECODER: msgspec.msgpack.Decoder[PartitionEvent] = msgspec.msgpack.Decoder(PartitionEvent)


def encode_partition_event(event: PartitionEvent) -> bytes:
    """An event for the way between processes (never stored: it has no version)."""
    return _EVENT_ENCODER.encode(event)


def decode_partition_event(encoded: bytes) -> PartitionEvent:
    """The event of `encode_partition_event`."""
    return _EVENT_DECODER.decode(encoded)


def merge_lane(snapshot: PartitionSnapshot, event: PartitionEvent) -> PartitionSnapshot:
    """The snapshot after the event. A batch that starts behind the last offset leaves everything as it is."""
    if isinstance(event, CommitsVanished):
        return msgspec.structs.replace(snapshot, commits=_without(snapshot.commits, event))
    return _merge_batch(snapshot, event)


def _without(known: bytes, vanished: CommitsVanished) -> bytes:
    commits = commits_table(known)
    gone = dict(zip(vanished.keys, vanished.kafka_offsets, strict=True))
    rows = zip(commits["key"].to_pylist(), commits["kafka_offset"].to_pylist(), strict=True)
    stays = [gone.get(key) != kafka_offset for key, kafka_offset in rows]
    return commits_bytes(commits.filter(pa.array(stays, pa.bool_())))


def _merge_batch(snapshot: PartitionSnapshot, batch: PartitionBatch) -> PartitionSnapshot:
    if batch.first_offset <= snapshot.last_offset:
        return snapshot
    missing_before = batch.first_offset - 1 if batch.first_offset > snapshot.last_offset + 1 else -1
    skipped = Counter(record.reason for record in batch.quarantined)
    return PartitionSnapshot(
        kafka_partition=snapshot.kafka_partition,
        last_offset=batch.last_offset,
        last_missing_offset=max(snapshot.last_missing_offset, missing_before, batch.last_missing_offset),
        records_read=_added(snapshot.records_read, batch.records_read),
        records_skipped=_added(snapshot.records_skipped, skipped),
        commits=_merge_commits(snapshot.commits, batch.commits),
    )


def _added(totals: dict[str, int], increments: dict[str, int]) -> dict[str, int]:
    return {kind: totals.get(kind, 0) + increments.get(kind, 0) for kind in sorted({*totals, *increments})}


def _merge_commits(known: bytes, newer: bytes) -> bytes:
    if not newer:
        return known
    merged = last_per_key(pa.concat_tables([commits_table(known), commits_table(newer)]))
    alive = merged.filter(pc.not_equal(merged["committed_offset"], TOMBSTONE))
    return commits_bytes(alive)


def commits_bytes(commits: pa.Table) -> bytes:
    """Commits as an LZ4-compressed Arrow IPC stream; no bytes at all for no rows."""
    if commits.num_rows == 0:
        return b""
    stream = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(stream, COMMIT_SCHEMA, options=options) as writer:
        writer.write_table(commits.combine_chunks())
    encoded: bytes = stream.getvalue().to_pybytes()
    return encoded


def commits_table(encoded: bytes) -> pa.Table:
    """The commits of `commits_bytes`."""
    if not encoded:
        return COMMIT_SCHEMA.empty_table()
    return pa.ipc.open_stream(encoded).read_all()
