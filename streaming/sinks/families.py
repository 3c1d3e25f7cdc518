"""Metric families made of their definitions (`streaming.signals`), and what all of them share."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from streaming.signals import COUNTER, Signal


def gauge(signal: Signal) -> GaugeMetricFamily:
    """A family without samples yet; its samples' label values are in the order of the definition's labels."""
    return GaugeMetricFamily(signal.name, signal.help, labels=signal.labels)


def counter(signal: Signal) -> CounterMetricFamily:
    """Likewise; prometheus-client names the family without `_total`, its samples with it."""
    return CounterMetricFamily(signal.name, signal.help, labels=signal.labels)


def histogram(signal: Signal) -> HistogramMetricFamily:
    """Likewise."""
    return HistogramMetricFamily(signal.name, signal.help, labels=signal.labels)


def exported_family(family: Metric) -> str:
    """The name in `SIGNALS` of a family that was made here."""
    return f"{family.name}_total" if family.type == COUNTER else family.name


def add(family: GaugeMetricFamily | CounterMetricFamily, labels: Iterable[str], value: float) -> None:
    """Add a sample; what no UTF-8 can say (a lone surrogate) becomes `?` rather than breaking the whole scrape."""
    family.add_metric(printable(labels), value)


def printable(labels: Iterable[str]) -> list[str]:
    """The labels as a scrape can say them."""
    return [label if label.isascii() else label.encode(errors="replace").decode() for label in labels]
