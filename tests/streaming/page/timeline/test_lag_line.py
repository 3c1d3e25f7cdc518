"""Tests of the lag over time: an independent model, and a table of cases that are easy to get wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import TopicPartition
from streaming.page.timeline.history import LagPoint, Span
from streaming.page.timeline.lag_line import LAG_INTERVALS, LagLine, LagPartitions, LagRows, Lags
from streaming.page.timeline.window import SPANS, Window

WINDOW = Window(0, LAG_INTERVALS * 1_000)
A, B, C = ("t", 0), ("t", 1), ("u", 0)
END = -1
"""The lag of an end row in these tests."""
Row = tuple[int, TopicPartition, int | None]
"""A row of `group_lag`: time in seconds, partition, lag."""


def points(  # noqa: PLR0913 - the inputs of a line
    rows: Sequence[Row],
    earlier: Lags,
    present: Lags | None,
    silences: Sequence[Span] = (),
    window: Window = WINDOW,
    *,
    ended_before: Collection[TopicPartition] = (),
    cuts: Collection[int] = (),
) -> tuple[LagPoint, ...]:
    """Return the line. `cuts` are the seconds at which a new piece of the rows starts."""
    names = sorted({partition for _, partition, _ in rows})
    last_ms = np.array([max(1_000 * second for second, one, _ in rows if one == name) for name in names], np.int64)
    line = LagLine(LagPartitions(names, last_ms, earlier, {}, ended_before), present, window)
    edges = [-1, *sorted(cuts), 10**9]
    for start, end in pairwise(edges):
        line.add(columns([row for row in rows if start <= row[0] < end], names))
    found, last = line.points(silences)
    assert last.records is None or last.records <= (found[-1].records or 0), "the last value is in the last interval"
    return found


def columns(rows: Sequence[Row], names: Sequence[TopicPartition]) -> LagRows:
    return LagRows(
        np.array([1_000 * second for second, _, _ in rows], dtype=np.int64),
        np.array([names.index(partition) for _, partition, _ in rows], dtype=np.int64),
        np.array([lag or 0 for _, _, lag in rows], dtype=np.int64),
        np.array([lag not in {None, END} for _, _, lag in rows], dtype=bool),
        np.array([lag == END for _, _, lag in rows], dtype=bool),
        np.full(len(rows), np.nan),
    )


@pytest.mark.parametrize(
    ("rows", "earlier", "present", "at_10", "at_100"),
    [
        pytest.param([(50, A, 7)], {A: 3}, {A: 7}, (3, False), (7, False), id="a row only when the lag changes"),
        pytest.param([], {}, {A: 5, B: 6}, (11, False), (11, False), id="rule 2: nothing changed"),
        pytest.param([(50, A, 7)], {}, {A: 7, B: 6}, (6, True), (13, False), id="rule 3: A is unknown before its row"),
        pytest.param([(50, A, 7)], {}, {A: 7}, (None, False), (7, False), id="rule 3: nothing is known before"),
        pytest.param([(50, A, None)], {A: 3, B: 1}, {A: None, B: 1}, (4, False), (None, False), id="rule 1"),
        pytest.param([(50, A, 2)], {A: None}, {A: 2}, (None, False), (2, False), id="known again"),
        pytest.param([(50, A, 9)], {A: 3, B: 1}, {B: 1}, (4, False), (1, False), id="rule 4: A was deleted"),
        pytest.param([(50, A, 9)], {A: 3}, None, (3, True), (9, True), id="rule 3: the report is unknown"),
        pytest.param([], {A: 4}, {}, (None, False), (None, False), id="rule 4: deleted before the window"),
        pytest.param([], {}, {}, (None, False), (None, False), id="no commits: no lag, not 0"),
        pytest.param([(50, A, 0)], {A: 0}, {A: 0}, (0, False), (0, False), id="0 is a value"),
    ],
)
def test_the_lag_of_a_group_is_the_sum_of_the_last_row_of_each_partition(
    rows: Sequence[Row],
    earlier: Lags,
    present: Lags | None,
    at_10: tuple[int | None, bool],
    at_100: tuple[int | None, bool],
) -> None:
    found = points(rows, earlier, present)
    assert [(point.records, point.is_bound and point.records is not None) for point in (found[10], found[100])] == [
        at_10,
        at_100,
    ]


def test_a_partition_does_not_count_after_its_end_row() -> None:
    """Rule 4: an offset expired at 77 s. The report is unknown, so only the end row shows that it no longer exists."""
    found = points([(50, A, 9), (77, A, END), (90, B, 4)], {A: 3, B: 1}, None)
    assert [found[number].records for number in (10, 60, 80, 100)] == [4, 10, 1, 4]
    found = points([(77, A, END)], {A: 3}, None)
    assert [found[number].records for number in (10, 80)] == [3, None], "no committed offset: no lag, not 0"


def test_a_partition_that_ended_before_the_window_is_not_missing() -> None:
    """Rule 4: the group commits again at 50 s. Before this row, the sum of the other partitions is exact."""
    found = points([(50, A, 9)], {B: 1}, {A: 9, B: 1}, ended_before=[A])
    assert [(found[number].records, found[number].is_bound) for number in (10, 100)] == [(1, False), (10, False)]


def test_a_peak_between_two_intervals_is_not_lost() -> None:
    """Rule 5: seven days have intervals of 42 minutes. A peak of one minute is the reason for the page call."""
    found = points([(50, A, 9_000), (51, A, 3)], {A: 1}, {A: 3}, [], Window(0, 100 * 240_000))
    assert max(point.records or 0 for point in found) == 9_000
    assert found[-1].records == 3


def test_without_measurements_the_line_breaks() -> None:
    """Rule 5: the last value before a stop of the monitor is not the value during the stop."""
    found = points([(50, A, 7)], {A: 3}, {A: 7}, [Span(60_000, 90_000)])
    known = [number for number, point in enumerate(found) if point.records is not None]
    assert known == [*range(61), *range(89, LAG_INTERVALS)], "60 s and 90 s are the times of measurements"
    assert points([], {}, {A: 7}, [Span(0, WINDOW.to_ms)]) == points([], {}, {}), "the monitor never ran"


def test_a_short_silence_does_not_hide_a_peak_in_the_same_interval() -> None:
    """Rule 5: the monitor was off for four minutes in the middle of 42 minutes. The summary showed 10 records."""
    from_s = 120 * 2_520
    silence = [Span(1_000 * (from_s + 1_140), 1_000 * (from_s + 1_380))]
    rows = [(from_s + 300, A, 50_000), (from_s + 390, A, 10)]
    found = points(rows, {A: 10}, {A: 10}, silence, Window(0, SPANS["7d"]))
    assert (found[120].records, found[120].at_ms) == (50_000, 1_000 * (from_s + 300))
    found = points([], {A: 10}, {A: 10}, silence, Window(0, SPANS["7d"]))
    assert {point.records for point in found} == {10}


lags = st.none() | st.integers(0, 9)
seconds = st.integers(0, LAG_INTERVALS)
partitions = st.sampled_from([A, B, C])


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.tuples(seconds, partitions), lags | st.just(END), max_size=12),
    st.dictionaries(partitions, lags),
    st.none() | st.dictionaries(partitions, lags),
    st.sets(seconds, max_size=5),
    st.none() | st.tuples(seconds, seconds).filter(lambda pair: pair[0] < pair[1]),
)
def test_the_line_is_the_same_as_in_a_model_that_replays_the_rows(
    changes: Mapping[tuple[int, TopicPartition], int | None],
    earlier: Lags,
    present: Lags | None,
    cuts: Collection[int],
    silence: tuple[int, int] | None,
) -> None:
    """The rows come in pieces. It does not matter where a piece starts."""
    rows = [(second, partition, lag) for (second, partition), lag in changes.items()]
    silences = [Span(1_000 * silence[0], 1_000 * silence[1])] if silence else []
    found = points(rows, earlier, present, silences, cuts=cuts)
    assert list(found) == model(rows, earlier, present, silences)


def model(rows: Sequence[Row], earlier: Lags, present: Lags | None, silences: Sequence[Span]) -> list[LagPoint]:
    """Replay the rows second by second, and take the highest total of each interval of one second."""
    expected = []
    for second in range(LAG_INTERVALS):
        start, end = 1_000 * second, 1_000 * (second + 1)
        candidates = [
            (*total_at(at_ms, rows, earlier, present), at_ms)
            for at_ms in (start, start + 1, end)
            if not any(is_silent(at_ms, one) for one in silences)
        ]
        known = [(lag, missing, at_ms) for lag, missing, at_ms in candidates if lag is not None]
        if not known:
            expected.append(LagPoint(start, end, None))
            continue
        highest, missing, at_ms = max(known, key=itemgetter(0))
        expected.append(LagPoint(start, end, highest, present is None or missing, at_ms))
    return expected


def is_silent(at_ms: int, silence: Span) -> bool:
    """Return True if the time is between two measurements, or between a measurement and an end of the window."""
    from_ms = silence.from_ms - (silence.from_ms == WINDOW.from_ms)
    return from_ms < at_ms < silence.to_ms + (silence.to_ms == WINDOW.to_ms)


def total_at(at_ms: int, rows: Sequence[Row], earlier: Lags, present: Lags | None) -> tuple[int | None, bool]:
    """Return the total at a time, and whether a partition is missing."""
    values: dict[TopicPartition, int | None] = {}
    missing = False
    for partition in {A, B, C}:
        own = sorted(((1_000 * second, lag) for second, of, lag in rows if of == partition), key=lambda row: row[0])
        before = [lag for row_ms, lag in own if row_ms <= at_ms]
        is_gone = present is not None and partition not in present
        if own and is_gone and at_ms > own[-1][0]:
            continue
        if before and before[-1] == END:
            continue
        if before:
            values[partition] = before[-1]
        elif partition in earlier and (own or not is_gone):
            values[partition] = earlier[partition]
        elif own:
            missing = True
        elif present is not None and partition in present:
            values[partition] = present[partition]
    known = [lag for lag in values.values() if lag is not None]
    return (None, missing) if len(known) < len(values) or not known else (sum(known), missing)


def test_the_last_lag_is_that_at_the_end_and_not_the_highest_of_the_last_interval() -> None:
    """An interval of seven days lasts 42 minutes. The page showed the highest lag of these minutes as the last lag."""
    week = Window(0, 7 * 86_400_000)
    line = LagLine(LagPartitions([A], np.array([604_000_000], np.int64), {A: 0}, {}, ()), {A: 0}, week)
    line.add(columns([(603_000, A, 1_000_000), (604_000, A, 0)], [A]))
    found, last = line.points([])
    assert (found[-1].records, last.records, last.at_ms) == (1_000_000, 0, week.to_ms)
    assert line.points([Span(604_000_000, week.to_ms)])[1].records is None
