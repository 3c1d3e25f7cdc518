"""All definitions, by subject and by name."""

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
    """Metrics that are read together, in the order in which they are defined."""

    title: str
    about: str
    signals: tuple[Signal, ...]


def _subject(module: ModuleType) -> Subject:
    """What a module defines; its docstring begins with the title and goes on with what it is about."""
    title, _, about = (module.__doc__ or "").partition(": ")
    defined = tuple(value for value in vars(module).values() if isinstance(value, Signal))
    return Subject(title, " ".join(about.split()), defined)


SUBJECTS: Final[tuple[Subject, ...]] = tuple(
    map(
        _subject,
        (fairness, rebalances, lag, partitions, groups, members, monitor, kafka_exporter, kafka_lag_exporter),
    ),
)
"""What is our own first, in the order in which somebody on call asks."""

SIGNALS: Final[Mapping[str, Signal]] = MappingProxyType(
    {signal.name: signal for subject in SUBJECTS for signal in subject.signals}
)
"""Every metric by its name; `exported_names` are those of its series."""
