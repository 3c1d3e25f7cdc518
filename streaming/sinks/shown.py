"""Which of all that is known is shown: a value that the collector is given, anew for each scrape.

Health is shown always. What is hidden is counted all the same: in the totals of what stands above it (a group's lag has
its hidden topics in it), and in what the monitor says of itself.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from streaming.signals import SIGNALS
from streaming.sinks.registry import Present


def every_one(_: str) -> bool:
    """Hide none."""
    return True


@dataclass(frozen=True, slots=True)
class Shown:
    """The metrics (names of `SIGNALS`), groups and topics that are shown; by default all.

    `topic` decides on series that are told of a topic or a partition, `group` on all that are told of a group, too.
    """

    signals: AbstractSet[str] = frozenset(SIGNALS)
    group: Callable[[str], bool] = every_one
    topic: Callable[[str], bool] = every_one


EVERYTHING = Shown()

Choose = Callable[[Present], Shown]
"""Chooses what is shown of the present."""


def show_everything(_: Present) -> Shown:
    """Hide nothing."""
    return EVERYTHING
