"""All strategies under one roof: Kafka's, those that installed packages offer, and those named by reference."""

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
        return UsersAssignor(name, self._guarded[name])

    def users_references(self) -> dict[str, str]:
        """Name the users' own strategies with the reference of each: what a process elsewhere needs to run them."""
        return {name: self._guarded[name].reference for name in sorted(self._guarded.keys() - BUILT_IN.keys())}

    def close(self) -> None:
        """End all processes; a later group starts another."""
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
    """A user's strategy like any other, but for what it raises: AssignorFailedError, and nothing else."""

    name: str
    guarded: GuardedAssignor

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign, guarded. Raises AssignorFailedError where there is no lawful answer in time."""
        outcome = self.guarded.try_assign(group)
        if isinstance(outcome, AssignorFailure):
            detail = f"{self.name} {outcome.reason.value}: {outcome.detail.strip()}"
            raise AssignorFailedError(outcome.reason.value, detail)
        return outcome


@lru_cache(maxsize=1)
def users_assignors(
    references: tuple[tuple[str, str], ...], limit_seconds: float = LIMIT_SECONDS
) -> tuple[UsersAssignor, ...]:
    """Make this process's assignors for (name, reference) pairs; their processes are kept from one call to the next."""
    return tuple(UsersAssignor(name, GuardedAssignor(reference, limit_seconds)) for name, reference in references)
