"""Markers, empty batches and holes are offsets without records; only headers are read."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecordsBuilder

from streaming.protocol.record_batches import Tail, next_record

RECORD, MARKER = 0, 0x20 | 0x10


def batch(base_offset: int, offsets: int, *, records: int | None = None, attributes: int = RECORD) -> bytes:
    """Return a batch of magic 2 that covers some offsets; its records are left out, as nothing reads them."""
    count = offsets if records is None else records
    rest = struct.pack(">iBIhiqqqhii", 0, 2, 0, attributes, offsets - 1, 0, 0, -1, -1, -1, count)
    return struct.pack(">qi", base_offset, len(rest)) + rest


def marker(offset: int) -> bytes:
    """Return the end of a transaction."""
    return batch(offset, 1, attributes=MARKER)


CASES = [
    (b"", 5, Tail(5, is_record=False), "nothing follows"),
    (marker(5), 5, Tail(6, is_record=False), "a marker alone"),
    (marker(5) + marker(6), 5, Tail(7, is_record=False), "two in a row"),
    (batch(0, 5) + marker(5), 5, Tail(6, is_record=False), "the batch before the commit comes along"),
    (marker(5) + batch(6, 2), 5, Tail(6, is_record=True), "a record after the marker waits"),
    (batch(5, 3), 5, Tail(5, is_record=True), "a record at the commit"),
    (batch(3, 5), 5, Tail(5, is_record=True), "a record in the middle of a batch"),
    (batch(5, 3, records=0), 5, Tail(8, is_record=False), "an empty batch, kept for its producer"),
    (batch(9, 1), 5, Tail(9, is_record=True), "compaction removed 5 to 8"),
    (batch(3, 5, records=2), 5, None, "a compacted batch: its records may all stand before 5"),
    (batch(6, 5, records=2), 5, Tail(6, is_record=True), "a compacted batch after the commit has a record"),
    (marker(5) + batch(6, 2)[:30], 5, Tail(6, is_record=False), "a batch cut off shows nothing"),
]


@pytest.mark.parametrize(("batches", "offset", "tail", "why"), CASES, ids=[why for *_, why in CASES])
def test_only_a_record_is_something_to_read(batches: bytes, offset: int, tail: Tail | None, why: str):
    """A group that had read everything was shown one record late for ever: the last offset was a marker."""
    assert next_record(batches, offset) == tail, why


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("offset", [0, 1, 2])
def test_batches_as_a_client_writes_them_are_read(magic: int, offset: int):
    """Old brokers keep messages of magic 0 and 1, which know no transactions."""
    builder = MemoryRecordsBuilder(magic, 0, 10_000)
    for number in range(3):
        builder.append(timestamp=1_000 + number, key=None, value=b"v", headers=[])
    builder.close()
    assert next_record(builder.buffer(), offset) == Tail(offset, is_record=True)
    assert next_record(builder.buffer(), 3) == Tail(3, is_record=False)


@given(st.binary(max_size=200), st.integers(0, 100))
def test_any_bytes_end(garbage: bytes, offset: int):
    """Law 4: whatever a broker returns, reading it ends and never goes back."""
    tail = next_record(garbage, offset)
    assert tail is None or tail.next_offset >= offset
