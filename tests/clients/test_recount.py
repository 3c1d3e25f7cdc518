"""The independent recount of `make test-clients`, by its worked examples."""

from __future__ import annotations

import doctest

from tests.clients import recount


def test_the_examples_in_the_docstrings_are_true():
    """What is counted falsely here would blame the monitor."""
    assert doctest.testmod(recount).failed == 0
