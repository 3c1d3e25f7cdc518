"""Environment variables that are settings. Any of them may hold a secret: also a whole section as JSON."""

from __future__ import annotations

from collections.abc import Mapping

ENVIRONMENT_PREFIX = "REBALANCE_MONITOR_"
NO_SETTINGS = frozenset({"REBALANCE_MONITOR_CACHE_DIR"})


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a child process, which needs no setting of ours.

    >>> without_settings({"PATH": "/bin", "REBALANCE_MONITOR_KAFKA": '{"security": {"password": "hunter2"}}'})
    {'PATH': '/bin'}
    """
    return {name: value for name, value in environment.items() if not is_setting(name)}


def is_setting(name: str) -> bool:
    """Whether a variable may be a setting; pydantic does not mind the case of its letters."""
    return name.upper().startswith(ENVIRONMENT_PREFIX) and name.upper() not in NO_SETTINGS
