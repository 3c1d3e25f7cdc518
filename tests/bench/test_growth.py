"""Slopes of a soak: a leak shows, a warm-up does not."""

from __future__ import annotations

import pytest

from tests.bench.growth import Reading, growths, slope_per_hour


def test_a_value_that_grows_has_its_slope_per_hour() -> None:
    assert slope_per_hour([(0, 100.0), (0.25, 103.0), (0.5, 106.0)]) == pytest.approx(12)


def test_two_readings_or_one_moment_have_no_slope() -> None:
    assert slope_per_hour([(0, 1.0), (1, 2.0)]) is None
    assert slope_per_hour([(1, 1.0), (1, 2.0), (1, 3.0)]) is None


def test_the_first_third_is_warm_up_and_in_no_slope() -> None:
    """A JVM that loads classes for minutes would look like a leak of a gigabyte an hour."""
    values = [100, 300, 500, 600, 600, 600, 600, 600, 600, 600]
    readings = [Reading(number / 9, {"memory": value}) for number, value in enumerate(values)]
    (found,) = growths(readings)
    assert (found.first, found.last, found.most, found.slope_per_hour) == (600, 600, 600, 0)


def test_a_value_that_is_not_there_at_times_is_told_of_where_it_is() -> None:
    """No append within a minute is no append of 0 ms."""
    readings = [Reading(number / 9, {"append": 5.0} if number % 2 else {}) for number in range(10)]
    (found,) = growths(readings)
    assert (found.last, found.slope_per_hour) == (5.0, 0)


def test_nothing_measured_is_nothing_shown() -> None:
    assert growths([]) == []
