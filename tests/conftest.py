"""What all tests share: the JVMs of slow ones start quickly where `make test` has seen to it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, so that quick ones fill the time in which they wait.

    One process runs all tests of a file, for they share what they start, or of several files that are marked so.
    """
    items.sort(key=lambda item: not item.get_closest_marker("slow"))
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Have brokers and monitors start from class archives, unless their options are said already."""
    if _has_slow(session.items):
        from tests.class_archives import environment  # noqa: PLC0415 - quick tests need no Java

        for name, value in environment().items():
            os.environ.setdefault(name, value)


def _has_slow(items: Sequence[pytest.Item]) -> bool:
    return any(item.get_closest_marker("slow") for item in items)
