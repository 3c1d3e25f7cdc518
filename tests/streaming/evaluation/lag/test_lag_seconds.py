"""Tests of lag in seconds: interpolated between samples, and a bound outside them. It is never NaN or negative."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LagReport, lag_report
from streaming.evaluation.lag.lag_seconds import (
    END_OFFSET_POINTS,
    LAG_SECONDS_SCHEMA,
    end_offset_at,
    lag_seconds,
    lowest_end_offset_since,
)
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets

Point = tuple[int, int]
"""End offset, and the time of its sample in ms."""
PARTITION = ("orders", 0)

STEADY = [(0, 0), (10, 1_000), (200, 2_000), (3_000, 3_000), (40_000, 4_000)]
FLAT_SECTIONS = [
    (100, 30_000),
    (200, 60_000),
    (200, 120_000),
    (200, 700_000),
    (300, 730_000),
    (300, 9_000_000),
    (400, 9_030_000),
]
FLAT = [(100, 100), (100, 200), (100, 300), (100, 400)]


def sampled(points: Sequence[Point], limit: int = END_OFFSET_POINTS) -> SampledOffsets:
    """Return the sampled end offsets of one partition. `points` contains the oldest sample first."""
    ends = SampledOffsets(limit)
    for offset, sampled_at_ms in points:
        ends.add({PARTITION: offset}, sampled_at_ms)
    return ends


def report(
    committed: Sequence[tuple[str, int, int]], end_offsets: Mapping[tuple[str, int], int], at_ms: int
) -> LagReport:
    """Return the lag in records of commits (topic, partition, offset)."""
    topics, numbers, offsets = ([commit[index] for commit in committed] for index in range(3))
    columns = [["g"] * len(committed), topics, numbers, offsets, [7] * len(committed)]
    commits = pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, LAG_SCHEMA, strict=False)],
        names=LAG_SCHEMA.names[:5],
    )
    return lag_report(commits, ClusterSample(at_ms, end_offsets=end_offsets))


def answers(ends: SampledOffsets, committed: Sequence[int], end_offset: int | None, at_ms: int) -> list[dict[str, Any]]:
    """Return the lag of commits on the one partition."""
    end_offsets = {} if end_offset is None else {PARTITION: end_offset}
    table = lag_seconds(report([(*PARTITION, offset) for offset in committed], end_offsets, at_ms), ends)
    assert table.schema == LAG_SECONDS_SCHEMA
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def lag_of(points: Sequence[Point], committed: int) -> tuple[float | None, str]:
    """Return lag and kind at the last point's time."""
    (row,) = answers(sampled(points), [committed], *points[-1])
    return row["lag_seconds"], row["lag_seconds_kind"]


@pytest.mark.parametrize(
    ("points", "committed", "written_at_seconds"),
    [
        (FLAT_SECTIONS, 199, 59.7),
        (FLAT_SECTIONS, 200, 700),
        (FLAT_SECTIONS, 201, 700.3),
        (FLAT_SECTIONS, 250, 715),
        (FLAT_SECTIONS, 299, 729.7),
        (FLAT_SECTIONS, 300, 9_000),
        (FLAT_SECTIONS, 301, 9_000.3),
        (STEADY, 0, 0),
        (STEADY, 1, 0.1),
        (STEADY, 9, 0.9),
        (STEADY, 10, 1),
        (STEADY, 200, 2),
        (STEADY, 1_600, 2.5),
        (STEADY, 2_999, 2.9996428571428573),
        (STEADY, 3_000, 3),
        (STEADY, 3_001, 3.000027027027027),
        (STEADY, 40_000, 4),
        ([(100, 100_000), (200, 200_000)], 150, 150),
        ([(100, 100_000), (200, 200_000)], 190, 190),
        ([(100, 100_000), (200, 200_000)], 110, 110),
        ([(100, 100_000), (200, 200_000)], 100, 100),
    ],
)
def test_the_published_examples_of_kafka_lag_exporter(
    points: list[Point], committed: int, written_at_seconds: float
) -> None:
    """LookupTableSpec.scala gives the write time of a commit's record. The lag is the time since then."""
    lag, kind = lag_of(points, committed)
    assert kind == "exact"
    assert lag == pytest.approx(points[-1][1] / 1000 - written_at_seconds)


@pytest.mark.parametrize(
    ("points", "committed", "expected", "why"),
    [
        (
            STEADY,
            -10_000,
            (4.0, "at_least"),
            "published: -1 s, extrapolated; the oldest point is 4 s old, so only a bound is known",
        ),
        (STEADY, 50_000, (None, "unknown"), "published: 5 s, a lag of -1 s (kafka-lag-exporter 138)"),
        ([(100, 100_000), (200, 200_000)], 10, (100.0, "at_least"), "published: extrapolated under the table"),
        ([(100, 100_000), (200, 200_000)], 300, (None, "unknown"), "published: extrapolated over the table"),
        (FLAT, 99, (0.3, "at_least"), "published: -Inf; the record is older than all samples"),
        (FLAT, 101, (None, "unknown"), "published: +Inf; the end is before the commit"),
        ([(0, 0), (0, 100)], 0, (0.0, "exact"), "published: zero; the group has read to the end of a constant section"),
        ([(0, 100)], 0, (0.0, "exact"), "published: zero, from a single point"),
        ([(100, 100)], 0, (0.0, "at_least"), "published: too few points (NaN); here a bound of 0 from the start"),
        (FLAT_SECTIONS, 99, (9_000.0, "at_least"), "the age of the oldest point"),
        (FLAT_SECTIONS, 400, (0.0, "exact"), "the group has read to the end"),
        (
            [(0, 0), (1_000_000, 30_000)],
            0,
            (30.0, "exact"),
            "issue 496 showed three years for a reprocessing consumer; 30 s is correct",
        ),
        ([(0, 0), (2**63 - 1, 30_000)], 2**62, (15.0, "exact"), "the longest possible log"),
        (
            [(5, 0), (5, 1_000), (3, 2_000), (9, 3_000)],
            4,
            (5 / 6, "exact"),
            "the topic was recreated: its points start again (197)",
        ),
        (
            [(5, 0), (3, 2_000), (9, 3_000)],
            2,
            (1.0, "at_least"),
            "points before the recreated topic's start do not count",
        ),
        (
            [(5, 0), (9, 10_000), (8, 4_000)],
            6,
            (8 / 3, "exact"),
            "the clock was set back: the point with a future time is removed",
        ),
        ([(5, 0), (9, 10_000), (9, 4_000)], 7, (2.0, "exact"), "the same with an unchanged end offset"),
    ],
)
def test_known_faults_of_kafka_lag_exporter_do_not_occur(
    points: list[Point], committed: int, expected: tuple[float | None, str], why: str
) -> None:
    """Faults: no value after a start, values of years, infinite or negative values, no recovery."""
    lag, kind = lag_of(points, committed)
    assert (lag if lag is None else pytest.approx(lag), kind) == expected, why


STOPPED_FOR_TEN_MINUTES = [(100, 0), (100, 5_000), (200, 605_000), (300, 610_000)]


@pytest.mark.parametrize(
    ("points", "committed", "expected", "why"),
    [
        (STOPPED_FOR_TEN_MINUTES[:3], 100, (0.0, "at_least"), "the record can be as new as the sample that shows it"),
        (STOPPED_FOR_TEN_MINUTES, 150, (5.0, "at_least"), "the record is at least as old as this sample"),
        (STOPPED_FOR_TEN_MINUTES, 200, (5.0, "exact"), "written between two successive samples"),
        (STOPPED_FOR_TEN_MINUTES, 99, (610.0, "at_least"), "older than all samples, so all samples count"),
        ([*STOPPED_FOR_TEN_MINUTES, (400, 1_804_000)], 150, (1199.0, "at_least"), "the error would be above a third"),
        ([*STOPPED_FOR_TEN_MINUTES, (400, 1_805_000)], 150, (1500.0, "exact"), "the error is at most a third"),
        ([(100, 0), (200, 100_000)], 100, (100.0, "exact"), "a restart of the monitor"),
    ],
)
def test_a_record_of_a_time_without_samples_has_only_a_lower_bound(
    points: list[Point], committed: int, expected: tuple[float, str], why: str
) -> None:
    """After three days without samples, a record of one second ago had an exact lag of three days."""
    lag, kind = lag_of(points, committed)
    assert (pytest.approx(lag), kind) == expected, why


@pytest.mark.parametrize("samples", [300, 1_000, 3_000])
def test_points_that_were_removed_do_not_make_the_lag_a_lower_bound(samples: int) -> None:
    """A late group would change between `exact` and `at_least` while it reads."""
    points = [(10 * at, 15_000 * at) for at in range(samples)]
    end, at_ms = points[-1]
    committed = [*range(0, end, 10)]
    assert {row["lag_seconds_kind"] for row in answers(sampled(points), committed, end, at_ms)} == {"exact"}


def test_a_partition_missing_in_the_sample_has_no_lag() -> None:
    """The leader is missing. The last end offset is not the present one, even for a commit at this offset."""
    ends = sampled(STEADY)
    ends.add({("orders", 1): 5}, 9_000)
    unknown = {"lag_seconds": None, "lag_seconds_kind": "unknown", "within_seconds": None}
    assert answers(ends, [10, 40_000], None, 9_000) == [unknown] * 2
    assert answers(ends, [10], 40_000, 9_000) == [unknown], "points of a different sample are not used"


def test_a_partition_that_was_never_sampled_has_no_lag() -> None:
    assert [row["lag_seconds_kind"] for row in answers(SampledOffsets(3), [0], 5, 0)] == ["unknown"]
    commits = [("orders", 1, 0), ("payments", 0, 0), ("orders", -1, 0)]
    lag = report(commits, {(topic, number): 5 for topic, number, _ in commits}, 4_000)
    assert lag_seconds(lag, sampled(STEADY))["lag_seconds_kind"].to_pylist() == ["unknown"] * 3


def test_no_commits_have_no_lag() -> None:
    assert answers(sampled(STEADY), [], 40_000, 4_000) == []


GROWTH = st.lists(st.tuples(st.sampled_from([0, 0, 1, 7, 1_000]), st.integers(1, 20_000)), min_size=1, max_size=150)
"""Growth of the end offset, and the time in ms in which it grew."""


def history(growth: list[tuple[int, int]]) -> list[Point]:
    """Return points that only grow."""
    return list(
        zip(
            accumulate(moved for moved, _ in growth),
            accumulate(passed for _, passed in growth),
            strict=True,
        )
    )


@given(GROWTH, st.integers(3, 60), st.integers(-5, 200_000))
def test_the_true_age_is_within_the_reported_bounds(growth: list[tuple[int, int]], limit: int, committed: int) -> None:
    """The result is compared with all samples before thinning, within the error bound of the interpolation."""
    points = history(growth)
    end, at_ms = points[-1]
    (row,) = answers(sampled(points, limit), [committed], end, at_ms)
    lag, within = row["lag_seconds"], row["within_seconds"]
    below = [time for offset, time in points if offset <= committed]
    above = [time for offset, time in points if offset > committed]
    if committed > end:
        assert row == {"lag_seconds": None, "lag_seconds_kind": "unknown", "within_seconds": None}
    elif committed == end:
        assert (lag, row["lag_seconds_kind"], within) == (0.0, "exact", 0.0)
    elif not below:
        assert (row["lag_seconds_kind"], within) == ("at_least", None)
        assert lag == (at_ms - points[0][1]) / 1000, "the oldest point is never removed by thinning"
    elif row["lag_seconds_kind"] == "at_least":
        assert within is None
        assert lag <= (at_ms - above[0]) / 1000
    else:
        youngest, oldest = (at_ms - above[0]) / 1000, (at_ms - below[-1]) / 1000
        assert lag - within - 1e-6 <= youngest <= oldest <= lag + within + 1e-6
        assert 0 <= lag < math.inf


@given(GROWTH, st.integers(3, 20), st.lists(st.integers(0, 5_000), max_size=5))
def test_a_restart_changes_no_result(growth: list[tuple[int, int]], limit: int, committed: list[int]) -> None:
    points = history(growth)
    ends = sampled(points, limit)
    restarted = SampledOffsets.decode(*ends.encode(), limit)
    assert answers(restarted, committed, *points[-1]) == answers(ends, committed, *points[-1])


def test_results_for_many_commits_equal_results_one_by_one() -> None:
    """One call has rows of several partitions with different ages."""
    ends = SampledOffsets(5)
    for tick in range(1, 40):
        ends.add({("a", number): tick * (number + 1) for number in range(7) if tick > number}, tick * 1_000)
    end_offsets = {("a", number): 39 * (number + 1) for number in range(7)}
    commits = [("a", number, offset) for number in range(9) for offset in (0, 3, 17, 39, 70, 200, 500)]
    together = lag_seconds(report(commits, end_offsets, 39_000), ends).to_pylist()
    alone = [lag_seconds(report([commit], end_offsets, 39_000), ends).to_pylist()[0] for commit in commits]
    assert together == alone
    assert {row["lag_seconds_kind"] for row in together} == {"exact", "at_least", "unknown"}


@pytest.mark.parametrize(
    ("since_ms", "expected", "why"),
    [
        (0, 0, "all samples count"),
        (1_000, 10, "a sample at exactly this time counts"),
        (1_001, 200, "a sample before this time does not count"),
        (4_000, 40_000, "only the newest sample counts"),
        (4_001, None, "no sample since then"),
    ],
)
def test_the_lowest_recent_end_offset_is_the_first_one_since_this_time(
    since_ms: int, expected: int | None, why: str
) -> None:
    ends = sampled(STEADY)
    rows = ends.rows(pa.array(["orders", "payments"]), np.array([0, 0]))
    lowest, is_sampled = lowest_end_offset_since(ends, rows, since_ms)
    assert (lowest[0] if is_sampled[0] else None) == expected, why
    assert not is_sampled[1], "a partition that was never sampled has none"


@pytest.mark.parametrize(
    ("at_ms", "expected", "why"),
    [
        (3_000, 3_000, "a sample at exactly this time"),
        (3_999, 3_000, "the last sample before this time"),
        (9_000, 40_000, "the newest sample"),
        (-1, -1, "no sample is that old"),
    ],
)
def test_the_end_offset_of_an_earlier_time_comes_from_the_last_sample_before(
    at_ms: int, expected: int, why: str
) -> None:
    ends = sampled(STEADY)
    rows = ends.rows(pa.array(["orders"]), np.array([0]))
    assert end_offset_at(ends, rows, np.array([at_ms])).tolist() == [expected], why


def test_a_partition_without_samples_has_no_lowest_end_offset_for_any_number_of_rows() -> None:
    """A missing row has number -1, and NumPy would read the last row."""
    for partitions in range(1, 130):
        ends = SampledOffsets(3)
        ends.add({("orders", number): 5 for number in range(partitions)}, 10)
        assert lowest_end_offset_since(ends, np.array([-1, 0]), 0)[1].tolist() == [False, True]


def test_nothing_sampled_has_no_lowest_end_offset() -> None:
    _, is_sampled = lowest_end_offset_since(SampledOffsets(3), np.array([-1]), 0)
    assert is_sampled.tolist() == [False]
