"""Assign row numbers to topic partitions, and find the row numbers of whole columns in one step."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import Int64Array

NO_ROW = -1
"""The row number of a topic partition that has no row."""


def grown(array: Int64Array, rows: int, blank: int) -> Int64Array:
    """Return the array with space for at least `rows` rows. The space doubles, so an array rarely grows."""
    missing = rows - len(array)
    if missing <= 0:
        return array
    shape = (max(missing, len(array)), *array.shape[1:])
    return np.concatenate([array, np.full(shape, blank, dtype=np.int64)])


class TopicPartitionRows:
    """Assigns the row numbers 0, 1, 2, ... to topic partitions. New topic partitions get the next row numbers.

    >>> rows = TopicPartitionRows()
    >>> rows.make(pa.array(["orders", "orders"]), np.array([1, 0])).tolist()
    [0, 1]
    >>> rows.find(pa.array(["orders", "payments"]), np.array([0, 0])).tolist()
    [1, -1]
    """

    def __init__(self) -> None:
        self._topics = pa.array([], pa.string())
        self._keys: Int64Array = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        """Return the number of topic partitions that have a row."""
        return len(self._keys)

    def find(self, topics: pa.Array, partitions: Int64Array) -> Int64Array:
        """Return the row number of each (topic, partition), or NO_ROW if the topic partition has no row."""
        return self._find(_index_in(topics, self._topics), partitions)

    def make(self, topics: pa.Array, partitions: Int64Array) -> Int64Array:
        """Return the row number of each (topic, partition). A new topic partition gets a new row."""
        seen = pc.unique(topics)
        fresh = seen.filter(pc.invert(pc.is_in(seen, value_set=self._topics)))
        self._topics = pa.concat_arrays([self._topics, fresh])
        codes = _index_in(topics, self._topics)
        is_new = self._find(codes, partitions) == NO_ROW
        new_keys = _key(codes[is_new], partitions[is_new])
        _, first_at = np.unique(new_keys, return_index=True)
        self._keys = np.concatenate([self._keys, new_keys[np.sort(first_at)]])
        return self._find(codes, partitions)

    def keep(self, rows: Int64Array) -> None:
        """Keep only the given rows. The new row numbers are 0, 1, 2, ... in the given order."""
        codes, self._keys = np.unique(self._keys[rows] >> 32, return_inverse=True)[0], self._keys[rows]
        renumbered = np.searchsorted(codes, self._keys >> 32)
        self._keys = _key(renumbered, self._keys & 0xFFFFFFFF)
        self._topics = self._topics.take(pa.array(codes))

    @property
    def topics(self) -> frozenset[str]:
        """The topics of all rows."""
        return frozenset(self._topics.to_pylist())

    def names(self) -> tuple[pa.Array, Int64Array]:
        """Return the topic and the partition number of each row."""
        partitions = self._keys.astype(np.int32).astype(np.int64)  # the low 32 bits, with their sign
        return self._topics.take(pa.array(self._keys >> 32)), partitions

    def _find(self, codes: Int64Array, partitions: Int64Array) -> Int64Array:
        """Return the row number of each topic partition. `codes` contains the codes of the topics.

        An unknown topic has the code NO_ROW. So the key of an unknown topic is negative and matches no stored key.
        """
        return _index_in(pa.array(_key(codes, partitions)), pa.array(self._keys))


def _key(codes: Int64Array, partitions: Int64Array) -> Int64Array:
    """Return a distinct number for each topic partition.

    A hostile client can commit any partition number of 32 bits, also a negative number. So the result contains all 32
    bits of the partition number.
    """
    keys: Int64Array = (codes << 32) | (partitions.astype(np.int64) & 0xFFFFFFFF)
    return keys


def _index_in(values: pa.Array, value_set: pa.Array) -> Int64Array:
    found: Int64Array = pc.fill_null(pc.index_in(values, value_set=value_set), NO_ROW).to_numpy().astype(np.int64)
    return found
