"""Where the next record stands in what a broker returned for a fetch, without reading any record.

An offset is no record: transaction markers have offsets, compaction removes records and keeps their offsets, and an
empty batch is kept for the state of its producer. The headers of the batches show which is which.

Source: Kafka, `DefaultRecordBatch.java` (magic 2) and `AbstractLegacyRecordBatch.java` (magic 0 and 1).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_LEGACY = struct.Struct(">qiiB")
"""Base offset, size of what follows, partition leader epoch (or checksum), magic: common to all versions."""
_BATCH = struct.Struct(">qiiBIhiqqqhii")
"""From magic 2 on also: checksum, attributes, last offset delta, two times, producer, epoch, sequence, count."""
_SIZE_IS_OF_THE_REST_AFTER = 12
_CONTROL = 0x20


@dataclass(frozen=True, slots=True)
class Tail:
    """What one look at a log found: no record before `next_offset`, and one at it if `is_record`."""

    next_offset: int
    is_record: bool


def next_record(batches: bytes, from_offset: int) -> Tail | None:
    """Find the first record at or after an offset; None where the headers do not show it.

    They do not in a compacted batch that begins before the offset: its last records may be gone.

    >>> next_record(b"", 7)
    Tail(next_offset=7, is_record=False)
    """
    at, next_offset = 0, from_offset
    while len(batches) - at >= _LEGACY.size:
        base_offset, size, _, magic = _LEGACY.unpack_from(batches, at)
        if magic < 2:
            if base_offset >= from_offset:
                return Tail(next_offset, is_record=True)
        elif len(batches) - at < _BATCH.size:
            break
        else:
            _, _, _, _, _, attributes, last_delta, _, _, _, _, _, records = _BATCH.unpack_from(batches, at)
            last_offset = base_offset + last_delta
            if last_offset >= from_offset:
                if records > 0 and not attributes & _CONTROL:
                    return _record_in(base_offset, last_delta, records, next_offset)
                next_offset = max(next_offset, last_offset + 1)
        at += _SIZE_IS_OF_THE_REST_AFTER + max(size, 1)
    return Tail(next_offset, is_record=False)


def _record_in(base_offset: int, last_delta: int, records: int, next_offset: int) -> Tail | None:
    """A batch that has records and does not end before `next_offset`. Compaction keeps the offsets of a batch."""
    if base_offset >= next_offset:
        return Tail(base_offset, is_record=True)
    return Tail(next_offset, is_record=True) if records == last_delta + 1 else None
