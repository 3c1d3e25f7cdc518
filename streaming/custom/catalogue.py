"""Collect Kafka's strategies, the strategies of installed packages, and the strategies in the settings."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from assignors import BUILT_IN, UnknownAssignorError
from assignors.model import PartitionAssignor
from streaming.custom.guarded_assignor import GuardedAssignor
from streaming.custom.loading import installed_references


class Catalogue:
    """All strategies by name. Users' strategies run in guarded processes, which end when the catalogue is closed.

    If several strategies have the same name, a built-in strategy has the highest priority. A strategy from a reference
    in the settings comes next. Strategies of installed packages come last. Raises AssignorFailedError if a reference
    cannot be loaded.
    """

    def __init__(self, references: Iterable[str] = ()) -> None:
        self._guarded = {
            name: GuardedAssignor(reference, name=name) for name, reference in installed_references().items()
        }
        self._guarded |= {guarded.name: guarded for guarded in map(GuardedAssignor, references)}

    def names(self) -> list[str]:
        """Return the names of all strategies. The built-in strategies come first."""
        return [*BUILT_IN, *sorted(self._guarded.keys() - BUILT_IN.keys())]

    def assignor(self, name: str) -> PartitionAssignor:
        """Return the strategy with this name. Raises UnknownAssignorError."""
        if name in BUILT_IN:
            return BUILT_IN[name]
        if name not in self._guarded:
            raise UnknownAssignorError(f"unknown assignor {name!r}: the assignors are {', '.join(self.names())}")
        return self._guarded[name]

    def users_references(self) -> dict[str, str]:
        """Return the references of users' strategies by name, so that other processes can load these strategies."""
        return {name: self._guarded[name].reference for name in sorted(self._guarded.keys() - BUILT_IN.keys())}

    def close(self) -> None:
        """End all processes. If a strategy is called later, a new process starts."""
        for guarded in self._guarded.values():
            guarded.close()


@lru_cache(maxsize=1)
def users_assignors(references: tuple[tuple[str, str], ...], limit_seconds: float) -> tuple[GuardedAssignor, ...]:
    """Return the assignors with these names and references. A second call returns the same objects."""
    return tuple(GuardedAssignor(reference, limit_seconds, name) for name, reference in references)
