"""Find the environment variables that are settings.

A variable that is a setting can contain a secret, for example if its value is a complete section as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping

ENVIRONMENT_PREFIX = "REBALANCE_MONITOR_"
_NOT_SETTINGS = frozenset({"REBALANCE_MONITOR_CACHE_DIR"})


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the monitor's settings, for child processes that need no settings.

    >>> without_settings({"PATH": "/bin", "REBALANCE_MONITOR_KAFKA": '{"security": {"password": "hunter2"}}'})
    {'PATH': '/bin'}
    """
    return {name: value for name, value in environment.items() if not is_setting(name)}


def is_setting(name: str) -> bool:
    """Return True if a variable can be a setting. The name can be in upper or lower case, as in pydantic."""
    return name.upper().startswith(ENVIRONMENT_PREFIX) and name.upper() not in _NOT_SETTINGS
