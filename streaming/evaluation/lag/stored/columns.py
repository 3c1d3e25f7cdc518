"""Encode columns as bytes (a compressed Arrow IPC stream), and decode columns of a known version."""

from __future__ import annotations

import pyarrow as pa

from streaming.group.codec import StateVersionError


def encode_columns(columns: pa.Table) -> bytes:
    """Return the columns as bytes. ZSTD is used, because offsets and times need half as many bytes as with LZ4."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, columns.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(columns)
    encoded: bytes = stream.getvalue().to_pybytes()
    return encoded


def decode_columns(version: int, encoded: bytes, known_version: int) -> pa.Table:
    """Return the columns that `encode_columns` encoded, each as one chunk.

    Raises StateVersionError if the version is unknown.
    """
    if version != known_version:
        raise StateVersionError(f"they have version {version}, but this monitor reads version {known_version}")
    return pa.ipc.open_stream(encoded).read_all().combine_chunks()
