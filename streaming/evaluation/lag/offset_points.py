"""Offsets that only grow, sampled over time: a bounded number of points for each of many topic partitions.

A point is (offset, time it was sampled). End offsets and log starts are both kept so. Per row the points ascend in time
and never fall in offset. Rules, for a sample (o, t) after a last point (o', t'):

1. t <= t' (the clock was set back, or the same sample again): points at or after t go first, their time has not come.
2. o < o': the topic was deleted and created anew (or lost its tail in an unclean election). All points go; the row
   starts anew with this one. The peer refuses such points and is stuck until they are evicted
   (kafka-lag-exporter issue 197).
3. o equals the last two points' offset: the last one's time moves to t. A flat run is two points, its first and its
   last time, however long it lasts (kafka-lag-exporter, `LookupTable.addPoint`).
4. Else the point is appended. At the limit, one point goes first: the inner one with the smallest ratio of

       (time between its neighbours) / (its age)

   Never the oldest, which says how far back the row reaches, nor the newest. So gaps grow with age, like a slide
   rule's: 60 points sampled every 5 s reach back a week with gaps of about a quarter of their age. See
   `lag_seconds.py` for what that means to an interpolated time.
"""

from __future__ import annotations

import numpy as np

from streaming.combine.wire import BoolArray, Int64Array

_FIRST_ROWS = 64
_ROWS_AT_A_TIME = 2048


class OffsetPoints:
    """Points of many rows as two matrices; the caller numbers the rows. 16 bytes a point, `limit` points a row.

    >>> points = OffsetPoints(limit=4)
    >>> for offset, sampled_at_ms in [(100, 30), (200, 60), (200, 120), (200, 700)]:
    ...     _ = points.add(np.array([0]), np.array([offset]), sampled_at_ms)
    >>> points.of_row(0)
    [(100, 30), (200, 60), (200, 700)]
    """

    def __init__(self, limit: int) -> None:
        if limit < 3:
            raise ValueError("a row keeps its oldest and its newest point, and needs one between to thin")
        self.limit = limit
        self.counts: Int64Array = np.zeros(_FIRST_ROWS, dtype=np.int64)
        self.offsets: Int64Array = np.zeros((_FIRST_ROWS, limit), dtype=np.int64)
        self.times_ms: Int64Array = np.zeros((_FIRST_ROWS, limit), dtype=np.int64)

    def add(self, rows: Int64Array, offsets: Int64Array, sampled_at_ms: int) -> BoolArray:
        """Take one sample of distinct rows in; say which rows started anew (rule 2)."""
        self._grow(int(rows.max(initial=-1)) + 1)
        self._cut_future(rows, sampled_at_ms)
        had = self.counts[rows] > 0
        fell_back: BoolArray = had & (offsets < self._newest(self.offsets, rows))
        self.counts[rows[fell_back]] = 0
        lengthens = self._lengthens_flat_run(rows, offsets)
        self.times_ms[rows[lengthens], self.counts[rows[lengthens]] - 1] = sampled_at_ms
        self._append(rows[~lengthens], offsets[~lengthens], sampled_at_ms)
        return fell_back

    def keep(self, rows: Int64Array) -> None:
        """Forget all other rows; the kept ones are numbered anew, in the given order."""
        self.counts, self.offsets, self.times_ms = self.counts[rows], self.offsets[rows], self.times_ms[rows]

    def restore(self, rows: Int64Array, offsets: Int64Array, times_ms: Int64Array) -> None:
        """Put points back into empty rows 0, 1, 2, ...: each row's points together, oldest first.

        Where they are more than the limit (it was lowered since), the newest stay.
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
        """The points of one row, oldest first."""
        count = self.counts[row]
        return list(zip(self.offsets[row, :count].tolist(), self.times_ms[row, :count].tolist(), strict=True))

    def last_at_or_below(self, rows: Int64Array, offsets: Int64Array) -> Int64Array:
        """Per row the index of its last point at or below an offset, -1 where all are above (or there is none)."""
        return self._first_beyond(self.offsets, rows, offsets) - 1

    def first_since(self, rows: Int64Array, since_ms: int) -> Int64Array:
        """Per row the index of its first point sampled at or after a time; its count of points where there is none."""
        return self._first_beyond(self.times_ms, rows, np.full(len(rows), since_ms - 1, dtype=np.int64))

    def _first_beyond(self, ascending: Int64Array, rows: Int64Array, limits: Int64Array) -> Int64Array:
        """Binary search in all rows at once: the first index whose value is greater than the row's limit."""
        low, high = np.zeros(len(rows), dtype=np.int64), self.counts[rows]
        for _ in range(self.limit.bit_length()):
            middle = (low + high) // 2
            is_beyond = ascending[rows, np.minimum(middle, self.limit - 1)] > limits
            is_open = low < high
            high = np.where(is_open & is_beyond, middle, high)
            low = np.where(is_open & ~is_beyond, middle + 1, low)
        return low

    def _grow(self, rows: int) -> None:
        missing = rows - len(self.counts)
        if missing > 0:
            more = max(missing, len(self.counts))
            self.counts = np.concatenate([self.counts, np.zeros(more, dtype=np.int64)])
            blank = np.zeros((more, self.limit), dtype=np.int64)
            self.offsets = np.concatenate([self.offsets, blank])
            self.times_ms = np.concatenate([self.times_ms, blank])

    def _cut_future(self, rows: Int64Array, sampled_at_ms: int) -> None:
        late = rows[(self.counts[rows] > 0) & (self._newest(self.times_ms, rows) >= sampled_at_ms)]
        self.counts[late] = self.first_since(late, sampled_at_ms)

    def _lengthens_flat_run(self, rows: Int64Array, offsets: Int64Array) -> BoolArray:
        before_newest = self.offsets[rows, np.maximum(self.counts[rows] - 2, 0)]
        same = (self._newest(self.offsets, rows) == offsets) & (before_newest == offsets)
        lengthens: BoolArray = (self.counts[rows] >= 2) & same
        return lengthens

    def _append(self, rows: Int64Array, offsets: Int64Array, sampled_at_ms: int) -> None:
        self._thin(rows[self.counts[rows] == self.limit], sampled_at_ms)
        self.offsets[rows, self.counts[rows]] = offsets
        self.times_ms[rows, self.counts[rows]] = sampled_at_ms
        self.counts[rows] += 1

    def _thin(self, full: Int64Array, now_ms: int) -> None:
        """Take out of each full row the inner point that is least missed; some rows at a time, to stay in the cache."""
        columns = np.arange(self.limit - 1)
        for start in range(0, len(full), _ROWS_AT_A_TIME):
            rows = full[start : start + _ROWS_AT_A_TIME]
            times = self.times_ms[rows]
            gaps = (times[:, 2:] - times[:, :-2]).astype(np.float64)
            least_missed = 1 + np.argmin(gaps / (now_ms - times[:, 1:-1]), axis=1)
            source = columns + (columns >= least_missed[:, np.newaxis])
            self.times_ms[rows, :-1] = np.take_along_axis(times, source, axis=1)
            self.offsets[rows, :-1] = np.take_along_axis(self.offsets[rows], source, axis=1)
        self.counts[full] -= 1

    def _newest(self, matrix: Int64Array, rows: Int64Array) -> Int64Array:
        """The newest value of each row; meaningless for rows without points."""
        newest: Int64Array = matrix[rows, np.maximum(self.counts[rows] - 1, 0)]
        return newest
