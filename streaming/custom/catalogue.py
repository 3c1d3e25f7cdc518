"""Collect Kafka's strategies, the strategies of installed packages, and the strategies in the settings."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from assignors import BUILT_IN, UnknownAssignorError
from streaming.custom.guarded_assignor import GuardedAssignor
from streaming.custom.loading import installed_references

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assignors.model import PartitionAssignor


class Catalogue:
    """All strategies by name. Users' strategies run in guarded processes.

    To end the guarded processes, close the catalogue.

    If several strategies have the same name, the catalogue returns the strategy with the highest priority. Built-in
    strategies have the highest priority. Strategies from references in the settings come next. Strategies of installed
    packages come last. Raises AssignorFailedError if a reference cannot be loaded.
    """

    def __init__(self, references: Iterable[str] = ()) -> None:
        self._guarded = {
            name: GuardedAssignor(reference, name=name) for name, reference in installed_references().items()
        }
        self.referenced = tuple(self._add(reference) for reference in references)

    def names(self) -> list[str]:
        """Return the names of all strategies. The built-in strategies come first."""
        return [*BUILT_IN, *sorted(self._guarded.keys() - BUILT_IN.keys())]

    def assignor(self, name: str) -> PartitionAssignor:
        """Return the strategy with this name. Raises UnknownAssignorError.

        A user's strategy raises AssignorFailedError if it does not compute a valid assignment.
        """
        if name in BUILT_IN:
            return BUILT_IN[name]
        if name not in self._guarded:
            raise UnknownAssignorError(f"unknown assignor {name!r}: the assignors are {', '.join(self.names())}")
        return self._guarded[name]

    def users_references(self) -> dict[str, str]:
        """Return the references of all users' strategies. The keys are the names of the strategies.

        Other processes load a strategy by its reference.
        """
        return {name: self._guarded[name].reference for name in sorted(self._guarded.keys() - BUILT_IN.keys())}

    def close(self) -> None:
        """End all processes. If a strategy is called later, a new process starts."""
        for guarded in self._guarded.values():
            guarded.close()

    def _add(self, reference: str) -> str:
        guarded = GuardedAssignor(reference)
        self._guarded[guarded.name] = guarded
        return guarded.name


@lru_cache(maxsize=1)
def users_assignors(references: tuple[tuple[str, str], ...], limit_seconds: float) -> tuple[GuardedAssignor, ...]:
    """Return the assignors. `references` contains the name and the reference of each assignor.

    The result is cached, so a second call starts no processes.
    """
    return tuple(GuardedAssignor(reference, limit_seconds, name) for name, reference in references)
