"""All strategies under one roof: Kafka's, those that installed packages offer, and those named by reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assignors import BUILT_IN, UnknownAssignorError
from streaming.custom.guard import AssignorFailure, GuardedAssignor
from streaming.custom.loading import installed_references

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from assignors.model import GroupAssignment, GroupSpec, PartitionAssignor


class AssignorFailedError(Exception):
    """A user's strategy gave no lawful assignment; the message says what it did instead."""


class Catalogue:
    """Strategies by name; users' ones run guarded. Close it, or use ``with``, to end their processes.

    A built-in name always means the built-in, and a reference goes before an installed package of that name. Raises
    AssignorFailedError if a reference cannot be loaded: whoever names one wants it.
    """

    def __init__(self, references: Iterable[str] = ()) -> None:
        self._guarded = {name: GuardedAssignor(reference) for name, reference in installed_references().items()}
        self.referenced = tuple(self._add(reference) for reference in references)

    def __enter__(self) -> Catalogue:  # noqa: PYI034 - typing.Self came with Python 3.11
        """Start nothing yet: a process comes with a strategy's first group."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End all processes."""
        self.close()

    def names(self) -> list[str]:
        """List the built-in strategies, then the users' own."""
        return [*BUILT_IN, *sorted(self._guarded.keys() - BUILT_IN.keys())]

    def assignor(self, name: str) -> PartitionAssignor:
        """Find the strategy of that name; a user's raises AssignorFailedError where it gives no lawful answer.

        Raises UnknownAssignorError.
        """
        if name in BUILT_IN:
            return BUILT_IN[name]
        if name not in self._guarded:
            raise UnknownAssignorError(f"no assignor is named {name!r}; there are {', '.join(self.names())}")
        return _UsersAssignor(name, self._guarded[name])

    def close(self) -> None:
        """End all processes; a later group starts another."""
        for guarded in self._guarded.values():
            guarded.close()

    def _add(self, reference: str) -> str:
        guarded = GuardedAssignor(reference)
        name = guarded.name()
        if isinstance(name, AssignorFailure):
            raise AssignorFailedError(name.detail.strip())
        self._guarded[name] = guarded
        return name


@dataclass(frozen=True)
class _UsersAssignor:
    name: str
    guarded: GuardedAssignor

    def assign(self, group: GroupSpec) -> GroupAssignment:
        outcome = self.guarded.try_assign(group)
        if isinstance(outcome, AssignorFailure):
            raise AssignorFailedError(f"{self.name} {outcome.reason.value}: {outcome.detail.strip()}")
        return outcome
