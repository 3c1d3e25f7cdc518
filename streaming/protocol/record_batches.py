"""Where the next record stands in what a broker returned for a fetch, without reading any record.

An offset is no record: transaction markers have offsets, compaction removes records and keeps their offsets, and an
empty batch is kept for the state of its producer. Records of aborted transactions are there, and consumers under
read_committed skip them. The headers of the batches show which is which.

Source: Kafka, `DefaultRecordBatch.java` (magic 2) and `AbstractLegacyRecordBatch.java` (magic 0 and 1).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LEGACY = struct.Struct(">qiiB")
"""Base offset, size of what follows, partition leader epoch (or checksum), magic: common to all versions."""
_BATCH = struct.Struct(">qiiBIhiqqqhii")
"""From magic 2 on also: checksum, attributes, last offset delta, two times, producer, epoch, sequence, count."""
_SIZE_IS_OF_THE_REST_AFTER = 12
_TRANSACTIONAL = 0x10
_CONTROL = 0x20


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """Which producer's records, from which offset on, are of a transaction that was aborted."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class Tail:
    """What a look at a log found: no record before `next_offset`.

    With `is_record` a record follows that every consumer reads. Without it there is none before `read_to`; from
    `next_offset` on there may be records of aborted transactions, which consumers under read_committed skip.
    """

    next_offset: int
    is_record: bool
    read_to: int


def next_record(batches: bytes, from_offset: int, aborted: Iterable[AbortedTransaction] = ()) -> Tail | None:
    """Find the first record at or after an offset; None where the headers do not show it.

    They do not in a compacted batch that begins before the offset: its last records may be gone.

    >>> next_record(b"", 7)
    Tail(next_offset=7, is_record=False, read_to=7)
    """
    found, still_aborted = Tail(from_offset, is_record=False, read_to=from_offset), list(aborted)
    for batch in _batches(batches):
        if batch.attributes & _CONTROL:
            still_aborted = [one for one in still_aborted if not _ends(batch, one)]
        if batch.last_offset < from_offset:
            continue
        if not batch.records or batch.attributes & _CONTROL:
            found = _read_past(found, batch, found.next_offset if _has_skipped(found) else batch.last_offset + 1)
            continue
        record = _first_in(batch, from_offset)
        if record is None:
            return None
        next_offset = found.next_offset if _has_skipped(found) else record
        if not any(_is_of(batch, one) for one in still_aborted):
            return Tail(next_offset, is_record=True, read_to=record)
        found = _read_past(found, batch, next_offset)
    return found


@dataclass(frozen=True, slots=True)
class _Batch:
    base_offset: int
    last_offset: int
    attributes: int
    producer_id: int
    records: int


def _batches(content: bytes) -> Iterator[_Batch]:
    """The headers of whole batches. A message of magic 0 or 1 counts as a batch of one; it has no transaction."""
    at = 0
    while len(content) - at >= _LEGACY.size:
        base_offset, size, _, magic = _LEGACY.unpack_from(content, at)
        if magic < 2:
            yield _Batch(base_offset, base_offset, 0, -1, 1)
        elif len(content) - at < _BATCH.size:
            return
        else:
            _, _, _, _, _, attributes, last_delta, _, _, producer_id, _, _, records = _BATCH.unpack_from(content, at)
            yield _Batch(base_offset, base_offset + last_delta, attributes, producer_id, max(records, 0))
        at += _SIZE_IS_OF_THE_REST_AFTER + max(size, 1)


def _first_in(batch: _Batch, from_offset: int) -> int | None:
    """The first record at or after an offset, in a batch that has records and does not end before the offset.

    Compaction keeps the offsets of a batch, so one without holes has a record at each.
    """
    if batch.base_offset >= from_offset:
        return batch.base_offset
    return from_offset if batch.records == batch.last_offset - batch.base_offset + 1 else None


def _has_skipped(found: Tail) -> bool:
    return found.next_offset < found.read_to


def _read_past(found: Tail, batch: _Batch, next_offset: int) -> Tail:
    return Tail(next_offset, is_record=False, read_to=max(found.read_to, batch.last_offset + 1))


def _is_of(batch: _Batch, transaction: AbortedTransaction) -> bool:
    is_transactional = bool(batch.attributes & _TRANSACTIONAL)
    return is_transactional and _can_be_of(batch, transaction)


def _ends(marker: _Batch, transaction: AbortedTransaction) -> bool:
    """A producer has one transaction at a time: its next marker ends it."""
    return _can_be_of(marker, transaction)


def _can_be_of(batch: _Batch, transaction: AbortedTransaction) -> bool:
    return batch.producer_id == transaction.producer_id and batch.last_offset >= transaction.first_offset
