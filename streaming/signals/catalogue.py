"""All metric definitions, by subject and by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Subject:
    """The metrics of one subject, for example of lag, in the order of their definitions."""

    title: str
    about: str
    signals: tuple[Signal, ...]


def _subject(module: ModuleType) -> Subject:
    """Return the metrics that a module defines. The module's docstring has the format `TITLE: DESCRIPTION`."""
    title, _, about = (module.__doc__ or "").partition(": ")
    defined = tuple(value for value in vars(module).values() if isinstance(value, Signal))
    return Subject(title, " ".join(about.split()), defined)


SUBJECTS: Final[tuple[Subject, ...]] = tuple(
    map(_subject, (fairness, rebalances, lag, partitions, groups, members, monitor, kafka_exporter, kafka_lag_exporter))
)
"""All subjects, in the order in which an on-call engineer needs them. The metrics of other exporters come last."""

SIGNALS: Final[Mapping[str, Signal]] = MappingProxyType(
    {signal.name: signal for subject in SUBJECTS for signal in subject.signals}
)
"""All metrics, by name. The names of a metric's series can differ from this name (`exported_names`)."""
