"""Store offset samples of many topic partitions, with a limited number of samples per topic partition.

A point is (offset, time of the sample). The offsets are end offsets or log start offsets. Each topic partition has one
row. The points of a row are sorted by time, and their offsets never decrease. (o', t') is the last stored point. Rules
for a new sample (o, t):

1. If t <= t', all points at or after t are removed first. Either the clock was set back, or the sample is repeated.
2. If o < o', all points are removed, and the new point becomes the first point. Either the topic was created again, or
   the topic lost its last records in an unclean election. If the offset decreases, kafka-lag-exporter ignores new
   samples until the old points expire (issue 197). A topic that was created again can also have o >= o'. Only its topic
   id shows that its log is new (`topic_ids.py`).
3. If o equals the offset of the last two points, the time of the last point becomes t. So a constant offset has only
   two points: one with its first time, and one with its last time. The method comes from kafka-lag-exporter
   (`LookupTable.addPoint`).
4. In all other cases, the new point is appended. If the row is full, one inner point is removed first. The removed
   point is the inner point with the smallest value of

       (time between its neighbours) / (age of the point)

   The oldest and the newest point are never removed. So the time between old points is longer than the time between new
   points. If the monitor samples every 5 s, 60 points cover a week. Then the time between two neighbouring points is
   about a quarter of the age of the points. `lag_seconds.py` describes the resulting error of interpolated times.
"""

from __future__ import annotations

import numpy as np

from streaming.combine.big_endian import BoolArray, Int64Array
from streaming.evaluation.lag.stored.topic_partitions import grown

_FIRST_ROWS = 64
_ROWS_AT_A_TIME = 2048


class OffsetPoints:
    """Stores the points of many rows as two matrices.

    The caller assigns the row numbers. Each row has space for `limit` points. A point needs 16 bytes.

    >>> points = OffsetPoints(limit=4)
    >>> for offset, sampled_at_ms in [(100, 30), (200, 60), (200, 120), (200, 700)]:
    ...     _ = points.add(np.array([0]), np.array([offset]), sampled_at_ms)
    >>> points.of_row(0)
    [(100, 30), (200, 60), (200, 700)]
    """

    def __init__(self, limit: int) -> None:
        if limit < 3:
            raise ValueError("the limit must be at least 3, because the oldest and the newest point are never removed")
        self.limit = limit
        self.counts: Int64Array = np.zeros(_FIRST_ROWS, dtype=np.int64)
        self.offsets: Int64Array = np.zeros((_FIRST_ROWS, limit), dtype=np.int64)
        self.times_ms: Int64Array = np.zeros((_FIRST_ROWS, limit), dtype=np.int64)

    def add(self, rows: Int64Array, offsets: Int64Array, sampled_at_ms: int) -> BoolArray:
        """Add one sample. `rows` has no duplicates. Return True for each row whose offset decreased (rule 2)."""
        self._grow(int(rows.max(initial=-1)) + 1)
        self._drop_later_points(rows, sampled_at_ms)
        fell_back: BoolArray = (self.counts[rows] > 0) & (offsets < self._newest(self.offsets, rows))
        self.counts[rows[fell_back]] = 0
        is_continued = self._continues_constant_run(rows, offsets)
        self.times_ms[rows[is_continued], self.counts[rows[is_continued]] - 1] = sampled_at_ms
        self._append(rows[~is_continued], offsets[~is_continued], sampled_at_ms)
        return fell_back

    def keep(self, rows: Int64Array) -> None:
        """Keep only the given rows. The new row numbers are 0, 1, 2, ... in the given order."""
        self.counts, self.offsets, self.times_ms = self.counts[rows], self.offsets[rows], self.times_ms[rows]

    def restore(self, rows: Int64Array, offsets: Int64Array, times_ms: Int64Array) -> None:
        """Add stored points to the empty rows 0, 1, 2, ...

        The points of a row must be adjacent, oldest first. If a row has more points than the limit, only its newest
        points are added.
        """
        counts = np.bincount(rows)
        self._grow(len(counts))
        self.counts[: len(counts)] = np.minimum(counts, self.limit)
        newer_points = np.cumsum(counts)[rows] - 1 - np.arange(len(rows))
        fits = newer_points < self.limit
        rows, newer_points = rows[fits], newer_points[fits]
        place = self.counts[rows] - 1 - newer_points
        self.offsets[rows, place], self.times_ms[rows, place] = offsets[fits], times_ms[fits]

    def of_row(self, row: int) -> list[tuple[int, int]]:
        """Return the points of one row, oldest first."""
        count = self.counts[row]
        return list(zip(self.offsets[row, :count].tolist(), self.times_ms[row, :count].tolist(), strict=True))

    def last_at_or_below(self, rows: Int64Array, offsets: Int64Array) -> Int64Array:
        """Return for each row the index of the last point at or below the given offset, or -1 if there is none."""
        return self._first_above(self.offsets, rows, offsets) - 1

    def last_until(self, rows: Int64Array, times_ms: Int64Array) -> Int64Array:
        """Return for each row the index of the last point at or before the given time, or -1 if there is none."""
        return self._first_above(self.times_ms, rows, times_ms) - 1

    def first_since(self, rows: Int64Array, since_ms: int) -> Int64Array:
        """Return for each row the index of the first point at or after the given time.

        If no such point exists, the index is the number of points in the row.
        """
        return self._first_above(self.times_ms, rows, np.full(len(rows), since_ms - 1, dtype=np.int64))

    def _first_above(self, ascending: Int64Array, rows: Int64Array, limits: Int64Array) -> Int64Array:
        """Return for each row the index of the first value above the row's limit (binary search)."""
        low, high = np.zeros(len(rows), dtype=np.int64), self.counts[rows]
        for _ in range(self.limit.bit_length()):
            middle = (low + high) // 2
            is_above = ascending[rows, np.minimum(middle, self.limit - 1)] > limits
            is_open = low < high
            high = np.where(is_open & is_above, middle, high)
            low = np.where(is_open & ~is_above, middle + 1, low)
        return low

    def _grow(self, rows: int) -> None:
        self.counts = grown(self.counts, rows, 0)
        self.offsets, self.times_ms = grown(self.offsets, rows, 0), grown(self.times_ms, rows, 0)

    def _drop_later_points(self, rows: Int64Array, sampled_at_ms: int) -> None:
        """Remove all points at or after the time of the sample (rule 1)."""
        late = rows[(self.counts[rows] > 0) & (self._newest(self.times_ms, rows) >= sampled_at_ms)]
        self.counts[late] = self.first_since(late, sampled_at_ms)

    def _continues_constant_run(self, rows: Int64Array, offsets: Int64Array) -> BoolArray:
        """Return True for each row whose last two points have the sampled offset (rule 3)."""
        before_newest = self.offsets[rows, np.maximum(self.counts[rows] - 2, 0)]
        same = (self._newest(self.offsets, rows) == offsets) & (before_newest == offsets)
        is_continued: BoolArray = (self.counts[rows] >= 2) & same
        return is_continued

    def _append(self, rows: Int64Array, offsets: Int64Array, sampled_at_ms: int) -> None:
        """Append a point to each row (rule 4)."""
        self._thin(rows[self.counts[rows] == self.limit], sampled_at_ms)
        self.offsets[rows, self.counts[rows]] = offsets
        self.times_ms[rows, self.counts[rows]] = sampled_at_ms
        self.counts[rows] += 1

    def _thin(self, full: Int64Array, now_ms: int) -> None:
        """Remove one inner point from each full row (rule 4), in blocks of rows that fit into the CPU cache."""
        columns = np.arange(self.limit - 1)
        for start in range(0, len(full), _ROWS_AT_A_TIME):
            rows = full[start : start + _ROWS_AT_A_TIME]
            times = self.times_ms[rows]
            gaps = (times[:, 2:] - times[:, :-2]).astype(np.float64)
            removed = 1 + np.argmin(gaps / (now_ms - times[:, 1:-1]), axis=1)
            source = columns + (columns >= removed[:, np.newaxis])
            self.times_ms[rows, :-1] = np.take_along_axis(times, source, axis=1)
            self.offsets[rows, :-1] = np.take_along_axis(self.offsets[rows], source, axis=1)
        self.counts[full] -= 1

    def _newest(self, matrix: Int64Array, rows: Int64Array) -> Int64Array:
        """Return the newest value of each row. The value is undefined for rows without points."""
        newest: Int64Array = matrix[rows, np.maximum(self.counts[rows] - 1, 0)]
        return newest
