"""Store sampled offsets of many topic partitions by name: either end offsets or log start offsets.

After a restart, the monitor loads the stored offsets, so it soon knows the lag in seconds again. In contrast,
kafka-lag-exporter shows NaN for some minutes after a restart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import BoolArray, Int64Array
from streaming.evaluation.lag.stored.columns import decode_columns, encode_columns
from streaming.evaluation.lag.stored.offset_points import OffsetPoints
from streaming.evaluation.lag.stored.topic_partitions import NO_ROW, TopicPartitionRows

STORED_VERSION = 1

STORED_SCHEMA = pa.schema(
    [
        ("topic", pa.dictionary(pa.int32(), pa.string())),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("sampled_at_ms", pa.int64()),
    ]
)
"""Version 1: one row per point. The points of a topic partition are in adjacent rows, oldest first."""

KEEP_UNSAMPLED_MS = 24 * 3_600_000
"""Topic partitions without a sample for one day can be removed. So deleted topics do not fill the memory."""


class SampledOffsets:
    """Stores the points of each sampled topic partition: at most `limit` points per partition (see `offset_points.py`).

    >>> ends = SampledOffsets(limit=60)
    >>> ends.add({("orders", 0): 100}, sampled_at_ms=30)
    []
    >>> ends.add({("orders", 0): 7}, sampled_at_ms=60)
    [('orders', 0)]
    """

    def __init__(self, limit: int) -> None:
        self.points = OffsetPoints(limit)
        self._rows = TopicPartitionRows()

    def __len__(self) -> int:
        """Return the number of topic partitions that have points."""
        return len(self._rows)

    def add(self, offsets: Mapping[tuple[str, int], int], sampled_at_ms: int) -> list[tuple[str, int]]:
        """Add one sample. Return the topic partitions whose offset decreased. Their earlier points are removed.

        If the same sample is added again, nothing changes.
        """
        if not offsets:
            return []
        keys = list(offsets)
        topics = pa.array([topic for topic, _ in keys], pa.string())
        rows = self._rows.make(topics, np.array([partition for _, partition in keys], dtype=np.int64))
        fell_back = self.points.add(rows, np.fromiter(offsets.values(), np.int64, len(keys)), sampled_at_ms)
        self._remove_unsampled(sampled_at_ms - KEEP_UNSAMPLED_MS)
        return [keys[index] for index in np.flatnonzero(fell_back)]

    @property
    def topics(self) -> frozenset[str]:
        """The topics that have points."""
        return self._rows.topics

    def forget_topics(self, topics: Collection[str]) -> None:
        """Remove the points of topics that were created again."""
        is_of_topic = pc.is_in(self.names()[0], value_set=pa.array(sorted(topics), pa.string()))
        self._keep(np.flatnonzero(~is_of_topic.to_numpy(zero_copy_only=False)))

    def rows(self, topics: pa.Array, partitions: Int64Array) -> Int64Array:
        """Return for each topic partition the row number in `points`, or NO_ROW if there is no sample."""
        return self._rows.find(topics, partitions)

    def names(self) -> tuple[pa.Array, Int64Array]:
        """Return the topic and the partition number of each row."""
        return self._rows.names()

    def sampled_at(self, rows: Int64Array, at_ms: int) -> BoolArray:
        """Return True for each row whose newest point is from the sample at `at_ms`. False for NO_ROW."""
        known: BoolArray = rows != NO_ROW
        if not len(self):
            return known
        newest = self.points.times_ms[rows, np.maximum(self.points.counts[rows] - 1, 0)]
        current: BoolArray = known & (newest == at_ms)
        return current

    def _remove_unsampled(self, since_ms: int) -> None:
        """If more than half of all rows have no point since `since_ms`, remove these rows."""
        counts = self.points.counts[: len(self)]
        newest = self.points.times_ms[np.arange(len(self)), np.maximum(counts - 1, 0)]
        kept = np.flatnonzero(newest >= since_ms)
        if 2 * len(kept) < len(self):
            self._keep(kept)

    def _keep(self, rows: Int64Array) -> None:
        self._rows.keep(rows)
        self.points.keep(rows)

    def encode(self) -> tuple[int, bytes]:
        """Return the version, and all points as a compressed Arrow IPC stream (about 2 bytes per point)."""
        counts = self.points.counts[: len(self)]
        topics, partitions = self.names()
        row_of_point = np.repeat(np.arange(len(self)), counts)
        is_point = np.arange(self.points.limit) < counts[:, np.newaxis]
        stored = pa.table(
            [
                topics.dictionary_encode().take(pa.array(row_of_point)),
                pa.array(partitions[row_of_point], pa.int32()),
                pa.array(self.points.offsets[: len(self)][is_point]),
                pa.array(self.points.times_ms[: len(self)][is_point]),
            ],
            schema=STORED_SCHEMA,
        )
        return STORED_VERSION, encode_columns(stored)

    @classmethod
    def decode(cls, version: int, encoded: bytes, limit: int) -> SampledOffsets:
        """Return the points that `encode` encoded. If a row has more than `limit` points, use only the newest points.

        Raises StateVersionError if the version is unknown.
        """
        stored = decode_columns(version, encoded, STORED_VERSION)
        decoded = cls(limit)
        if not stored.num_rows:
            return decoded
        topics = stored["topic"].combine_chunks().dictionary_decode()
        row_of_point = decoded._rows.make(topics, stored["partition"].to_numpy().astype(np.int64))
        decoded.points.restore(row_of_point, stored["offset"].to_numpy(), stored["sampled_at_ms"].to_numpy())
        return decoded
