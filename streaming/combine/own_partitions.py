"""Computes the partition of `__consumer_offsets` that contains a group's records.

1. The coordinator writes all records of a group to one partition: `Utils.abs(groupId.hashCode()) % partitions`. A
   group's *own* partition is the partition from this formula. The coordinator wrote no record of the group in any other
   partition.
2. Kafka advises against a change of the partition count. A running broker uses the partition count that it read at its
   start. So after a change, some brokers use the old count, and others use the new count. For each partition count that
   the monitor has seen, a group has one own partition.
3. A broker that starts after the change computes the group's partition with the current count: the *home* of the group.
   At first, the home has no records of the group. So the group starts again with no members and no offsets. Brokers
   still write to the group's earlier partition when members time out or offsets expire there. But the members use only
   the home. So the home has priority over every other partition.
4. If no partition count is known, every partition is accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from assignors.coordinator import coordinator_partition
from assignors.ordering import utf16_key
from streaming.combine.big_endian import BinaryColumn, BoolArray, Int64Array
from streaming.protocol.primitives import JAVA_UTF8_ERRORS

_NAME_LENGTH_AT = 2
_NAME_AT = 4
_LAST_ASCII = 0x7F
_BYTES_AT_ONCE = 1 << 20
_POWERS = np.cumprod(np.array([1, *[31] * (1 << 15)], dtype=np.uint32), dtype=np.uint32)[::-1]
"""Powers of 31 modulo 2^32, in descending order of the exponent. The powers suffice for the longest name in a key."""


@dataclass(frozen=True, slots=True)
class OwnPartitions:
    """The partition counts of `__consumer_offsets`: all earlier counts, then the current count.

    >>> grown = OwnPartitions((50, 60))
    >>> grown.home("my-group"), grown.is_own("my-group", 12), grown.is_own("my-group", 42), grown.is_own("my-group", 13)
    (42, True, True, False)
    """

    counts: tuple[int, ...] = ()

    def home(self, group_id: str) -> int | None:
        """Return the group's partition for the current count (rule 3), or None if the partition count is unknown."""
        return coordinator_partition(group_id, self.counts[-1]) if self.counts else None

    def is_own(self, group_id: str, offsets_topic_partition: int) -> bool:
        """Return True if the partition is one of the group's own partitions, or if no partition count is known."""
        own = {coordinator_partition(group_id, count) for count in self.counts}
        return not own or offsets_topic_partition in own

    def own_rows(self, keys: pa.Array, code: Int64Array, offsets_topic_partition: Int64Array) -> BoolArray:
        """Return the result of `is_own` for each commit. Commit i has the key `keys[code[i]]`."""
        if not self.counts:
            return np.ones(len(code), dtype=np.bool_)
        hashes = _absolute_hashes(keys)
        is_own = np.zeros(len(code), dtype=np.bool_)
        for count in self.counts:
            is_own |= (hashes % count)[code] == offsets_topic_partition
        return is_own


def _absolute_hashes(keys: pa.Array) -> Int64Array:
    """Return `Utils.abs(groupId.hashCode())` of each key's group (0 for the smallest int32)."""
    hashes = np.zeros(len(keys), dtype=np.int64)
    column = BinaryColumn.of(keys)
    name_bytes = column.int_at(column.start + _NAME_LENGTH_AT, 2)
    for of_length in np.unique(name_bytes):
        rows = np.flatnonzero(name_bytes == of_length)
        names = pc.binary_slice(keys.take(pa.array(rows)), _NAME_AT, _NAME_AT + int(of_length)).dictionary_encode()
        of_name = np.concatenate([*_hashes_of(names.dictionary, int(of_length)), np.empty(0, dtype=np.int64)])
        hashes[rows] = of_name[names.indices.to_numpy()]
    return np.where(hashes == -(1 << 31), 0, np.abs(hashes))


def _hashes_of(names: pa.Array, length: int) -> Iterator[Int64Array]:
    """Yield the hash codes of names of `length` bytes, in several arrays to limit memory use."""
    content, at_once = b"".join(names.to_pylist()), max(1, _BYTES_AT_ONCE // max(1, length))
    matrix = np.frombuffer(content, dtype=np.uint8).reshape(len(names), length)
    for first in range(0, len(names), at_once):
        part = matrix[first : first + at_once]
        hashes = _hashes_of_units(part)
        for row in np.flatnonzero(part.max(axis=1, initial=0) > _LAST_ASCII):
            text = part[row].tobytes().decode("utf-8", JAVA_UTF8_ERRORS)
            hashes[row] = _hashes_of_units(np.frombuffer(utf16_key(text), dtype=">u2"))
        yield hashes


def _hashes_of_units(units: npt.NDArray[np.unsignedinteger[Any]]) -> Int64Array:
    """Compute `String.hashCode` of UTF-16 code units along the last axis."""
    hashes = units.astype(np.uint32) @ _POWERS[len(_POWERS) - units.shape[-1] :]
    return np.asarray(hashes, dtype=np.uint32).astype(np.int32).astype(np.int64)
