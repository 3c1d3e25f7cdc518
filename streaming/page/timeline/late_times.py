"""Finds the times at which the lag of a group was above its limit `max_lag_seconds`, from the rows of `group_lag`.

The lag axis of the picture shows records, and the limit is in seconds. So the picture shows these times instead of a
line at the limit.

1. The table contains a row of a partition only if a value changed. While a partition has a lag, the age of its next
   record grows. So the lag exceeds the limit at a time that follows from the row, if no later row comes first.
2. The lag of the group is above the limit while the lag of one of its partitions is.
3. If the report of the group does not contain a partition any more, the partition counts until its last row.
4. In periods without measurements, it is unknown whether the lag was above the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from streaming.page.timeline.history import Span
from streaming.page.timeline.lag_line import LagRows, Lags
from streaming.page.timeline.window import Window

_Times = NDArray[np.int64]


def times_above_limit(
    rows: LagRows, limit_seconds: float, present: Lags | None, silences: Sequence[Span], window: Window
) -> tuple[Span, ...]:
    """Return the times above the limit, sorted. `present` is the lag in the report, or None if it is unknown."""
    starts, ends = _late_rows(rows, limit_seconds, present, window)
    return tuple(_without(silences, _union(starts, ends, window)))


def _late_rows(rows: LagRows, limit_seconds: float, present: Lags | None, window: Window) -> tuple[_Times, _Times]:
    """Return the starts and the ends of the periods above the limit (rules 1 and 3).

    Each period starts after a row, and ends before the next row of the same partition. Some rows have no such period.
    """
    partitions = list({**dict.fromkeys(rows.partitions), **dict.fromkeys(rows.earlier_ages)})
    code_of = {one: code for code, one in enumerate(partitions)}
    earlier = [(code_of[one], at_ms, age) for one, (at_ms, age) in rows.earlier_ages.items()]
    codes = np.concatenate([np.array([code for code, _, _ in earlier], dtype=np.int64), rows.codes])
    times = np.concatenate([np.array([at_ms for _, at_ms, _ in earlier], dtype=np.int64), rows.sampled_ms])
    ages = np.concatenate([np.array([age for _, _, age in earlier], dtype=np.float64), rows.ages])
    order = np.lexsort((times, codes))
    codes, times, ages = codes[order], times[order], ages[order]
    starts = times + np.maximum(0, 1000 * (limit_seconds - np.nan_to_num(ages))).astype(np.int64)
    is_present = np.array([present is None or one in present for one in partitions], dtype=bool)
    last_ends = np.where(is_present[codes], window.to_ms, times) if len(codes) else times
    is_last = np.append(codes[1:] != codes[:-1], True)[: len(codes)]
    ends = np.where(is_last, last_ends, np.append(times[1:], window.to_ms)[: len(codes)])
    is_late = ~np.isnan(ages) & (starts < ends)
    return starts[is_late], ends[is_late]


def _union(starts: _Times, ends: _Times, window: Window) -> Iterator[Span]:
    """Yield the union of the periods, clipped to the window."""
    order = np.argsort(starts)
    starts, ends = starts[order], np.maximum.accumulate(ends[order]) if len(ends) else ends
    is_new = np.append(True, starts[1:] > ends[:-1])[: len(starts)]
    lasts = np.append(ends[:-1][is_new[1:]], ends[-1:])
    for start, end in zip(starts[is_new].tolist(), lasts.tolist(), strict=True):
        if end > window.from_ms and start < window.to_ms:
            yield Span(window.clip(start), window.clip(end))


def _without(silences: Sequence[Span], spans: Iterator[Span]) -> Iterator[Span]:
    """Yield the parts of the spans outside of the silences (rule 4)."""
    for span in spans:
        start_ms = span.from_ms
        for silence in silences:
            if silence.to_ms > start_ms and silence.from_ms < span.to_ms:
                if silence.from_ms > start_ms:
                    yield Span(start_ms, silence.from_ms)
                start_ms = silence.to_ms
        if start_ms < span.to_ms:
            yield Span(start_ms, span.to_ms)
