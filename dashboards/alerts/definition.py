"""Define the parts of an alert, for example its severities, expressions and texts.

Rules:

1. An alert has up to three levels. `critical` is only for harm, and wakes an engineer. `warning` waits for the next
   working day. `info` sends no notification.
2. If the expressions of the levels `warning` and `critical` are both true, both levels fire. Alertmanager then sends
   only the critical alert (`inhibition.py`). Each level waits for `pending` before it fires. DESIGN.md explains why.
3. An alert about a group gets the labels `team` and `coordinator` of the group. A group whose setting `ignore_alerts`
   is true has no alerts (`expressions.ALERTING`).
4. The setting `severity` of a group is the highest severity of the group's alerts. The critical level exists only for
   groups whose setting is `critical`. If the setting is `info`, the alert fires with the severity `info`.
5. For groups whose setting is lower than `critical`, an alert with only a critical level fires as a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from dashboards.alerts.expressions import ALERTING

Severity = Literal["critical", "warning", "info"]
CRITICAL: Final = "critical"
WARNING: Final = "warning"
INFO: Final = "info"

Subject = Literal["group", "cluster", "monitor"]
GROUP: Final = "group"
CLUSTER: Final = "cluster"
MONITOR: Final = "monitor"


@dataclass(frozen=True, slots=True)
class Level:
    """One level of an alert.

    `expression` is PromQL. For alerts about groups, the result of the expression has the labels `cluster` and `group`.
    The alert fires when the expression has been true for `pending`. After the expression becomes false, the alert
    continues for `keep_firing`.
    """

    severity: Severity
    expression: str
    pending: str
    keep_firing: str = "10m"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert. `name` is also the heading of its section in RUNBOOK.md.

    `harm` is the text in README.md that explains why the alert exists. `labels_of_groups` is a query for the labels of
    each group.
    """

    name: str
    subject: Subject
    harm: str
    levels: tuple[Level, ...]
    summary: str
    description: str
    labels_of_groups: str = ALERTING

    @property
    def severities(self) -> tuple[Severity, ...]:
        """Return the severities of all levels, the highest first."""
        return tuple(level.severity for level in self.levels)


@dataclass(frozen=True, slots=True)
class AlertFile:
    """One rule file with its name (without the suffix), its comment and its alerts."""

    name: str
    comment: str
    alerts: tuple[Alert, ...]
