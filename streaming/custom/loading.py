"""Finding users' strategies: by Python entry point, or by a ``module:attribute`` reference from a configuration."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from assignors.model import PartitionAssignor

ENTRY_POINT_GROUP = "rebalance_monitor.assignors"


class AssignorLoadError(Exception):
    """A reference does not lead to an assignor; the message says where it ended."""


def installed_references() -> dict[str, str]:
    """Map the names under which installed packages offer strategies to ``module:attribute``; nothing is imported.

    Of two packages with one name, the first by reference counts: an answer must not hang on the order of installation.
    """
    found = sorted((point.name, point.value) for point in entry_points(group=ENTRY_POINT_GROUP))
    return dict(reversed(found))


def load_assignor(reference: str) -> PartitionAssignor:
    """Import what ``module:attribute`` names: an assignor, or a class or function that makes one without arguments.

    Runs the user's code: use ``GuardedAssignor`` where that must not fail. Raises AssignorLoadError.

    >>> load_assignor("assignors.range.range:RangeAssignor").name
    'range'
    """
    module, colon, attribute = reference.partition(":")
    if not (module and colon and attribute):
        raise AssignorLoadError(f"{reference!r} is not of the form module:attribute")
    try:
        found = attrgetter(attribute)(import_module(module))
        assignor = found if callable(getattr(found, "assign", None)) and not isinstance(found, type) else found()
    except Exception as error:
        raise AssignorLoadError(f"{reference}: {type(error).__name__}: {error}") from error
    if not isinstance(getattr(assignor, "name", None), str) or not callable(getattr(assignor, "assign", None)):
        raise AssignorLoadError(f"{reference}: {type(assignor).__name__} has no name and no assign method")
    return cast("PartitionAssignor", assignor)
