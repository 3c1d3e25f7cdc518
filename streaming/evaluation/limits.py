"""The limits of a group: its allowed lag, the severity of its alerts, and the team that owns it.

The settings (`[[groups]]`) set these limits. A group without an entry in the settings has the default limits. Alert
rules compare the lag and the commit gaps of a group with its limits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["critical", "warning", "info"]
CRITICAL: Final = "critical"
WARNING: Final = "warning"
INFO: Final = "info"


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """The limits of one group. All times are in seconds.

    - `team`: the owner of the group, and a label of its alerts. Empty if no owner is configured.
    - `max_lag_seconds`, `critical_lag_seconds`: an alert of severity `warning` fires above the first lag, and an alert
      of severity `critical` fires above the second lag. `critical_lag_seconds` is at least `max_lag_seconds`.
    - `max_commit_gap_seconds`: the longest acceptable time without commits around a rebalance.
    - `severity`: the highest severity that an alert about the group may have.
    - `ignore_alerts`: if True, no alert fires for the group.
    """

    team: str = ""
    max_lag_seconds: float = 600
    critical_lag_seconds: float = 3600
    max_commit_gap_seconds: float = 300
    severity: Severity = CRITICAL
    ignore_alerts: bool = False


DEFAULT_LIMITS: Final = GroupLimits()

LimitsOf = Callable[[Collection[str]], Mapping[str, GroupLimits]]
"""A function that returns the limits of each group in a collection of group ids."""


def default_limits(group_ids: Collection[str]) -> Mapping[str, GroupLimits]:
    """Return the default limits for each group."""
    return dict.fromkeys(group_ids, DEFAULT_LIMITS)
