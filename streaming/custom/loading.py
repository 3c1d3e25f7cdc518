"""Load users' strategies from Python entry points, or from ``module:attribute`` references in the settings."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from typing import cast

from assignors.model import PartitionAssignor
from streaming.config.types.references import is_reference

ENTRY_POINT_GROUP = "rebalance_monitor.assignors"


class AssignorLoadError(Exception):
    """Error: a reference does not name an assignor. The message contains the reason."""


def installed_references() -> dict[str, str]:
    """Return the ``module:attribute`` reference of each strategy in an installed package, by name. Import no package.

    If two packages define the same name, the first reference in alphabetical order is used. So the order of
    installation does not change the result.
    """
    references = sorted((point.name, point.value) for point in entry_points(group=ENTRY_POINT_GROUP))
    return dict(reversed(references))


def load_assignor(reference: str) -> PartitionAssignor:
    """Import the assignor ``module:attribute``. Raises AssignorLoadError.

    The attribute is an assignor, or a callable without arguments that returns an assignor. The import runs the user's
    code in this process. To run the code in a separate process, use ``GuardedAssignor``.

    >>> load_assignor("assignors.range.range:RangeAssignor").name
    'range'
    """
    if not is_reference(reference):
        raise AssignorLoadError(f"{reference!r} does not have the form module:attribute")
    module, _, attribute = reference.partition(":")
    try:
        target = attrgetter(attribute)(import_module(module))
        assignor = target if callable(getattr(target, "assign", None)) and not isinstance(target, type) else target()
    except Exception as error:
        raise AssignorLoadError(f"{reference}: {type(error).__name__}: {error}") from error
    if not isinstance(getattr(assignor, "name", None), str) or not callable(getattr(assignor, "assign", None)):
        raise AssignorLoadError(f"{reference}: {type(assignor).__name__} needs an attribute name and a method assign")
    return cast(PartitionAssignor, assignor)
