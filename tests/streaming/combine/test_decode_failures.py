"""Tests that a batch of undecodable records stays small, and that each of its records counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.combine import decode_failures
from streaming.combine.combiner import Combiner
from streaming.combine.decode_failures import KEPT_BYTES, PREFIX_BYTES, DecodeFailures
from streaming.combine.partition_state import (
    DecodeFailure,
    FailureSummary,
    PartitionBatch,
    PartitionSnapshot,
    advance_partition,
    decode_partition_event,
)
from streaming.events import Position
from streaming.protocol import UndecodableRecord
from tests.streaming.log_records import LogRecord, record_batch

UNKNOWN_TYPE = b"\x00\x63"
TRUNCATED = UndecodableRecord("truncated", "value.members")


def test_a_batch_of_large_undecodable_records_is_small_and_each_record_counts() -> None:
    """Each record was kept whole. A batch of 1,000 records of 1 MB exceeded the driver's memory at every restart."""
    combiner = Combiner()
    for first in range(0, 1_000, 100):
        combiner.add(record_batch([LogRecord(UNKNOWN_TYPE, bytes(50_000), 0, first + at, 7) for at in range(100)]))
    ((_, _, payload),) = combiner.rows()
    assert len(payload) < 1.1 * KEPT_BYTES
    batch = decode_partition_event(payload)
    assert isinstance(batch, PartitionBatch)
    kept = len(batch.decode_failures)
    assert kept == KEPT_BYTES // (PREFIX_BYTES + decode_failures.FIXED_BYTES + len(UNKNOWN_TYPE))
    assert batch.failure_summaries == (FailureSummary("unknown_record_type", 1_000 - kept, kept, Position(0, 999, 7)),)
    state = advance_partition(PartitionSnapshot(0), batch)[0]
    assert state.records_skipped == {"unknown_record_type": 1_000}
    assert advance_partition(state, batch)[0] == state, "a repeated batch counts once"


def test_a_long_key_or_value_is_cut_and_its_size_is_known() -> None:
    failures = DecodeFailures()
    failures.add(Position(1, 2, 3), b"k" * (PREFIX_BYTES + 1), b"v" * PREFIX_BYTES, TRUNCATED)
    failures.add(Position(1, 3, 3), None, None, TRUNCATED)
    cut, whole = b"k" * PREFIX_BYTES, b"v" * PREFIX_BYTES
    assert failures.kept() == (
        DecodeFailure(1, 2, 3, cut, whole, "truncated", "value.members", PREFIX_BYTES + 1, PREFIX_BYTES),
        DecodeFailure(1, 3, 3, None, None, "truncated", "value.members", None, None),
    )
    assert failures.summaries() == ()


@given(st.lists(st.tuples(st.sampled_from(["truncated", "null_field"]), st.binary(max_size=4_000)), max_size=60))
def test_each_record_is_either_kept_or_part_of_one_summary(records: list[tuple[str, bytes]]) -> None:
    with pytest.MonkeyPatch.context() as limit:
        limit.setattr(decode_failures, "KEPT_BYTES", 20_000)
        failures = DecodeFailures()
        for offset, (reason, value) in enumerate(records):
            failures.add(Position(0, offset, 0), b"k", value, UndecodableRecord(reason))
    kept = [one.offsets_topic_offset for one in failures.kept()]
    assert kept == list(range(len(kept)))
    for summary in failures.summaries():
        offsets = [at for at, (reason, _) in enumerate(records) if reason == summary.reason and at >= len(kept)]
        assert (summary.records, summary.first_offset) == (len(offsets), offsets[0])
        assert summary.last.offsets_topic_offset == offsets[-1]
    assert len(kept) + sum(summary.records for summary in failures.summaries()) == len(records)
