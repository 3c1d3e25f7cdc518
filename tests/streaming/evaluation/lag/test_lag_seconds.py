"""Lag in time: interpolated between samples, bounded beyond them, never NaN, infinite, negative or extrapolated."""

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
    lag_seconds,
    lowest_end_offset_since,
)
from streaming.evaluation.lag.sampled_offsets import SampledOffsets

Point = tuple[int, int]
"""End offset, sampled at ms."""
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
    """Return end offsets of one partition, sampled one after another."""
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
def test_the_published_examples_of_kafka_lag_exporter_hold(
    points: list[Point], committed: int, written_at_seconds: float
) -> None:
    """LookupTableSpec.scala gives the time a commit's record was written; lag is what has passed since."""
    lag, kind = lag_of(points, committed)
    assert kind == "exact"
    assert lag == pytest.approx(points[-1][1] / 1000 - written_at_seconds)


@pytest.mark.parametrize(
    ("points", "committed", "expected", "why"),
    [
        (STEADY, -10_000, (4.0, "at_least"), "published: -1 s, extrapolated; the table is 4 s old, no more is known"),
        (STEADY, 50_000, (None, "unknown"), "published: 5 s, a lag of -1 s (kafka-lag-exporter 138)"),
        ([(100, 100_000), (200, 200_000)], 10, (100.0, "at_least"), "published: extrapolated under the table"),
        ([(100, 100_000), (200, 200_000)], 300, (None, "unknown"), "published: extrapolated over the table"),
        (FLAT, 99, (0.3, "at_least"), "published: -Inf; the record is older than all we saw"),
        (FLAT, 101, (None, "unknown"), "published: +Inf; the end lies before the commit"),
        ([(0, 0), (0, 100)], 0, (0.0, "exact"), "published: zero; read to the end of a flat run"),
        ([(0, 100)], 0, (0.0, "exact"), "published: zero, from a single point"),
        ([(100, 100)], 0, (0.0, "at_least"), "published: too few points (NaN); a bound, if a weak one, from the start"),
        (FLAT_SECTIONS, 99, (9_000.0, "at_least"), "the whole table's age"),
        (FLAT_SECTIONS, 400, (0.0, "exact"), "read to the end"),
        ([(0, 0), (1_000_000, 30_000)], 0, (30.0, "exact"), "three years for a reprocessing consumer (496) are 30 s"),
        ([(0, 0), (2**63 - 1, 30_000)], 2**62, (15.0, "exact"), "the longest log there can be"),
        ([(5, 0), (5, 1_000), (3, 2_000), (9, 3_000)], 4, (5 / 6, "exact"), "created anew: the row starts anew (197)"),
        ([(5, 0), (3, 2_000), (9, 3_000)], 2, (1.0, "at_least"), "what was before the topic's end says nothing now"),
        ([(5, 0), (9, 10_000), (8, 4_000)], 6, (8 / 3, "exact"), "a clock set back: the point of the future goes"),
        ([(5, 0), (9, 10_000), (9, 4_000)], 7, (2.0, "exact"), "likewise, the end where it was"),
    ],
)
def test_the_stated_faults_are_mended(
    points: list[Point], committed: int, expected: tuple[float | None, str], why: str
) -> None:
    """monitoring-facts 3b: blind after a start, extrapolated to years, infinite, negative, stuck for ever."""
    lag, kind = lag_of(points, committed)
    assert (lag if lag is None else pytest.approx(lag), kind) == expected, why


def test_a_partition_the_sample_left_out_has_no_lag() -> None:
    """A leader is missing: the last end offset is no present one, not even for a commit at it."""
    ends = sampled(STEADY)
    ends.add({("orders", 1): 5}, 9_000)
    unknown = {"lag_seconds": None, "lag_seconds_kind": "unknown", "within_seconds": None}
    assert answers(ends, [10, 40_000], None, 9_000) == [unknown] * 2
    assert answers(ends, [10], 40_000, 9_000) == [unknown], "points of another sample say nothing of this one"


def test_what_was_never_sampled_has_no_lag() -> None:
    assert [row["lag_seconds_kind"] for row in answers(SampledOffsets(3), [0], 5, 0)] == ["unknown"]
    commits = [("orders", 1, 0), ("payments", 0, 0), ("orders", -1, 0)]
    lag = report(commits, {(topic, number): 5 for topic, number, _ in commits}, 4_000)
    assert lag_seconds(lag, sampled(STEADY))["lag_seconds_kind"].to_pylist() == ["unknown"] * 3


def test_no_commits_have_no_lag() -> None:
    assert answers(sampled(STEADY), [], 40_000, 4_000) == []


GROWTH = st.lists(st.tuples(st.sampled_from([0, 0, 1, 7, 1_000]), st.integers(1, 20_000)), min_size=1, max_size=150)
"""How far the end offset moved in how many ms."""


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
def test_the_true_age_is_within_what_is_said(growth: list[tuple[int, int]], limit: int, committed: int) -> None:
    """Against all samples ever made, whatever was thinned: the law of the interpolation's error."""
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
        assert lag == (at_ms - points[0][1]) / 1000, "the oldest point is never thinned away"
    else:
        youngest, oldest = (at_ms - above[0]) / 1000, (at_ms - below[-1]) / 1000
        assert lag - within - 1e-6 <= youngest <= oldest <= lag + within + 1e-6
        assert 0 <= lag < math.inf


@given(GROWTH, st.integers(3, 20), st.lists(st.integers(0, 5_000), max_size=5))
def test_a_restart_changes_no_answer(growth: list[tuple[int, int]], limit: int, committed: list[int]) -> None:
    points = history(growth)
    ends = sampled(points, limit)
    restarted = SampledOffsets.decode(*ends.encode(), limit)
    assert answers(restarted, committed, *points[-1]) == answers(ends, committed, *points[-1])


def test_many_commits_are_answered_as_one_by_one() -> None:
    """Rows of several partitions at different ages in one call."""
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
        (0, 0, "all of it"),
        (1_000, 10, "a sample made just then counts"),
        (1_001, 200, "and one before does not"),
        (4_000, 40_000, "the newest alone"),
        (4_001, None, "nothing was sampled since"),
    ],
)
def test_the_lowest_recent_end_offset_is_the_first_one_since(since_ms: int, expected: int | None, why: str) -> None:
    ends = sampled(STEADY)
    rows = ends.rows(pa.array(["orders", "payments"]), np.array([0, 0]))
    lowest, is_sampled = lowest_end_offset_since(ends, rows, since_ms)
    assert (lowest[0] if is_sampled[0] else None) == expected, why
    assert not is_sampled[1], "a partition never sampled has none"


def test_what_was_never_sampled_has_no_lowest_end_offset_however_many_rows_there_are() -> None:
    """No row is -1, which NumPy takes for the last one."""
    for partitions in range(1, 130):
        ends = SampledOffsets(3)
        ends.add({("orders", number): 5 for number in range(partitions)}, 10)
        assert lowest_end_offset_since(ends, np.array([-1, 0]), 0)[1].tolist() == [False, True]


def test_nothing_sampled_has_no_lowest_end_offset() -> None:
    _, is_sampled = lowest_end_offset_since(SampledOffsets(3), np.array([-1]), 0)
    assert is_sampled.tolist() == [False]
