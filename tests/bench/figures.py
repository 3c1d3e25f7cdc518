"""Figures with their targets, as a table for the terminal and as values for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rich.table import Table


@dataclass(frozen=True, slots=True)
class Target:
    """The limit that a figure must reach."""

    limit: float
    kind: Literal["at least", "at most"]

    def is_met(self, value: float) -> bool:
        """Return whether a value meets the target. The limit itself meets it."""
        return value >= self.limit if self.kind == "at least" else value <= self.limit

    def text(self, unit: str) -> str:
        """Return the target in words.

        Example: `Target(16, "at most").text("s")` is `≤ 16 s`.
        """
        return f"{'≥' if self.kind == 'at least' else '≤'} {format_value(self.limit, unit)}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value of the monitor. `baseline` is the same value of the baseline, if it has one.

    `ratio_target` is the target of the ratio. A figure with a `ratio_target` needs a baseline.
    """

    name: str
    unit: str
    value: float
    baseline: float | None = None
    target: Target | None = None
    ratio_target: Target | None = None

    @property
    def ratio(self) -> float | None:
        """Return the monitor's value divided by the baseline's, or None without a baseline."""
        return self.value / self.baseline if self.baseline else None

    @property
    def verdict(self) -> str:
        """Return `met` if all targets are met, otherwise `missed`. Return an empty string without a target."""
        pairs = ((self.target, self.value), (self.ratio_target, self.ratio))
        results = [target.is_met(value or 0.0) for target, value in pairs if target is not None]
        return "" if not results else "met" if all(results) else "missed"

    def as_json(self) -> Mapping[str, Any]:
        """Return all values by name."""
        return {
            "name": self.name,
            "unit": self.unit,
            "value": self.value,
            "baseline": self.baseline,
            "ratio": self.ratio,
            "target": None if self.target is None else asdict(self.target),
            "ratio_target": None if self.ratio_target is None else asdict(self.ratio_target),
            "verdict": self.verdict,
        }


def median(values: Sequence[float]) -> float:
    """Return the median, which is always one of the values. Raises ValueError for an empty list."""
    return percentile(values, 50)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest of the values that at least `percent` percent of all values do not exceed.

    The result is always a measured value, without interpolation.

    Example: the 95th percentile of 1 to 20 is 19.
    """
    if not values:
        raise ValueError("no values")
    return float(sorted(values)[math.ceil(percent * len(values) / 100) - 1])


def figures_table(title: str, figures: Iterable[Figure]) -> Table:
    """Return the figures as a rich table."""
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    for heading in ("monitor", "baseline", "ratio", "target"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for figure in figures:
        baseline = "" if figure.baseline is None else format_value(figure.baseline, figure.unit)
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        targets = [] if figure.target is None else [figure.target.text(figure.unit)]
        targets += [] if figure.ratio_target is None else [f"ratio {figure.ratio_target.text('').strip()}"]
        verdict = f"[{'green' if figure.verdict == 'met' else 'red'}]{figure.verdict}[/]" if figure.verdict else ""
        table.add_row(
            figure.name, format_value(figure.value, figure.unit), baseline, ratio, ", ".join(targets), verdict
        )
    return table


def format_value(value: float, unit: str) -> str:
    """Return a value with its unit: two decimals below 1,000 if it is not a whole number, otherwise none.

    Example: `format_value(153_412.7, "records/s")` is `153,413 records/s`, `format_value(1.25, "s")` is `1.25 s`.
    """
    return f"{value:,.0f} {unit}" if value >= 1000 or value == int(value) else f"{value:,.2f} {unit}"
