"""Load users' strategies, and run them in separate processes with limits. See ``assignors/CUSTOM.md``."""

from __future__ import annotations

from streaming.custom.guard import AssignorFailure, FailureReason, GuardedAssignor
from streaming.custom.loading import ENTRY_POINT_GROUP, AssignorLoadError, installed_references, load_assignor

__all__ = [
    "ENTRY_POINT_GROUP",
    "AssignorFailure",
    "AssignorLoadError",
    "FailureReason",
    "GuardedAssignor",
    "installed_references",
    "load_assignor",
]
