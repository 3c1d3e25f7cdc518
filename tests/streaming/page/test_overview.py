"""The list of all groups."""

from __future__ import annotations

import doctest

import streaming.page.overview


def test_what_the_docstrings_show_is_true() -> None:
    assert doctest.testmod(streaming.page.overview).failed == 0
