"""Tests of the independent computation of `make test-clients`, by the examples in its docstrings."""

from __future__ import annotations

import doctest

from tests.clients import recount


def test_the_examples_in_the_docstrings_are_correct():
    """An error in this code would look like an error of the monitor."""
    assert doctest.testmod(recount).failed == 0
