"""Users' own strategies: found by entry point or by reference, and run where they can do no harm. See CUSTOM.md."""

from __future__ import annotations

from assignors.custom.guard import AssignorFailure, FailureReason, GuardedAssignor
from assignors.custom.loading import ENTRY_POINT_GROUP, AssignorLoadError, installed_references, load_assignor

__all__ = [
    "ENTRY_POINT_GROUP",
    "AssignorFailure",
    "AssignorLoadError",
    "FailureReason",
    "GuardedAssignor",
    "installed_references",
    "load_assignor",
]
