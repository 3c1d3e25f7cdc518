"""Tests of the list of all groups."""

from __future__ import annotations

import doctest

import streaming.page.overview


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.page.overview).failed == 0
