"""Tests of the part `driver`, with few groups."""

from __future__ import annotations

from tests.bench.driver import driver_figures


def test_each_size_has_its_own_figures() -> None:
    """docs/SCALING.md compares the cost of one group at several sizes."""
    figures = list(driver_figures([4, 8]))
    names = [figure.name for figure in figures if not figure.name.startswith("-")]
    assert names == ["4 groups, 40 partitions: a sample", "8 groups, 80 partitions: a sample"]
    assert all(figure.value > 0 for figure in figures)
