"""Computes the growth of measured values over time, as a slope per hour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

WARM_UP_SHARE = 1 / 3
"""Part of a run that no slope includes, because caches fill and classes load in it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The values at one time, in hours since the start. A value that could not be read is missing."""

    at_hours: float
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth of one value after the warm-up. The slope is None if there are fewer than three readings."""

    name: str
    first: float
    last: float
    maximum: float
    slope_per_hour: float | None


def compute_growth(readings: Sequence[Reading]) -> list[Growth]:
    """Return the growth of each value, in the order of the last reading."""
    steady = after_warm_up(readings)
    names = [name for name in (steady[-1].values if steady else {}) if any(name in one.values for one in steady)]
    return [_growth(name, steady) for name in names]


def after_warm_up(readings: Sequence[Reading]) -> Sequence[Reading]:
    """Return the readings of the last two thirds of the time."""
    if not readings:
        return readings
    begins = readings[0].at_hours + (readings[-1].at_hours - readings[0].at_hours) * WARM_UP_SHARE
    return [reading for reading in readings if reading.at_hours >= begins]


def slope_per_hour(points: Iterable[tuple[float, float]]) -> float | None:
    """Return the least-squares slope through points (hours, value), or None for fewer than three points.

    >>> slope_per_hour([(0, 1.0), (0.5, 2.0), (1, 3.0)])
    2.0
    """
    found = list(points)
    if len(found) < 3:
        return None
    hours, values = np.asarray(found, dtype=float).T
    hours = hours - hours.mean()
    spread = float((hours**2).sum())
    return round(float((hours * values).sum()) / spread, 6) if spread else None


def growth_table(title: str, found: Iterable[Growth]) -> Table:
    """Return the growth of all values as a rich table."""
    table = Table(title=title, title_justify="left")
    table.add_column("value")
    for heading in ("after warm-up", "at the end", "maximum", "slope per hour"):
        table.add_column(heading, justify="right")
    for one in found:
        slope = "" if one.slope_per_hour is None else f"{one.slope_per_hour:+,.1f}"
        table.add_row(one.name, f"{one.first:,.1f}", f"{one.last:,.1f}", f"{one.maximum:,.1f}", slope)
    return table


def _growth(name: str, steady: Sequence[Reading]) -> Growth:
    points = [(reading.at_hours, reading.values[name]) for reading in steady if name in reading.values]
    values = [value for _, value in points]
    return Growth(name, values[0], values[-1], max(values), slope_per_hour(points))
