"""Collect all strategies: Kafka's own, strategies of installed packages, and strategies that the settings reference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from assignors import BUILT_IN, AssignorFailedError, UnknownAssignorError
from streaming.custom.guard import LIMIT_SECONDS, AssignorFailure, GuardedAssignor
from streaming.custom.loading import installed_references

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from assignors.model import GroupAssignment, GroupSpec, PartitionAssignor


class Catalogue:
    """All strategies by name. Users' strategies run in guarded processes.

    To end these processes, close the catalogue or use ``with``.

    If several strategies have the same name, the catalogue returns the strategy with the highest priority. Built-in
    strategies have the highest priority. The strategies that the settings reference come next. Strategies of installed
    packages come last. Raises AssignorFailedError if a reference cannot be loaded.
    """

    def __init__(self, references: Iterable[str] = ()) -> None:
        self._guarded = {name: GuardedAssignor(reference) for name, reference in installed_references().items()}
        self.referenced = tuple(self._add(reference) for reference in references)

    def __enter__(self) -> Catalogue:  # noqa: PYI034 - typing.Self came with Python 3.11
        """Do nothing. The process of a strategy starts when the strategy gets its first group."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all processes."""
        self.close()

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
        return UsersAssignor(name, self._guarded[name])

    def users_references(self) -> dict[str, str]:
        """Return the reference of each user's strategy, by the name of the strategy.

        Other processes need the reference to run the strategy.
        """
        return {name: self._guarded[name].reference for name in sorted(self._guarded.keys() - BUILT_IN.keys())}

    def close(self) -> None:
        """End all processes. If a strategy is called later, a new process starts."""
        for guarded in self._guarded.values():
            guarded.close()

    def _add(self, reference: str) -> str:
        guarded = GuardedAssignor(reference)
        name = guarded.name()
        if isinstance(name, AssignorFailure):
            raise AssignorFailedError(name.reason.value, name.detail.strip())
        self._guarded[name] = guarded
        return name


@dataclass(frozen=True)
class UsersAssignor:
    """A user's strategy with the same interface as a built-in strategy. It raises only AssignorFailedError."""

    name: str
    guarded: GuardedAssignor

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Compute the assignment. Raises AssignorFailedError if there is no valid assignment within the time limit."""
        outcome = self.guarded.try_assign(group)
        if isinstance(outcome, AssignorFailure):
            detail = f"{self.name} {outcome.reason.value}: {outcome.detail.strip()}"
            raise AssignorFailedError(outcome.reason.value, detail)
        return outcome


@lru_cache(maxsize=1)
def users_assignors(
    references: tuple[tuple[str, str], ...], limit_seconds: float = LIMIT_SECONDS
) -> tuple[UsersAssignor, ...]:
    """Return the assignors for (name, reference) pairs. The result is cached, so a second call starts no processes."""
    return tuple(UsersAssignor(name, GuardedAssignor(reference, limit_seconds)) for name, reference in references)
