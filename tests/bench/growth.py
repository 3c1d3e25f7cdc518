"""Whether something grows: readings over time, and their slope per hour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table

WARM_UP_SHARE = 1 / 3
"""The first third of a run is left out of every slope: caches fill and classes load."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was measured at one time; `at_hours` since the start. A value that could not be read is left out."""

    at_hours: float
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Growth:
    """One value over a run after its warm-up. No slope where there are fewer than three readings."""

    name: str
    first: float
    last: float
    most: float
    slope_per_hour: float | None


def growths(readings: Sequence[Reading]) -> list[Growth]:
    """The growth of every value that was read, in the order of the last reading."""
    steady = after_warm_up(readings)
    names = [name for name in (steady[-1].values if steady else {}) if any(name in one.values for one in steady)]
    return [_growth(name, steady) for name in names]


def after_warm_up(readings: Sequence[Reading]) -> Sequence[Reading]:
    """The readings of the last two thirds of the time."""
    if not readings:
        return readings
    begins = readings[0].at_hours + (readings[-1].at_hours - readings[0].at_hours) * WARM_UP_SHARE
    return [reading for reading in readings if reading.at_hours >= begins]


def slope_per_hour(points: Iterable[tuple[float, float]]) -> float | None:
    """The slope of the line of least squares through (hours, value); None for fewer than three points.

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
    """The growths as a table of rich's."""
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    for heading in ("after warm-up", "at the end", "most", "slope per hour"):
        table.add_column(heading, justify="right")
    for one in found:
        slope = "" if one.slope_per_hour is None else f"{one.slope_per_hour:+,.1f}"
        table.add_row(one.name, f"{one.first:,.1f}", f"{one.last:,.1f}", f"{one.most:,.1f}", slope)
    return table


def _growth(name: str, steady: Sequence[Reading]) -> Growth:
    points = [(reading.at_hours, reading.values[name]) for reading in steady if name in reading.values]
    values = [value for _, value in points]
    return Growth(name, values[0], values[-1], max(values), slope_per_hour(points))
