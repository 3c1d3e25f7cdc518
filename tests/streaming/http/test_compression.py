"""Answers, compressed."""

from __future__ import annotations

import doctest
import zlib

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import streaming.http.compression
from streaming.http.compression import MIN_PIECE_BYTES, compress_gzip

AS_GZIP = 31


def unzipped(member: bytes) -> bytes:
    """Return the content of the only member there is: many clients read no second one, and say nothing."""
    reader = zlib.decompressobj(AS_GZIP)
    content = reader.decompress(member)
    assert reader.eof
    assert not reader.unused_data
    return content


@given(st.lists(st.binary(max_size=100)))
def test_any_pieces_come_back_as_one(pieces: list[bytes]) -> None:
    """Rule: nothing lost, nothing twice; also of nothing."""
    assert unzipped(compress_gzip(pieces)) == b"".join(pieces)


def test_pieces_beyond_what_is_compressed_at_once_come_back_too() -> None:
    """Arrow's columns are as large as this, what is kept of groups stands between them."""
    large = b"".join(b"%d\n" % number for number in range(MIN_PIECE_BYTES // 6))
    pieces = [b"# HELP\n", pa.py_buffer(large), b"small\n", pa.py_buffer(b""), large[: MIN_PIECE_BYTES - 1], large]
    assert unzipped(compress_gzip(pieces)) == b"".join(pieces)


def test_text_becomes_much_smaller() -> None:
    """What it is done for: a series is a long name and long labels, again and again."""
    text = b"".join(b'rebalance_monitor_partition_lag{group="billing",partition="%d"} 7.0\n' % n for n in range(10_000))
    assert len(compress_gzip([text])) * 5 < len(text)


def test_the_examples_hold() -> None:
    assert doctest.testmod(streaming.http.compression).failed == 0
