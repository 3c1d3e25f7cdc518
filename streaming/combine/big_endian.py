"""Reads big-endian fields of Arrow binary columns in bulk.

For a position outside the buffer, the value has no meaning. Callers check the lengths, and ignore such values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class BinaryColumn:
    """The bytes of a binary column: row i is `content[start[i] : start[i] + length[i]]`. A null row has length -1."""

    content: ByteArray
    start: Int64Array
    length: Int64Array

    @classmethod
    def of(cls, column: pa.Array) -> BinaryColumn:
        """Return a view of an Arrow binary or large_binary array, without copying its bytes."""
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
        """Read signed big-endian integers of 1, 2, 4 or 8 bytes (`width`) at absolute positions."""
        last = len(self.content) - width
        if last < 0:
            return np.zeros(len(position), dtype=np.int64)
        # Element i of this view starts at byte i. So one NumPy operation reads all bytes of each integer.
        integers = np.ndarray(last + 1, dtype=f">i{width}", buffer=self.content, strides=(1,))
        values: Int64Array = integers[np.clip(position, 0, last)].astype(np.int64)
        return values

    def byte_at(self, position: Int64Array) -> Int64Array:
        """Read unsigned bytes at absolute positions."""
        return self.int_at(position, 1) & 0xFF
