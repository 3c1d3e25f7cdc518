"""Figures beside their bars: a table for people, plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.table import Table


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure has to reach."""

    limit: float
    kind: Literal["at least", "at most"]

    def is_met(self, value: float) -> bool:
        """Whether a value reaches it; the limit itself does."""
        return value >= self.limit if self.kind == "at least" else value <= self.limit


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value; `plain` is the same of the plain read, where that makes sense."""

    name: str
    unit: str
    value: float
    plain: float | None = None
    bar: Bar | None = None

    @property
    def ratio(self) -> float | None:
        """The monitor's value over the plain read's; None where there is nothing to divide by."""
        return self.value / self.plain if self.plain else None

    @property
    def verdict(self) -> str:
        """Met, missed, or nothing where there is no bar."""
        return "" if self.bar is None else "met" if self.bar.is_met(self.value) else "missed"

    def as_json(self) -> Mapping[str, Any]:
        """Everything, by name."""
        bar = {"limit": self.bar.limit, "kind": self.bar.kind} if self.bar else None
        return {
            "name": self.name,
            "unit": self.unit,
            "value": self.value,
            "baseline": self.plain,
            "ratio": self.ratio,
            "bar": bar,
            "verdict": self.verdict,
        }


def median(values: Sequence[float]) -> float:
    """The middle one. Raises ValueError where there is none."""
    return percentile(values, 50)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent of all do not exceed: one that was measured, nothing in between.

    Example: the 95th percentile of 1 to 20 is 19.
    """
    if not values:
        raise ValueError("no values")
    return float(sorted(values)[math.ceil(percent * len(values) / 100) - 1])


def figures_table(title: str, figures: Iterable[Figure]) -> Table:
    """The figures as a table of rich's."""
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    for heading in ("monitor", "plain read", "ratio", "bar"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for figure in figures:
        plain = "" if figure.plain is None else shown(figure.plain, figure.unit)
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        bar = (
            ""
            if figure.bar is None
            else f"{'≥' if figure.bar.kind == 'at least' else '≤'} {shown(figure.bar.limit, figure.unit)}"
        )
        verdict = f"[{'green' if figure.verdict == 'met' else 'red'}]{figure.verdict}[/]" if figure.verdict else ""
        table.add_row(figure.name, shown(figure.value, figure.unit), plain, ratio, bar, verdict)
    return table


def shown(value: float, unit: str) -> str:
    """A value with its unit, no more digits than it deserves.

    Example: `shown(153_412.7, "records/s")` is `153,413 records/s`, `shown(1.25, "s")` is `1.25 s`.
    """
    return f"{value:,.0f} {unit}" if value >= 1000 or value == int(value) else f"{value:,.2f} {unit}"
