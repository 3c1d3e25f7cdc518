"""Points of offsets that only grow: flat runs, new starts, clocks set back, and what is thinned at the limit."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.offset_points import OffsetPoints

Point = tuple[int, int]


def kept(samples: list[Point], limit: int = 60) -> list[Point]:
    """Return what is left of samples (offset, time) of one row."""
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
        ([(100, at) for at in (100, 200, 300, 400)], [(100, 100), (100, 400)], "published: a flat run is two points"),
        ([(100, 100)], [(100, 100)], "published: one point"),
        ([(100, 100), (100, 100)], [(100, 100)], "the same sample again changes nothing"),
        ([(5, 1), (5, 2), (5, 3), (5, 3)], [(5, 1), (5, 3)], "nor does the last of a flat run"),
        ([(100, 100), (90, 110)], [(90, 110)], "published: refused, stuck (197); ours starts anew"),
        ([(100, 100), (110, 90)], [(110, 90)], "published: refused; ours takes the set-back clock's word"),
        ([(1, 10), (2, 20), (3, 30), (4, 20)], [(1, 10), (4, 20)], "points of a time that has not come go"),
        ([(1, 10), (2, 20), (3, 30), (1, 20)], [(1, 10), (1, 20)], "and only what remains is compared with"),
    ],
)
def test_points_are_kept_by_the_rules(samples: list[Point], expected: list[Point], why: str) -> None:
    assert kept(samples) == expected, why


SAMPLES = st.lists(st.tuples(st.sampled_from([0, 0, 1, 50]), st.integers(1, 30_000)), min_size=1, max_size=200)


@given(SAMPLES, st.integers(3, 20))
def test_points_ascend_within_the_limit_from_the_oldest_to_the_newest(growth: list[Point], limit: int) -> None:
    """Bounded, and never blind to how far back it reaches."""
    offsets = list(accumulate(moved for moved, _ in growth))
    times = list(accumulate(passed for _, passed in growth))
    points = kept(list(zip(offsets, times, strict=True)), limit)
    assert len(points) <= limit
    assert points[0] == (offsets[0], times[0])
    assert points[-1] == (offsets[-1], times[-1])
    assert all(left[0] <= right[0] and left[1] < right[1] for left, right in pairwise(points))
    assert set(points) <= set(zip(offsets, times, strict=True)), "every point was sampled, none is made up"


@pytest.mark.parametrize(
    ("hours", "share_of_age"),
    [(1, 0.15), (24, 0.27)],
)
def test_gaps_grow_with_age_and_no_faster(hours: int, share_of_age: float) -> None:
    """The interpolation's error bound that lag_seconds.py promises, for a partition that is always written to."""
    ticks = hours * 720
    points = kept([(tick, tick * 5_000) for tick in range(1, ticks + 1)])
    now_ms = ticks * 5_000
    assert points[0][1] == 5_000, "the whole time is covered"
    for (_, left_ms), (_, right_ms) in pairwise(points):
        assert right_ms - left_ms <= max(5_000, share_of_age * (now_ms - right_ms))


def test_rows_are_their_own() -> None:
    """One row starts anew, one lengthens, one is thinned, one is new, in one call."""
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


def test_more_rows_than_there_was_room_for() -> None:
    points = OffsetPoints(3)
    points.add(np.arange(1_000), np.arange(1_000), 5)
    points.keep(np.array([999, 3]))
    assert [points.of_row(row) for row in range(2)] == [[(999, 5)], [(3, 5)]]
    points.add(np.array([2]), np.array([8]), 6)
    assert points.of_row(2) == [(8, 6)]


@given(SAMPLES, st.integers(0, 6_000), st.integers(0, 400_000))
def test_both_searches_find_what_looking_at_every_point_finds(growth: list[Point], offset: int, since_ms: int) -> None:
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


def test_a_limit_without_an_inner_point_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 3"):
        OffsetPoints(2)
