"""Finds the offset of the next record in a fetch response. Only the batch headers are read, not the records.

Some offsets have no record that a consumer reads. Transaction markers use offsets. Compaction removes records, and can
keep an empty batch, because the batch header stores the state of a producer. Records of aborted transactions are in the
response, but consumers with read_committed skip them.

Source: Kafka, `DefaultRecordBatch.java` (magic 2) and `AbstractLegacyRecordBatch.java` (magic 0 and 1).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

_LEGACY = struct.Struct(">qiiB")
"""The header fields of all versions: base offset, size of the rest, partition leader epoch (or checksum), magic."""
_BATCH = struct.Struct(">qiiBIhiqqqhii")
"""The header fields of magic 2: the fields of `_LEGACY`, then checksum, attributes, last offset delta, two timestamps,
producer id, producer epoch, sequence and number of records."""
_BYTES_BEFORE_REST = 12
"""Total number of bytes of the base offset and the size field. The size field does not count these bytes."""
_TRANSACTIONAL = 0x10
_CONTROL = 0x20


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """An aborted transaction: the producer, and the offset of the transaction's first record in the partition."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class Tail:
    """The result of a search for the next record.

    The search found no record before `next_offset`. `is_record` is True if the search found a record that consumers
    with read_committed also read. `read_to` is the offset of this record, or the offset at which the search ended.
    Records from `next_offset` to `read_to` belong to aborted transactions. `is_transactional` is True if the search
    found a transaction marker or a record of a transaction.
    """

    next_offset: int
    is_record: bool
    read_to: int
    is_transactional: bool = False


def next_record(batches: bytes, from_offset: int, aborted: Iterable[AbortedTransaction] = ()) -> Tail | None:
    """Find the first record at or after an offset. Return None if the batch headers do not show this record.

    The record is unknown if the offset is in a compacted batch, but is not the first offset of the batch.

    >>> next_record(b"", 7)
    Tail(next_offset=7, is_record=False, read_to=7, is_transactional=False)
    """
    tail, still_aborted = Tail(from_offset, is_record=False, read_to=from_offset), list(aborted)
    for batch in _batches(batches):
        if batch.attributes & (_CONTROL | _TRANSACTIONAL):
            tail = replace(tail, is_transactional=True)
        if batch.attributes & _CONTROL:
            still_aborted = [one for one in still_aborted if not _belongs_to(batch, one)]
        if batch.last_offset < from_offset:
            continue
        if not batch.records or batch.attributes & _CONTROL:
            tail = _read_past(tail, batch, tail.next_offset if _has_skipped_records(tail) else batch.last_offset + 1)
            continue
        record = _first_in(batch, from_offset)
        if record is None:
            return None
        next_offset = tail.next_offset if _has_skipped_records(tail) else record
        if not (batch.attributes & _TRANSACTIONAL and any(_belongs_to(batch, one) for one in still_aborted)):
            return Tail(next_offset, is_record=True, read_to=record, is_transactional=tail.is_transactional)
        tail = _read_past(tail, batch, next_offset)
    return tail


def batch_times(batches: bytes) -> Iterator[tuple[int, int]]:
    """For each batch of magic 2, yield the first offset and the timestamp of the first record in milliseconds."""
    for batch in _batches(batches):
        if batch.timestamp_ms is not None:
            yield batch.base_offset, batch.timestamp_ms


@dataclass(frozen=True, slots=True)
class _Batch:
    base_offset: int
    last_offset: int
    attributes: int
    producer_id: int
    records: int
    timestamp_ms: int | None = None


def _batches(content: bytes) -> Iterator[_Batch]:
    """Return the headers of complete batches. A message of magic 0 or 1 is a batch with one record."""
    at = 0
    while len(content) - at >= _LEGACY.size:
        base_offset, size, _, magic = _LEGACY.unpack_from(content, at)
        if magic < 2:
            yield _Batch(base_offset, base_offset, 0, -1, 1)
        elif len(content) - at < _BATCH.size:
            return
        else:
            header = _BATCH.unpack_from(content, at)
            attributes, last_delta, timestamp_ms, producer_id, records = (header[field] for field in (5, 6, 7, 9, 12))
            last_offset = base_offset + last_delta
            yield _Batch(base_offset, last_offset, attributes, producer_id, max(records, 0), timestamp_ms)
        at += _BYTES_BEFORE_REST + max(size, 1)


def _first_in(batch: _Batch, from_offset: int) -> int | None:
    """Return the first record at or after an offset. The batch must have records, and must end at or after the offset.

    Compaction does not change the offsets in a batch header. So if the batch has as many records as offsets, each
    offset has a record. If records are missing in a batch that starts before the offset, the result is None.
    """
    if batch.base_offset >= from_offset:
        return batch.base_offset
    return from_offset if batch.records == batch.last_offset - batch.base_offset + 1 else None


def _has_skipped_records(tail: Tail) -> bool:
    return tail.next_offset < tail.read_to


def _read_past(tail: Tail, batch: _Batch, next_offset: int) -> Tail:
    return replace(tail, next_offset=next_offset, read_to=max(tail.read_to, batch.last_offset + 1))


def _belongs_to(batch: _Batch, transaction: AbortedTransaction) -> bool:
    """Return True if a transactional batch or a marker belongs to a transaction that no earlier marker has ended.

    A producer has only one transaction at a time. So the first such marker ends the transaction.
    """
    return batch.producer_id == transaction.producer_id and batch.last_offset >= transaction.first_offset
