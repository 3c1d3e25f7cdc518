"""Tests of the slopes of a soak: a leak has a slope, a warm-up has none."""

from __future__ import annotations

import pytest

from tests.bench.growth import Reading, compute_growth, slope_per_hour


def test_a_value_that_grows_has_its_slope_per_hour() -> None:
    assert slope_per_hour([(0, 100.0), (0.25, 103.0), (0.5, 106.0)]) == pytest.approx(12)


def test_two_readings_or_one_time_have_no_slope() -> None:
    assert slope_per_hour([(0, 1.0), (1, 2.0)]) is None
    assert slope_per_hour([(1, 1.0), (1, 2.0), (1, 3.0)]) is None


def test_the_first_third_is_warm_up_and_in_no_slope() -> None:
    """Otherwise a JVM that loads classes for minutes would look like a leak of one gigabyte per hour."""
    values = [100, 300, 500, 600, 600, 600, 600, 600, 600, 600]
    readings = [Reading(number / 9, {"memory": value}) for number, value in enumerate(values)]
    (found,) = compute_growth(readings)
    assert (found.first, found.last, found.maximum, found.slope_per_hour) == (600, 600, 600, 0)


def test_a_value_that_is_sometimes_missing_has_a_growth() -> None:
    """A minute without an append has no append time. It is not 0 ms."""
    readings = [Reading(number / 9, {"append": 5.0} if number % 2 else {}) for number in range(10)]
    (found,) = compute_growth(readings)
    assert (found.last, found.slope_per_hour) == (5.0, 0)


def test_without_readings_there_is_no_growth() -> None:
    assert compute_growth([]) == []
