"""What all metric families share."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

GROUP = ("cluster", "group")
"""Labels of what is said of a group."""


def add(family: GaugeMetricFamily | CounterMetricFamily, labels: Iterable[str], value: float) -> None:
    """Add a sample; what no UTF-8 can say (a lone surrogate) becomes `?` rather than breaking the whole scrape."""
    family.add_metric(printable(labels), value)


def printable(labels: Iterable[str]) -> list[str]:
    """The labels as a scrape can say them."""
    return [label if label.isascii() else label.encode(errors="replace").decode() for label in labels]
