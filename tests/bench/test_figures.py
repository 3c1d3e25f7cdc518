"""Figures are what was measured, and say whether a bar is met."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.bench.figures import Bar, Figure, figures_table, median, percentile, shown


@pytest.mark.parametrize(
    ("bar", "value", "verdict"),
    [
        (Bar(120_000, "at least"), 119_999.0, "missed"),
        (Bar(120_000, "at least"), 120_000.0, "met"),
        (Bar(40, "at most"), 40.0, "met"),
        (Bar(40, "at most"), 40.1, "missed"),
        (None, 1.0, ""),
    ],
)
def test_a_bar_is_met_by_its_limit_and_what_is_better(bar: Bar | None, value: float, verdict: str) -> None:
    assert Figure("rate", "records/s", value, bar=bar).verdict == verdict


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_a_percentile_is_a_value_that_was_measured(values: list[float], percent: int) -> None:
    """So that a p95 of 30 rebalances is one of them; enough values are not above it, and no smaller one would do."""
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
def test_values_are_shown_with_the_digits_they_deserve(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def test_the_table_sets_every_figure_beside_the_plain_read_and_its_bar() -> None:
    page = io.StringIO()
    figure = Figure("rate", "records/s", 150_000, 300_000, Bar(120_000, "at least"))
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
