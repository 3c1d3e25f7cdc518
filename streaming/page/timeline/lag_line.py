"""Computes the lag of a group over time from the rows of `group_lag`.

The table contains a row of a partition only if a value changed. So the lag of a group is the sum of the lags in the
last row of each partition.

1. If the lag of one partition is unknown, the lag of the group is unknown (as in the report of the group).
2. A partition without a row in the look-back and in the window did not change. Its lag in the report of the group was
   its lag during the whole window.
3. If a partition has a row in the window and none in the look-back, its lag before this row is not known. Possibly the
   lag was constant for a long time, or the group did not read the partition. So the sum of the other partitions is a
   lower bound. Without a report of the lag, all values are lower bounds.
4. If the report does not contain a partition any more, the partition counts until its last row. A partition does not
   count after an end row, because it has no committed offset.
5. The value of an interval is the highest lag in the interval. In periods without measurements, the value is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from assignors import TopicPartition
from streaming.page.timeline.history import LagPoint, Span
from streaming.page.timeline.window import Window

LAG_INTERVALS: Final = 240
Lags = Mapping[TopicPartition, int | None]
"""The lag of each partition. None: unknown."""

_RECORDS, _KNOWN, _UNKNOWN, _MISSING = range(4)
"""The columns of a total: the lag, and the numbers of partitions whose lag is known, unknown, or missing (rule 3)."""
_NOTHING = (0, 0, 0, 0)
_Totals = NDArray[np.int64]


class LagRows(NamedTuple):
    """Rows of `group_lag` as columns. `codes` are indices into `partitions`.

    `records` is the lag. If `is_known` is False, it has no meaning. `is_end` is True for an end row. `ended_before` are
    the partitions whose last row in the look-back is an end row. `ages` are the ages of the next records in seconds, or
    NaN if no record waits or the age is unknown. `earlier_ages` has the time and the age of the last row in the
    look-back.
    """

    sampled_ms: NDArray[np.int64]
    codes: NDArray[np.int64]
    records: NDArray[np.int64]
    is_known: NDArray[np.bool_]
    partitions: Sequence[TopicPartition]
    is_end: NDArray[np.bool_]
    ages: NDArray[np.float64]
    ended_before: Collection[TopicPartition] = frozenset()
    earlier_ages: Mapping[TopicPartition, tuple[int, float]] = {}


def lag_points(
    rows: LagRows, earlier: Lags, present: Lags | None, silences: Sequence[Span], window: Window
) -> tuple[LagPoint, ...]:
    """Return the lag of each interval of the window.

    `rows` are the rows in the window. `earlier` has the last row of each partition in the look-back. `present` is the
    lag in the report of the group, or None if it is unknown.
    """
    times, totals = _totals(rows, earlier, present, window)
    edges = [window.from_ms + window.span_ms * number // LAG_INTERVALS for number in range(LAG_INTERVALS + 1)]
    last = np.searchsorted(times, edges, side="right") - 1
    return tuple(
        _point(edges[number], edges[number + 1], totals[first : until + 1], silences, is_bound=present is None)
        for number, (first, until) in enumerate(pairwise(last.tolist()))
    )


def _point(start: int, end: int, totals: _Totals, silences: Sequence[Span], *, is_bound: bool) -> LagPoint:
    middle = (start + end) // 2
    known = totals[(totals[:, _KNOWN] > 0) & (totals[:, _UNKNOWN] == 0)]
    if not len(known) or any(one.from_ms <= middle <= one.to_ms for one in silences):
        return LagPoint(start, end, None)
    highest = known[np.argmax(known[:, _RECORDS])]
    return LagPoint(start, end, int(highest[_RECORDS]), is_bound or bool(highest[_MISSING]))


def _totals(rows: LagRows, earlier: Lags, present: Lags | None, window: Window) -> tuple[NDArray[np.int64], _Totals]:
    """Return the total at the start of the window and after each time with a change."""
    with_rows = set(rows.partitions)
    starts = [
        _NOTHING if partition in rows.ended_before else _total(*_earlier(partition, earlier))
        for partition in rows.partitions
    ]
    constant = {**(present or {}), **earlier}
    at_start = starts + [
        _total(records, is_stored=True)
        for partition, records in constant.items()
        if partition not in with_rows and (present is None or partition in present)
    ]
    times, changes = _changes(rows, np.array(starts, dtype=np.int64).reshape(-1, 4), present)
    sums = np.cumsum(np.vstack([np.sum(np.array(at_start, dtype=np.int64).reshape(-1, 4), axis=0), changes]), axis=0)
    times = np.concatenate([[window.from_ms], times])
    is_last = np.append(times[1:] != times[:-1], True)
    return times[is_last], sums[is_last]


def _changes(rows: LagRows, starts: _Totals, present: Lags | None) -> tuple[NDArray[np.int64], _Totals]:
    """Return the change of the total at each row, sorted by time.

    After the last row of a partition that ends, its lag is subtracted (rule 4).
    """
    order = np.lexsort((rows.sampled_ms, rows.codes))
    codes, times, is_known = rows.codes[order], rows.sampled_ms[order], rows.is_known[order]
    after = np.zeros((len(order), 4), dtype=np.int64)
    after[:, _RECORDS] = np.where(is_known, rows.records[order], 0)
    after[:, _KNOWN], after[:, _UNKNOWN] = is_known, ~is_known
    after[rows.is_end[order]] = _NOTHING
    before = np.roll(after, 1, axis=0)
    is_first = np.append(True, codes[1:] != codes[:-1])[: len(order)]
    before[is_first] = starts[codes[is_first]]
    is_last = np.append(codes[1:] != codes[:-1], True)[: len(order)]
    is_ended = np.array([present is not None and one not in present for one in rows.partitions], dtype=bool)
    ends = is_last & is_ended[codes] if len(order) else is_last
    changes = np.vstack([after - before, -after[ends]])
    all_times = np.concatenate([times, times[ends] + 1])
    by_time = np.argsort(all_times, kind="stable")
    return all_times[by_time], changes[by_time]


def _earlier(partition: TopicPartition, earlier: Lags) -> tuple[int | None, bool]:
    return earlier.get(partition), partition in earlier


def _total(records: int | None, is_stored: bool) -> tuple[int, int, int, int]:
    if not is_stored:
        return 0, 0, 0, 1
    return (0, 0, 1, 0) if records is None else (records, 1, 0, 0)
