"""Tests of the highest missing offset below each record of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.combine import combiner
from streaming.combine.batch import RecordsBatch
from streaming.combine.big_endian import Int64Array
from streaming.combine.combiner import Combiner
from tests.streaming.log_records import LogRecord, commit_key, commit_value, record_batch

UNDECODABLE = (b"\x00\x63", b"")


@st.composite
def batches(draw: Callable[..., Any]) -> tuple[RecordsBatch, list[int]]:
    """Draw a batch with records of several partitions, each in log order, and the rows of undecodable records."""
    partitions = draw(st.lists(st.integers(0, 2), min_size=1, max_size=20))
    jumps = [draw(st.integers(1, 3)) for _ in partitions]
    offsets = [sum(jumps[: at + 1]) for at in range(len(partitions))]
    records = [
        LogRecord(commit_key("g"), commit_value(1), partition, offset)
        for partition, offset in zip(partitions, offsets, strict=True)
    ]
    batch = RecordsBatch(record_batch(records))
    batch.missing_below[:] = [draw(st.integers(-1, offset - 1)) for offset in offsets]
    return batch, sorted(draw(st.sets(st.integers(0, len(partitions) - 1))))


@given(batches())
def test_each_undecodable_record_is_missing_for_all_later_records_of_its_partition(
    drawn: tuple[RecordsBatch, list[int]],
) -> None:
    """The expected values follow the definition: one pass over the batch for each undecodable record."""
    batch, undecodable = drawn
    expected = batch.missing_below.copy()
    for row in range(len(expected)):
        assert batch.missing_below_row(row) == expected[row]
        if row in undecodable:
            is_later = (batch.offsets_topic_partition == batch.offsets_topic_partition[row]) & (
                batch.offsets_topic_offset > batch.offsets_topic_offset[row]
            )
            expected[is_later] = np.maximum(expected[is_later], batch.offsets_topic_offset[row])
            batch.mark_missing(row)
    batch.apply_missing()
    assert batch.missing_below.tolist() == expected.tolist()


class _Counted(np.ndarray):  # type: ignore[type-arg]
    """A column that counts the elements that numpy reads from it."""

    read = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        plain = [value.view(np.ndarray) if isinstance(value, _Counted) else value for value in inputs]
        _Counted.read += sum(value.size for value in plain if isinstance(value, np.ndarray))
        return getattr(ufunc, method)(*plain, **options)


class _CountedBatch(RecordsBatch):
    def __init__(self, records: pa.RecordBatch) -> None:
        super().__init__(records)
        self.offsets_topic_partition: Int64Array = self.offsets_topic_partition.view(_Counted)
        self.offsets_topic_offset: Int64Array = self.offsets_topic_offset.view(_Counted)


def test_a_batch_of_undecodable_records_costs_a_few_passes_over_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: hostile input. Each undecodable record cost a pass over the batch, so the cost was quadratic."""
    monkeypatch.setattr(combiner, "RecordsBatch", _CountedBatch)
    records = 2000
    batch = record_batch([LogRecord(*UNDECODABLE, at % 2, at) for at in range(records)])
    _Counted.read = 0
    Combiner().add(batch)
    assert 0 < _Counted.read < 50 * records
