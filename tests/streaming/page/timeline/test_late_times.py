"""Tests of the times above the lag limit: a plain model of each second, and cases that are easy to get wrong."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import TopicPartition
from streaming.page.timeline.history import Span
from streaming.page.timeline.lag_line import LagPartitions, LagRows, Lags
from streaming.page.timeline.late_times import LateTimes
from streaming.page.timeline.window import Window

A, B = ("t", 0), ("t", 1)
LIMIT_SECONDS, WINDOW = 60, Window(1_000_000, 1_600_000)
Row = tuple[int, TopicPartition, float]
"""A row of `group_lag`: seconds since the start of the window, partition, age of the next record in seconds."""


def late_times(  # noqa: PLR0913 - the inputs of the computation
    rows: Sequence[Row],
    earlier: Mapping[TopicPartition, tuple[int, float]] = {},
    present: Lags | None = None,
    silences: Sequence[Span] = (),
    cuts: Collection[int] = (),
    *,
    measured: Sequence[int] = range(-7200, 601),
) -> list[tuple[int, int]]:
    """Return the times above the limit.

    `cuts` are the seconds at which a new piece of the rows starts. `measured` are the seconds of the measurements.
    """
    names = sorted({partition for _, partition, _ in rows})
    ages = {one: (WINDOW.from_ms + 1_000 * second, age) for one, (second, age) in earlier.items()}
    partitions = LagPartitions(names, np.array([], dtype=np.int64), {}, ages, ())
    measured_ms = [WINDOW.from_ms + 1_000 * second for second in measured]
    late = LateTimes(partitions, LIMIT_SECONDS, present, WINDOW, measured_ms)
    for start, end in pairwise([-1, *sorted(cuts), 10**9]):
        late.add(columns([row for row in rows if start <= row[0] < end], names))
    return seconds(late.spans(silences))


def columns(rows: Sequence[Row], names: Sequence[TopicPartition]) -> LagRows:
    return LagRows(
        sampled_ms=np.array([WINDOW.from_ms + 1_000 * second for second, _, _ in rows], dtype=np.int64),
        codes=np.array([names.index(partition) for _, partition, _ in rows], dtype=np.int64),
        records=np.array([0 if math.isnan(age) else 7 for _, _, age in rows], dtype=np.int64),
        is_known=np.ones(len(rows), dtype=bool),
        is_end=np.zeros(len(rows), dtype=bool),
        ages=np.array([age for _, _, age in rows], dtype=np.float64),
    )


def seconds(spans: Sequence[Span]) -> list[tuple[int, int]]:
    return [((one.from_ms - WINDOW.from_ms) // 1_000, (one.to_ms - WINDOW.from_ms) // 1_000) for one in spans]


NO_LAG = math.nan
PRESENT = {A: 7, B: 7}


@pytest.mark.parametrize(
    ("rows", "earlier", "found"),
    [
        pytest.param([(100, A, 61.0), (200, A, NO_LAG)], {}, [(100, 200)], id="above until the next row"),
        pytest.param([(100, A, 50.0), (200, A, NO_LAG)], {}, [(110, 200)], id="rule 1: the age grows without a row"),
        pytest.param([(100, A, 50.0), (105, A, 1.0)], {}, [(164, 600)], id="rule 1: the next row came in time"),
        pytest.param(
            [(100, A, 61.0), (150, B, 90.0), (200, A, NO_LAG), (300, B, NO_LAG)],
            {},
            [(100, 300)],
            id="rule 2: one partition is enough",
        ),
        pytest.param([], {A: (-90, 0.0)}, [(0, 600)], id="the last row is before the window"),
        pytest.param([(30, A, NO_LAG)], {A: (-50, 0.0)}, [(10, 30)], id="it became late in the window"),
        pytest.param([], {A: (-90, NO_LAG)}, [], id="no record waits"),
    ],
)
def test_the_lag_is_above_the_limit_from_the_time_that_the_age_proves(
    rows: Sequence[Row], earlier: Mapping[TopicPartition, tuple[int, float]], found: list[tuple[int, int]]
) -> None:
    assert late_times(rows, earlier, PRESENT) == found


@pytest.mark.parametrize(
    ("age", "measured", "found", "why"),
    [
        (50.0, [100, 130], [], "between the two rows, nobody measured that the group did not commit"),
        (50.0, [100, 109, 130], [], "at the last measurement, the age was 59 s"),
        (50.0, [100, 110, 130], [(110, 130)], "at the last measurement, the age was 60 s"),
        (61.0, [100, 130], [(100, 130)], "the row itself is above the limit"),
    ],
)
def test_a_group_below_the_limit_in_each_row_is_not_above_the_limit_between_the_rows(
    age: float, measured: Sequence[int], found: list[tuple[int, int]], why: str
) -> None:
    """Shortly before each row, the background was red, although the lag was never above the limit."""
    rows = [(100, A, age), (130, A, NO_LAG)]
    assert late_times(rows, {}, PRESENT, measured=measured) == found, why


def test_a_deleted_partition_counts_until_its_last_row() -> None:
    """Rule 3: the topic was deleted while the group was late."""
    rows = [(100, A, 90.0), (150, A, 140.0)]
    assert late_times(rows, {}, {B: 0}) == [(100, 150)]
    assert late_times(rows, {}, None) == [(100, 600)], "the report is unknown"


def test_a_time_without_measurements_proves_nothing() -> None:
    """Rule 4: the monitor did not run. Possibly the group caught up and fell behind again."""
    silences = [Span(WINDOW.from_ms + 200_000, WINDOW.from_ms + 300_000)]
    assert late_times([(100, A, 90.0)], {}, PRESENT, silences) == [(100, 200), (300, 600)]


all_rows = st.dictionaries(
    st.tuples(st.integers(0, 600), st.sampled_from([A, B])),
    st.one_of(st.just(NO_LAG), st.integers(1, 150).map(float)),
    max_size=12,
).map(lambda found: [(second, partition, age) for (second, partition), age in sorted(found.items())])


@given(rows=all_rows, cuts=st.sets(st.integers(0, 600), max_size=4))
def test_each_second_is_as_a_plain_reading_of_the_rows_says(rows: Sequence[Row], cuts: Collection[int]) -> None:
    """The rows come in pieces. It does not matter where a piece starts."""
    found = late_times(rows, {}, PRESENT, (), cuts)
    assert found == sorted(found)
    for second in range(600):
        assert any(start <= second + 0.5 < end for start, end in found) == _is_late(rows, second + 0.5)


def _is_late(rows: Sequence[Row], second: float) -> bool:
    last = {partition: (at, age) for at, partition, age in rows if at <= second}
    return any(age + second - at > LIMIT_SECONDS for at, age in last.values())
