"""Computes the lag of a group over time from the rows of `group_lag`.

If a value of a partition changed, the monitor writes a new row. So the last row of each partition contains the present
lag of the partition. The lag of a group is the sum of the lags of its partitions. The reader also reads the rows of the
last `LOOK_BACK_MS` before the window (the look-back).

1. If the lag of one partition is unknown, the lag of the group is unknown.
2. If a partition has no row in the look-back and no row in the window, its lag did not change. So the lag of the
   partition in the report is correct for the whole window.
3. Some partitions have a row in the window but no row in the look-back. The lag of such a partition before its first
   row is unknown. So before the first row of the partition, the lag of the group is only a lower bound. If the lag in
   the report is unknown, each known lag of the group is only a lower bound.
4. If a partition has rows but is not in the report, the sum includes the partition only until its last row. After an
   end row (`offset_deleted` or `not_subscribed`), the sum excludes the partition.
5. The value of an interval is the highest known lag in the interval. In periods without measurements, the lag is
   unknown. So the value of an interval is unknown only if the lag is unknown during the whole interval.
6. The last lag is the lag at the end of the window. The value of the last interval can be much higher, because an
   interval of a window of seven days lasts 42 minutes.

A group with 1,000 partitions can have 20 million rows in seven days. All rows together would need several GB of memory.
So the reader reads the rows in pieces, the oldest piece first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from assignors import TopicPartition
from streaming.page.timeline.history import LagPoint, Span
from streaming.page.timeline.window import Window

LAG_INTERVALS: Final = 240
ROWS_AT_ONCE: Final = 500_000

_RECORDS, _KNOWN, _UNKNOWN, _MISSING = range(4)
"""The columns of a total: the lag, and the number of partitions with known, unknown, and missing lag (rule 3)."""
_NOTHING = (0, 0, 0, 0)
_Times = NDArray[np.int64]
_Totals = NDArray[np.int64]


Lags = Mapping[TopicPartition, int | None]
"""The lag of each partition. None means unknown."""


class LagPartitions(NamedTuple):
    """The facts about a group's partitions that `LagLine` and `LateTimes` need before the first piece.

    `with_rows` contains the partitions with a row in the window, and `last_ms` the times of their last rows. `earlier`
    contains the lag in the last row of each partition in the look-back. `earlier_ages` contains the time of this row
    and an age as in `LagRows`. `ended_before` contains the partitions whose last row is an end row. `earlier` does not
    contain these partitions.
    """

    with_rows: Sequence[TopicPartition]
    last_ms: NDArray[np.int64]
    earlier: Lags
    earlier_ages: Mapping[TopicPartition, tuple[int, float]]
    ended_before: Collection[TopicPartition]


class LagRows(NamedTuple):
    """One piece of the rows in a window. `codes` are indices into `LagPartitions.with_rows`.

    `records` is the lag. If `is_known` is False, the lag is unknown, and `records` has no meaning. `is_end` is True for
    an end row. `ages` contains the age in seconds of the oldest record that the group has not committed. An age is NaN
    if the partition has no lag, or if the age is unknown.
    """

    sampled_ms: NDArray[np.int64]
    codes: NDArray[np.int64]
    records: NDArray[np.int64]
    is_known: NDArray[np.bool_]
    is_end: NDArray[np.bool_]
    ages: NDArray[np.float64]


def is_first_of_run(sorted_values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return an array that is True where a value differs from the previous value. The first entry of the array is True.

    >>> is_first_of_run(np.array([5, 5, 7])).tolist(), is_first_of_run(np.array([], dtype=np.int64)).tolist()
    ([True, False, True], [])
    """
    return np.append(True, sorted_values[1:] != sorted_values[:-1])[: len(sorted_values)]


def pieces(rows_by_minute: Iterable[tuple[int, int]], window: Window) -> Sequence[Window]:
    """Divide the window into pieces. `rows_by_minute` contains the start and the number of rows of each minute, sorted.

    A piece has at most `ROWS_AT_ONCE` rows, except if one minute has more rows. The result has at least one piece.

    >>> found = pieces([(0, 400_000), (60_000, 90_000), (120_000, 20_000)], Window(5, 150_000))
    >>> [(one.from_ms, one.to_ms) for one in found]
    [(5, 119999), (120000, 150000)]
    """
    found, from_ms, rows_in_piece = [], window.from_ms, 0
    for minute_ms, rows in rows_by_minute:
        if rows_in_piece and rows_in_piece + rows > ROWS_AT_ONCE:
            found.append(Window(from_ms, minute_ms - 1))
            from_ms, rows_in_piece = minute_ms, 0
        rows_in_piece += rows
    return [*found, Window(from_ms, window.to_ms)]


class LagLine:
    """Computes the lag of each interval of the window. Call `add` for each piece, the oldest piece first.

    `present` is the lag in the report of the group, or None if this lag is unknown.
    """

    def __init__(self, partitions: LagPartitions, present: Lags | None, window: Window) -> None:
        earlier, with_rows = partitions.earlier, set(partitions.with_rows)
        starts = [
            _NOTHING if one in partitions.ended_before else _total(earlier.get(one), is_stored=one in earlier)
            for one in partitions.with_rows
        ]
        constant = [
            _total(records, is_stored=True)
            for one, records in {**(present or {}), **earlier}.items()
            if one not in with_rows and (present is None or one in present)
        ]
        self._is_bound = present is None
        self._window = window
        self._last_ms = partitions.last_ms
        self._is_ended = np.array([present is not None and one not in present for one in partitions.with_rows], bool)
        self._values = _totals(starts)
        """The last known value of each partition."""
        self._times = [np.array([window.from_ms], dtype=np.int64)]
        self._changes = [np.sum(_totals([*starts, *constant]), axis=0).reshape(1, 4)]

    def add(self, rows: LagRows) -> None:
        """For each row, add the change of the group's lag (rule 4)."""
        order = np.lexsort((rows.sampled_ms, rows.codes))
        codes, times, after = rows.codes[order], rows.sampled_ms[order], _values_of(rows)[order]
        is_first = is_first_of_run(codes)
        is_last = np.append(is_first[1:], True)[: len(codes)]
        before = np.roll(after, 1, axis=0)
        before[is_first] = self._values[codes[is_first]]
        self._values[codes[is_last]] = after[is_last]
        ends = is_last & self._is_ended[codes] & (times == self._last_ms[codes])
        changed_at, changes = _sum_by_time(
            np.concatenate([times, times[ends] + 1]), np.vstack([after - before, -after[ends]])
        )
        self._times.append(changed_at)
        self._changes.append(changes)

    def points(self, silences: Sequence[Span]) -> tuple[tuple[LagPoint, ...], LagPoint]:
        """Return the lag of each interval, and the lag at the end of the window (rule 6)."""
        window = self._window
        silent_at, silent = _silent(silences, window)
        times, changes = _sum_by_time(np.concatenate([*self._times, silent_at]), np.vstack([*self._changes, silent]))
        totals = np.cumsum(changes, axis=0)
        edges = [window.from_ms + window.span_ms * number // LAG_INTERVALS for number in range(LAG_INTERVALS + 1)]
        last = np.searchsorted(times, edges, side="right") - 1
        points = tuple(
            _point(edges[number], edges[number + 1], times[one], totals[one], is_bound=self._is_bound)
            for number, one in enumerate(slice(first, until + 1) for first, until in pairwise(last.tolist()))
        )
        end = slice(last[-1], last[-1] + 1)
        return points, _point(window.to_ms, window.to_ms, times[end], totals[end], is_bound=self._is_bound)


def _silent(silences: Sequence[Span], window: Window) -> tuple[_Times, _Totals]:
    """Return changes that make the lag unknown between two measurements (rule 5).

    A silence starts after the measurement at `from_ms`, and ends with the measurement at `to_ms`. Exception: there is
    no measurement at the start and at the end of the window.
    """
    starts = [one.from_ms + (one.from_ms > window.from_ms) for one in silences]
    ends = [one.to_ms + (one.to_ms == window.to_ms) for one in silences]
    unknown = _totals([_total(None, is_stored=True)] * len(silences))
    return np.array([*starts, *ends], dtype=np.int64), np.vstack([unknown, -unknown])


def _point(start: int, end: int, times: _Times, totals: _Totals, *, is_bound: bool) -> LagPoint:
    known = np.flatnonzero((totals[:, _KNOWN] > 0) & (totals[:, _UNKNOWN] == 0))
    if not len(known):
        return LagPoint(start, end, None)
    at = known[np.argmax(totals[known, _RECORDS])]
    is_bound = is_bound or bool(totals[at, _MISSING])
    return LagPoint(start, end, int(totals[at, _RECORDS]), is_bound, max(start, int(times[at])))


def _values_of(rows: LagRows) -> _Totals:
    values = np.zeros((len(rows.codes), 4), dtype=np.int64)
    values[:, _RECORDS] = np.where(rows.is_known, rows.records, 0)
    values[:, _KNOWN], values[:, _UNKNOWN] = rows.is_known, ~rows.is_known
    values[rows.is_end] = _NOTHING
    return values


def _sum_by_time(times: _Times, changes: _Totals) -> tuple[_Times, _Totals]:
    """Return the distinct times, sorted, and the sum of the changes at each time."""
    if not len(times):
        return times, changes
    order = np.argsort(times, kind="stable")
    times = times[order]
    firsts = np.flatnonzero(is_first_of_run(times))
    return times[firsts], np.add.reduceat(changes[order], firsts, axis=0)


def _total(records: int | None, *, is_stored: bool) -> tuple[int, int, int, int]:
    if not is_stored:
        return 0, 0, 0, 1
    return (0, 0, 1, 0) if records is None else (records, 1, 0, 0)


def _totals(each: Sequence[tuple[int, int, int, int]]) -> _Totals:
    return np.array(each, dtype=np.int64).reshape(-1, 4)
