"""Define the parts of an alert: its severities, its expressions, its texts, and the reason why it exists.

Rules:

1. An alert has up to three levels. `critical` wakes an engineer and requires harm. `warning` waits for the next working
   day. `info` sends no notification.
2. If the warning level and the critical level hold, both fire. Alertmanager then sends only the critical alert
   (`inhibition.py`). Otherwise an alert would end for a while when its severity changes, because each level has to hold
   for `pending` first.
3. An alert about a group gets the labels `team` and `coordinator` of the group. It exists only for groups whose alerts
   are not ignored (`expressions.ALERTING`).
4. The setting `severity` of a group is the highest severity of its alerts. The critical level exists only for groups
   whose setting is `critical`. If the setting is `info`, the alert fires with severity `info` instead.
5. If an alert has no warning level, the groups with a lower setting get its critical level as a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

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

    `expression` is PromQL. For alerts about groups, its result has the labels `cluster` and `group`, and the labels of
    the group are added later. The expression must hold for `pending` before the alert fires. After it has ended, the
    alert continues for `keep_firing`.
    """

    severity: Severity
    expression: str
    pending: str
    keep_firing: str = "10m"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert.

    `harm` is the sentence in README.md: why this alert earns its place. `runbook_section` is the heading in RUNBOOK.md.
    `labels_of_groups` is PromQL for the labels of each group, if `expressions.ALERTING` is not sufficient.
    """

    name: str
    subject: Subject
    harm: str
    levels: tuple[Level, ...]
    summary: str
    description: str
    labels_of_groups: str = ""

    @property
    def runbook_section(self) -> str:
        """Return the heading of the alert's section in RUNBOOK.md."""
        return self.name

    @property
    def severities(self) -> tuple[Severity, ...]:
        """Return the severities of all levels, the highest first."""
        return tuple(level.severity for level in self.levels)


@dataclass(frozen=True, slots=True)
class AlertFile:
    """One rule file: its name without the suffix, its comment, and its alerts."""

    name: str
    comment: str
    alerts: tuple[Alert, ...]
