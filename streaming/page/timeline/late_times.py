"""Finds the periods in which the lag of a group was above its limit, from rows of `group_lag`.

1. Each row of a partition contains the age of the oldest record that the group has not committed. The same record waits
   at least until the last measurement before the next row of the partition. Until then, its age grows by one second per
   second. So each row also shows the time at which the lag exceeds the limit. The period above the limit starts at this
   time, and ends at the next row of the partition. Exception: if this time is after the last measurement before the
   next row, there is no period, because the group may have committed the record before.
2. The lag of the group is above the limit while at least one partition is above the limit.
3. If a partition has rows but is not in the report, it is evaluated only until its last row.
4. In periods without measurements, it is unknown whether the lag was above the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from streaming.page.timeline.history import Span
from streaming.page.timeline.lag_line import LagPartitions, LagRows, Lags, is_first_of_run
from streaming.page.timeline.window import Window

_Times = NDArray[np.int64]
_Ages = NDArray[np.float64]


class LateTimes:
    """Finds the periods above the limit. Call `add` for each piece of the window, the oldest piece first.

    `present` is the lag in the report of the group, or None if this lag is unknown. `measured_ms` are the sorted times
    of all measurements in the window and its look-back.
    """

    def __init__(
        self,
        partitions: LagPartitions,
        limit_seconds: float,
        present: Lags | None,
        window: Window,
        measured_ms: Sequence[int],
    ) -> None:
        self._limit_seconds = limit_seconds
        self._measured_ms = np.array([np.iinfo(np.int64).min, *measured_ms], dtype=np.int64)
        self._window = window
        earlier = [partitions.earlier_ages.get(one, (window.from_ms, np.nan)) for one in partitions.with_rows]
        self._times, self._ages = _columns(earlier)
        """The last row of each partition. If a partition has no row in the look-back, the age is NaN."""
        self._is_present = np.array([present is None or one in present for one in partitions.with_rows], dtype=bool)
        self._starts, self._ends = list[_Times](), list[_Times]()
        with_rows = set(partitions.with_rows)
        constant = [
            row
            for one, row in partitions.earlier_ages.items()
            if one not in with_rows and (present is None or one in present)
        ]
        self._put(*_columns(constant), np.full(len(constant), window.to_ms, dtype=np.int64))

    def add(self, rows: LagRows) -> None:
        """Add each period that ends at one of the rows. `spans` adds the periods after the last rows."""
        changed = np.unique(rows.codes)
        codes = np.concatenate([changed, rows.codes])
        times = np.concatenate([self._times[changed], rows.sampled_ms])
        ages = np.concatenate([self._ages[changed], rows.ages])
        order = np.lexsort((times, codes))
        codes, times, ages = codes[order], times[order], ages[order]
        is_last = np.append(is_first_of_run(codes)[1:], True)[: len(codes)]
        self._times[codes[is_last]], self._ages[codes[is_last]] = times[is_last], ages[is_last]
        has_next = np.flatnonzero(~is_last)
        self._put(times[has_next], ages[has_next], times[has_next + 1])

    def spans(self, silences: Sequence[Span]) -> tuple[Span, ...]:
        """Return the periods above the limit, sorted."""
        until = np.full(len(self._times), self._window.to_ms, dtype=np.int64)
        self._put(self._times[self._is_present], self._ages[self._is_present], until[self._is_present])
        starts, ends = _union(np.concatenate(self._starts), np.concatenate(self._ends))
        window = self._window
        clipped = (
            Span(window.clip(start), window.clip(end))
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
            if end > window.from_ms and start < window.to_ms
        )
        return tuple(_without(silences, clipped))

    def _put(self, times: _Times, ages: _Ages, ends: _Times) -> None:
        starts = times + np.maximum(0, 1000 * (self._limit_seconds - np.nan_to_num(ages))).astype(np.int64)
        last_measured = self._measured_ms[np.maximum(np.searchsorted(self._measured_ms, ends) - 1, 0)]
        is_late = ~np.isnan(ages) & (starts < ends) & (starts <= last_measured)
        starts, ends = _union(starts[is_late], ends[is_late])
        self._starts.append(starts)
        self._ends.append(ends)


def _columns(rows: Sequence[tuple[int, float]]) -> tuple[_Times, _Ages]:
    times = np.array([at_ms for at_ms, _ in rows], dtype=np.int64)
    return times, np.array([age for _, age in rows], dtype=np.float64)


def _union(starts: _Times, ends: _Times) -> tuple[_Times, _Times]:
    order = np.argsort(starts)
    starts, ends = starts[order], np.maximum.accumulate(ends[order]) if len(ends) else ends
    is_new = np.append(True, starts[1:] > ends[:-1])[: len(starts)]
    return starts[is_new], np.append(ends[:-1][is_new[1:]], ends[-1:])


def _without(silences: Sequence[Span], spans: Iterator[Span]) -> Iterator[Span]:
    for span in spans:
        start_ms = span.from_ms
        for silence in silences:
            if silence.to_ms > start_ms and silence.from_ms < span.to_ms:
                if silence.from_ms > start_ms:
                    yield Span(start_ms, silence.from_ms)
                start_ms = silence.to_ms
        if start_ms < span.to_ms:
            yield Span(start_ms, span.to_ms)
