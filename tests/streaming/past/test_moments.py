"""Tests of the moments that people and programs write."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.past.coverage
import streaming.past.moments
from streaming.past.coverage import Coverage
from streaming.past.moments import Generation, format_moment, parse_moment, parse_moment_or_generation


@given(st.integers(10**11, 253_402_300_799_000))
def test_a_formatted_moment_is_parsed_to_the_same_moment(at_ms: int) -> None:
    assert parse_moment(format_moment(at_ms)) == at_ms
    assert parse_moment(f"{format_moment(at_ms)}Z") == at_ms
    assert parse_moment(str(at_ms)) == at_ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-22",  # a date alone is no moment
        "2026-11-22T22",
        "2026-11-22T24:00",
        "2026-13-01T00:00",
        "2026-11-22T22:04+02:00",  # only UTC, because a plus sign in an address means a space
        "2026-11-22T22:04.5",
        "1969-12-31T23:59",  # Kafka has no times before 1970
        "٢٠٢٦-11-22T22:04",  # digits of other scripts
        "-5",
        "1e12",
        "9" * 20,
        "'; DROP TABLE",
    ],
)
def test_other_texts_are_no_moment(text: str) -> None:
    assert parse_moment(text) is None


def test_small_numbers_are_generations_and_large_numbers_are_milliseconds() -> None:
    assert parse_moment_or_generation("2147483647") == Generation(2**31 - 1)
    assert parse_moment_or_generation("2147483648") is None, "neither a generation nor a time after 1973"
    assert parse_moment_or_generation("100000000000") == 10**11
    assert parse_moment_or_generation("0") == Generation(0)


@pytest.mark.parametrize(
    ("at_ms", "refusal"),
    [
        (999, "the moment is earlier than the first row"),
        (1000, None),
        (2001, None),  # after the last row nothing changed
        (9000, None),
        (9001, "the moment is in the future"),
    ],
)
def test_a_moment_outside_the_tables_is_refused(at_ms: int, refusal: str | None) -> None:
    assert Coverage(1000, 2000).refusal([at_ms], 9000) == refusal
    assert Coverage().refusal([at_ms], 9000) == "the tables have no row of this cluster"


def test_the_examples_in_docstrings_are_correct() -> None:
    for module in (streaming.past.moments, streaming.past.coverage):
        assert doctest.testmod(module).failed == 0
