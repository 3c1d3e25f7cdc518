"""Tests of markers, empty batches and holes, which are offsets without records. Only headers are read."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecordsBuilder

from streaming.protocol.record_batches import AbortedTransaction, Tail, next_record

RECORD, TRANSACTIONAL, MARKER = 0, 0x10, 0x20 | 0x10


def batch(  # noqa: PLR0913 - one argument for each header field
    base_offset: int,
    offsets: int,
    *,
    records: int | None = None,
    attributes: int = RECORD,
    producer: int = -1,
    timestamp_ms: int = 0,
) -> bytes:
    """Return a batch of magic 2 that covers these offsets. Its records are left out, because no test reads them."""
    count = offsets if records is None else records
    times = (timestamp_ms, timestamp_ms)
    rest = struct.pack(">iBIhiqqqhii", 0, 2, 0, attributes, offsets - 1, *times, producer, -1, -1, count)
    return struct.pack(">qi", base_offset, len(rest)) + rest


def marker(offset: int, producer: int = 1) -> bytes:
    """Return the end marker of a transaction."""
    return batch(offset, 1, attributes=MARKER, producer=producer)


def in_transaction(offset: int, records: int, producer: int = 1) -> bytes:
    """Return records of a transaction."""
    return batch(offset, records, attributes=TRANSACTIONAL, producer=producer)


def nothing(read_to: int) -> Tail:
    """Return the result without a record."""
    return Tail(read_to, is_record=False, read_to=read_to)


def record(offset: int) -> Tail:
    """Return the result with a record."""
    return Tail(offset, is_record=True, read_to=offset)


def without_proof(tail: Tail | None) -> Tail | None:
    """Return the result without the proof that the topic has transactions."""
    return tail and replace(tail, is_transactional=False)


CASES = [
    (b"", 5, nothing(5), "no batch follows"),
    (marker(5), 5, nothing(6), "only a marker"),
    (marker(5) + marker(6), 5, nothing(7), "two markers in a row"),
    (batch(0, 5) + marker(5), 5, nothing(6), "the fetch also returns the batch before the commit"),
    (marker(5) + batch(6, 2), 5, record(6), "a record after the marker waits"),
    (batch(5, 3), 5, record(5), "a record at the commit"),
    (batch(3, 5), 5, record(5), "a record in the middle of a batch"),
    (batch(5, 3, records=0), 5, nothing(8), "an empty batch, which the broker keeps for its producer"),
    (batch(9, 1), 5, record(9), "compaction removed 5 to 8"),
    (batch(3, 5, records=2), 5, None, "a compacted batch: all of its records may be before 5"),
    (batch(6, 5, records=2), 5, record(6), "a compacted batch after the commit has a record"),
    (marker(5) + batch(6, 2)[:30], 5, nothing(6), "a truncated batch shows nothing"),
]


@pytest.mark.parametrize(("batches", "offset", "tail", "why"), CASES, ids=[why for *_, why in CASES])
def test_only_a_record_counts_as_something_to_read(batches: bytes, offset: int, tail: Tail | None, why: str):
    """Before, a group that had read all records was always one record late, because the last offset was a marker."""
    assert without_proof(next_record(batches, offset)) == tail, why


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("offset", [0, 1, 2])
def test_batches_in_a_clients_format_are_read(magic: int, offset: int):
    """Old brokers keep messages of magic 0 and 1, which have no transactions."""
    builder = MemoryRecordsBuilder(magic, 0, 10_000)
    for number in range(3):
        builder.append(timestamp=1_000 + number, key=None, value=b"v", headers=[])
    builder.close()
    assert next_record(builder.buffer(), offset) == record(offset)
    assert next_record(builder.buffer(), 3) == nothing(3)


ABORTED = [
    (in_transaction(5, 3) + marker(8), Tail(5, is_record=False, read_to=9), "only an aborted transaction"),
    (marker(5, 9) + in_transaction(6, 3) + marker(9), Tail(6, is_record=False, read_to=10), "after a marker"),
    (in_transaction(5, 3) + marker(8) + batch(9, 1), Tail(5, is_record=True, read_to=9), "a record follows"),
    (in_transaction(5, 3) + marker(8) + in_transaction(9, 1), Tail(5, is_record=True, read_to=9), "its next one"),
    (in_transaction(5, 3, producer=2), record(5), "the producer did not abort"),
    (batch(5, 3, producer=1), record(5), "the producer aborted, but the batch is not in a transaction"),
    (
        in_transaction(3, 4) + marker(7),
        Tail(5, is_record=False, read_to=8),
        "the commit is in the middle of the aborted transaction",
    ),
]


@pytest.mark.parametrize(("batches", "tail", "why"), ABORTED, ids=[why for *_, why in ABORTED])
def test_records_of_aborted_transactions_are_records_only_for_some_consumers(batches: bytes, tail: Tail, why: str):
    """With librdkafka, a group commits the offset after the last delivered record. Aborted records can follow."""
    found = next_record(batches, 5, [AbortedTransaction(producer_id=1, first_offset=3)])
    assert without_proof(found) == tail, why


@pytest.mark.parametrize(
    ("batches", "is_transactional", "why"),
    [
        (marker(5), True, "a marker"),
        (in_transaction(5, 3), True, "a record of a transaction"),
        (batch(3, 2) + marker(5) + batch(6, 1), True, "a marker before the record"),
        (marker(4) + batch(5, 1), True, "a marker before the commit"),
        (batch(5, 3, producer=1), False, "an idempotent producer without transactions"),
        (batch(5, 3, records=0, producer=1), False, "compaction removed the records"),
        (batch(5, 1) + marker(6), False, "the search ends at the first record"),
        (b"", False, "nothing"),
    ],
)
def test_a_marker_or_a_record_of_a_transaction_proves_that_the_topic_has_transactions(
    batches: bytes, is_transactional: bool, why: str
):
    """A hole that compaction left proves nothing. Otherwise, a backlog of a compacted topic could become unknown."""
    found = next_record(batches, 5)
    assert found is not None
    assert found.is_transactional == is_transactional, why


@given(st.binary(max_size=200), st.integers(0, 100))
def test_reading_ends_for_any_bytes(garbage: bytes, offset: int):
    """Rule 4: for any bytes from a broker, reading ends and never goes back."""
    tail = next_record(garbage, offset)
    assert tail is None or tail.next_offset >= offset
