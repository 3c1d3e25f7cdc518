"""Compresses large values that processes send to each other during a batch.

A record of a group with 1,000 members can have a size of 1 MB. Such a record repeats the names of topics and clients,
so Zstandard reduces its size to a tenth. Without compression, many of these records in one batch do not fit into the
heap of Spark's JVM. Then every restart of the monitor fails at the same batch.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

LARGE_BYTES = 64 << 10
"""Minimum size of a value that is compressed. For smaller values, compression costs more than it saves."""

_MARK = b"\xc1"
"""The first byte of a compressed value. MessagePack does not use this byte."""


def compressed(encoded: bytes) -> bytes:
    """Return the uncompressed length in four bytes, then one Zstandard frame."""
    frame: bytes = pa.compress(encoded, codec="zstd", asbytes=True)
    return len(encoded).to_bytes(4, "big") + frame


def decompressed(content: bytes) -> bytes:
    """Return the original bytes of a value that `compressed` compressed."""
    length = int.from_bytes(content[:4], "big")
    encoded: bytes = pa.decompress(content[4:], decompressed_size=length, codec="zstd", asbytes=True)
    return encoded


def compressed_if_large(encoded: bytes) -> bytes:
    """Compress a MessagePack value if it is large."""
    return _MARK + compressed(encoded) if len(encoded) >= LARGE_BYTES else encoded


def decompressed_if_large(content: bytes) -> bytes:
    """Return the original bytes of a result of `compressed_if_large`. Raises msgspec.DecodeError for damaged bytes."""
    if not content.startswith(_MARK):
        return content
    try:
        return decompressed(content[len(_MARK) :])
    except (OSError, ValueError) as damaged:
        raise msgspec.DecodeError(f"compressed value: {damaged}") from None
