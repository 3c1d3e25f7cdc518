"""All metric definitions by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Final

from streaming.signals import (
    fairness,
    groups,
    kafka_exporter,
    kafka_lag_exporter,
    lag,
    members,
    monitor,
    partitions,
    rebalances,
)
from streaming.signals.signal import Signal

MODULES: Final[tuple[ModuleType, ...]] = (
    fairness,
    rebalances,
    lag,
    partitions,
    groups,
    members,
    monitor,
    kafka_exporter,
    kafka_lag_exporter,
)
"""One module per subject, in the order in which an on-call engineer needs them. Other exporters come last."""


def signals_of(module: ModuleType) -> list[Signal]:
    """Return the metrics that a module defines, in the order of their definitions."""
    return [value for value in vars(module).values() if isinstance(value, Signal)]


SIGNALS: Final[Mapping[str, Signal]] = MappingProxyType(
    {signal.name: signal for module in MODULES for signal in signals_of(module)}
)
"""All metrics, by name. The names of a metric's series can differ from this name (`exported_names`)."""
