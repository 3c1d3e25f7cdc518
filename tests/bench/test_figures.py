"""Tests of the figures, their targets and their table."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.bench.figures import Figure, Target, figures_table, format_value, median, percentile


@pytest.mark.parametrize(
    ("target", "value", "verdict"),
    [
        (Target(120_000, "at least"), 119_999.0, "missed"),
        (Target(120_000, "at least"), 120_000.0, "met"),
        (Target(40, "at most"), 40.0, "met"),
        (Target(40, "at most"), 40.1, "missed"),
        (None, 1.0, ""),
    ],
)
def test_a_target_is_met_by_its_limit_and_by_better_values(target: Target | None, value: float, verdict: str) -> None:
    assert Figure("rate", "records/s", value, target=target).verdict == verdict


def test_a_figure_meets_its_targets_only_if_value_and_ratio_meet_them() -> None:
    rate, ratio = Target(560_000, "at least"), Target(0.45, "at least")
    assert Figure("rate", "records/s", 600_000, 1_000_000, rate, ratio).verdict == "met"
    assert Figure("rate", "records/s", 600_000, 2_000_000, rate, ratio).verdict == "missed"
    assert Figure("rate", "records/s", 500_000, 1_000_000, rate, ratio).verdict == "missed"


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_a_percentile_is_a_value_that_was_measured(values: list[float], percent: int) -> None:
    """A p95 of 30 rebalances is one of them. It is the smallest value that `percent` percent do not exceed."""
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert sum(value < found for value in values) * 100 < percent * len(values)


def test_the_median_of_an_even_number_of_values_is_the_lower_middle() -> None:
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.0


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (153_412.7, "records/s", "153,413 records/s"),
        (1.254, "s", "1.25 s"),
        (3072, "MiB", "3,072 MiB"),
        (40, "s", "40 s"),
    ],
)
def test_large_and_whole_values_are_shown_without_decimals(value: float, unit: str, text: str) -> None:
    assert format_value(value, unit) == text


def test_the_table_shows_every_figure_with_its_baseline_and_its_target() -> None:
    page = io.StringIO()
    figure = Figure("rate", "records/s", 150_000, 300_000, Target(120_000, "at least"))
    Console(file=page, width=140).print(figures_table("bench", [figure]))
    (line,) = [line for line in page.getvalue().splitlines() if "rate" in line]
    assert [cell.strip() for cell in line.split("│")[1:-1]] == [
        "rate",
        "150,000 records/s",
        "300,000 records/s",
        "0.50",
        "≥ 120,000 records/s",
        "met",
    ]
    assert figure.as_json()["ratio"] == 0.5
