"""Tests that the bulk readers agree with Python for any Arrow array: nulls, slices, empty strings, 64-bit offsets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.combine.big_endian import BinaryColumn

KINDS = st.sampled_from([pa.binary(), pa.large_binary()])
ROWS = st.lists(st.none() | st.binary(max_size=12), min_size=1, max_size=12)


@given(ROWS, KINDS, st.data())
def test_every_row_is_found_in_any_slice(rows: list[bytes | None], kind: pa.DataType, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(rows) - 1))
    count = data.draw(st.integers(1, len(rows) - start))
    column = BinaryColumn.of(pa.array(rows, kind).slice(start, count))
    content = column.content.tobytes()
    found = [
        None if length < 0 else content[begin : begin + length]
        for begin, length in zip(column.start.tolist(), column.length.tolist(), strict=True)
    ]
    assert found == rows[start : start + count]


@given(st.lists(st.binary(min_size=8, max_size=12), min_size=1, max_size=5), st.sampled_from([1, 2, 4, 8]))
def test_integers_are_signed_and_big_endian(rows: list[bytes], width: int) -> None:
    column = BinaryColumn.of(pa.array(rows))
    assert column.int_at(column.start, width).tolist() == [
        int.from_bytes(row[:width], "big", signed=True) for row in rows
    ]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize("rows", [[None, None], [b"", b""], [None, b""]])
def test_a_column_without_a_single_byte_reads_as_zeros(rows: list[bytes | None], kind: pa.DataType) -> None:
    column = BinaryColumn.of(pa.array(rows, kind))
    assert column.int_at(column.start, 8).tolist() == [0, 0]
    assert column.length.tolist() == [-1 if row is None else 0 for row in rows]


def test_positions_outside_the_buffer_do_not_raise() -> None:
    """Callers compute positions for all rows and drop invalid ones later by the length."""
    column = BinaryColumn.of(pa.array([b"ab"]))
    column.int_at(np.array([-(2**62), -1, 2, 2**62]), 8)


def test_a_null_row_with_bytes_beneath_it_is_null() -> None:
    """Arrow allows bytes in a null slot."""
    validity, offsets = pa.py_buffer(b"\x02"), pa.py_buffer(np.array([0, 2, 4], np.int32).tobytes())
    array = pa.Array.from_buffers(pa.binary(), 2, [validity, offsets, pa.py_buffer(b"abcd")])
    assert BinaryColumn.of(array).length.tolist() == [-1, 2]
