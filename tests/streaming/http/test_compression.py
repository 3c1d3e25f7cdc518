"""Tests of the compression of responses."""

from __future__ import annotations

import doctest
import zlib

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import streaming.http.compression
from streaming.http.compression import MIN_PIECE_BYTES, compress_gzip

AS_GZIP = 31


def decompress(member: bytes) -> bytes:
    """Return the content of the only gzip member. Many clients silently ignore a second member."""
    reader = zlib.decompressobj(AS_GZIP)
    content = reader.decompress(member)
    assert reader.eof
    assert not reader.unused_data
    return content


@given(st.lists(st.binary(max_size=100)))
def test_any_pieces_are_decompressed_to_their_concatenation(pieces: list[bytes]) -> None:
    """No byte is lost or repeated, also without any piece."""
    assert decompress(compress_gzip(pieces)) == b"".join(pieces)


def test_pieces_larger_than_one_compression_step_are_decompressed_correctly() -> None:
    """Columns of Arrow are as large as this, with small cached texts of groups between them."""
    large = b"".join(b"%d\n" % number for number in range(MIN_PIECE_BYTES // 6))
    pieces = [b"# HELP\n", pa.py_buffer(large), b"small\n", pa.py_buffer(b""), large[: MIN_PIECE_BYTES - 1], large]
    assert decompress(compress_gzip(pieces)) == b"".join(pieces)


def test_text_becomes_much_smaller() -> None:
    """Compression pays off because series repeat long names and labels."""
    text = b"".join(b'rebalance_monitor_partition_lag{group="billing",partition="%d"} 7.0\n' % n for n in range(10_000))
    assert len(compress_gzip([text])) * 5 < len(text)


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.http.compression).failed == 0
