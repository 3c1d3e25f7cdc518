"""Tests of points of growing offsets: constant sections, restarts, clocks set back, and thinning at the limit."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.stored.offset_points import OffsetPoints

Point = tuple[int, int]


def remaining_points(samples: list[Point], limit: int = 60) -> list[Point]:
    """Return the remaining points of samples (offset, time) of one row."""
    points = OffsetPoints(limit)
    for offset, sampled_at_ms in samples:
        points.add(np.array([0]), np.array([offset]), sampled_at_ms)
    return points.of_row(0)


@pytest.mark.parametrize(
    ("samples", "expected", "why"),
    [
        (
            [(100, 30), (200, 60), (200, 120), (200, 700), (300, 730), (300, 9_000), (400, 9_030)],
            [(100, 30), (200, 60), (200, 700), (300, 730), (300, 9_000), (400, 9_030)],
            "published: six points, the middle 200 merged (LookupTableSpec.scala)",
        ),
        (
            [(100, at) for at in (100, 200, 300, 400)],
            [(100, 100), (100, 400)],
            "published: a constant section is two points",
        ),
        ([(100, 100)], [(100, 100)], "published: one point"),
        ([(100, 100), (100, 100)], [(100, 100)], "a repeated sample changes nothing"),
        (
            [(5, 1), (5, 2), (5, 3), (5, 3)],
            [(5, 1), (5, 3)],
            "a repeated last sample of a constant section changes nothing",
        ),
        (
            [(100, 100), (90, 110)],
            [(90, 110)],
            "published: refused and never recovers (197); here the row starts again",
        ),
        ([(100, 100), (110, 90)], [(110, 90)], "published: refused; here the clock that was set back is used"),
        ([(1, 10), (2, 20), (3, 30), (4, 20)], [(1, 10), (4, 20)], "points with a future time are removed"),
        (
            [(1, 10), (2, 20), (3, 30), (1, 20)],
            [(1, 10), (1, 20)],
            "the new point is compared only with the remaining points",
        ),
    ],
)
def test_points_follow_the_rules(samples: list[Point], expected: list[Point], why: str) -> None:
    assert remaining_points(samples) == expected, why


SAMPLES = st.lists(st.tuples(st.sampled_from([0, 0, 1, 50]), st.integers(1, 30_000)), min_size=1, max_size=200)


@given(SAMPLES, st.integers(3, 20))
def test_points_ascend_within_the_limit_and_keep_the_oldest_and_the_newest(growth: list[Point], limit: int) -> None:
    """The number of points is limited, and the covered time stays the same."""
    offsets = list(accumulate(moved for moved, _ in growth))
    times = list(accumulate(passed for _, passed in growth))
    points = remaining_points(list(zip(offsets, times, strict=True)), limit)
    assert len(points) <= limit
    assert points[0] == (offsets[0], times[0])
    assert points[-1] == (offsets[-1], times[-1])
    assert all(left[0] <= right[0] and left[1] < right[1] for left, right in pairwise(points))
    assert set(points) <= set(zip(offsets, times, strict=True)), "every point was sampled"


@pytest.mark.parametrize(
    ("hours", "share_of_age"),
    [(1, 0.15), (24, 0.27)],
)
def test_distances_between_points_grow_at_most_in_proportion_to_their_age(hours: int, share_of_age: float) -> None:
    """The maximum error in lag_seconds.py follows from these distances, if each sample has a new end offset."""
    ticks = hours * 720
    points = remaining_points([(tick, tick * 5_000) for tick in range(1, ticks + 1)])
    now_ms = ticks * 5_000
    assert points[0][1] == 5_000, "the points cover the whole time"
    for (_, left_ms), (_, right_ms) in pairwise(points):
        assert right_ms - left_ms <= max(5_000, share_of_age * (now_ms - right_ms))


def test_rows_are_independent() -> None:
    """In one call, one row starts again, one grows, one is thinned, and one is new."""
    points = OffsetPoints(3)
    points.add(np.array([0, 1, 2]), np.array([9, 5, 1]), 10)
    points.add(np.array([0, 1, 2]), np.array([9, 5, 2]), 20)
    points.add(np.array([2]), np.array([3]), 30)
    fell_back = points.add(np.array([3, 2, 1, 0]), np.array([7, 4, 5, 8]), 40)
    assert fell_back.tolist() == [False, False, False, True]
    assert [points.of_row(row) for row in range(4)] == [
        [(8, 40)],
        [(5, 10), (5, 40)],
        [(1, 10), (3, 30), (4, 40)],
        [(7, 40)],
    ]


def test_more_rows_than_the_initial_capacity() -> None:
    points = OffsetPoints(3)
    points.add(np.arange(1_000), np.arange(1_000), 5)
    points.keep(np.array([999, 3]))
    assert [points.of_row(row) for row in range(2)] == [[(999, 5)], [(3, 5)]]
    points.add(np.array([2]), np.array([8]), 6)
    assert points.of_row(2) == [(8, 6)]


@given(SAMPLES, st.integers(0, 6_000), st.integers(0, 400_000))
def test_both_searches_equal_a_search_over_every_point(growth: list[Point], offset: int, since_ms: int) -> None:
    points = OffsetPoints(7)
    row = np.array([1])
    for moved, passed in zip(
        accumulate(moved for moved, _ in growth), accumulate(passed for _, passed in growth), strict=True
    ):
        points.add(row, np.array([moved]), passed)
    known = points.of_row(1)
    assert points.last_at_or_below(row, np.array([offset]))[0] == sum(at <= offset for at, _ in known) - 1
    assert points.first_since(row, since_ms)[0] == sum(at < since_ms for _, at in known)


def test_restoring_under_a_lower_limit_keeps_the_newest() -> None:
    points = OffsetPoints(3)
    points.restore(np.array([0, 0, 0, 0, 1]), np.array([1, 2, 3, 4, 9]), np.array([10, 20, 30, 40, 40]))
    assert [points.of_row(row) for row in range(2)] == [[(2, 20), (3, 30), (4, 40)], [(9, 40)]]


def test_a_limit_without_room_for_an_inner_point_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 3"):
        OffsetPoints(2)
