"""Bulk readers of big-endian fields in Arrow binary columns.

Every function takes positions into one byte buffer and answers for all of them at once. A position outside the buffer
reads as zero: callers check lengths first and never use such a value, but must be able to compute it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class BinaryColumn:
    """The bytes of a binary column: row i is `content[start[i] : start[i] + length[i]]`; a null row has length -1."""

    content: ByteArray
    start: Int64Array
    length: Int64Array

    @classmethod
    def of(cls, column: pa.Array) -> BinaryColumn:
        """Look at an Arrow binary or large_binary array without copying its bytes."""
        _, offsets_buffer, content_buffer = column.buffers()
        width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
        rows = len(column)
        offsets = np.frombuffer(offsets_buffer, dtype=width)[column.offset : column.offset + rows + 1].astype(np.int64)
        content = np.frombuffer(content_buffer or b"", dtype=np.uint8)
        lengths = np.diff(offsets)
        if column.null_count:
            lengths = np.where(column.is_valid().to_numpy(zero_copy_only=False), lengths, -1)
        return cls(content, offsets[:-1], lengths)

    def int_at(self, position: Int64Array, width: int) -> Int64Array:
        """Signed big-endian integers of `width` bytes at absolute positions."""
        value = self.byte_at(position).astype(np.int8).astype(np.int64)
        for step in range(1, width):
            value = (value << 8) | self.byte_at(position + step)
        return value

    def byte_at(self, position: Int64Array) -> Int64Array:
        """Unsigned bytes at absolute positions."""
        if not len(self.content):
            return np.zeros(len(position), dtype=np.int64)
        inside = np.clip(position, 0, len(self.content) - 1)
        return self.content[inside].astype(np.int64)
