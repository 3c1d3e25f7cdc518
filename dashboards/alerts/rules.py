"""Create Prometheus' rules from the definitions of alerts (`definition.py`, rules 1 to 5)."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent
from typing import Any

from dashboards.alerts.definition import CRITICAL, GROUP, WARNING, Alert, AlertFile, Level
from dashboards.alerts.expressions import ALERTING, GROUP_LABELS, RECORDING_RULES, lines
from dashboards.alerts.links import links

Rule = dict[str, Any]

_CAPPED_SEVERITY = '{{ if eq $labels.max_severity "info" }}info{{ else }}warning{{ end }}'


def recording_group() -> Rule:
    """Return the rule group with all recording rules."""
    rules = [{"record": name, "expr": expression} for _, name, expression in RECORDING_RULES]
    return {"name": "rebalance-monitor-recording", "rules": rules}


def alert_group(file: AlertFile) -> Rule:
    """Return the rule group of a file with alerts."""
    _, _, subject = file.name.partition("-")
    return {
        "name": f"rebalance-monitor-{subject}",
        "rules": [rule for alert in file.alerts for rule in rules_of(alert)],
    }


def rules_of(alert: Alert) -> Iterator[Rule]:
    """Return the rules of an alert, one for each level. An alert about groups may get a further level (rule 5)."""
    for level in levels_of(alert):
        yield {
            "alert": alert.name,
            "expr": _expression(alert, level),
            "for": level.pending,
            **({"keep_firing_for": level.keep_firing} if level.keep_firing != "0s" else {}),
            "labels": _labels(alert, level),
            "annotations": {"summary": alert.summary, "description": alert.description, **links(alert)},
        }


def levels_of(alert: Alert) -> Iterator[Level]:
    """Return all levels of an alert, with the warning level for groups that may not have critical alerts (rule 5)."""
    yield from alert.levels
    if alert.subject == GROUP and alert.severities == (CRITICAL,):
        (only,) = alert.levels
        yield Level(WARNING, only.expression, only.pending, only.keep_firing)


def _expression(alert: Alert, level: Level) -> str:
    """Return the complete expression. For groups, the labels of the group are added (rules 3 and 4)."""
    if alert.subject != GROUP:
        return level.expression
    groups = alert.labels_of_groups or ALERTING
    return lines(
        "(",
        indent(level.expression, "  "),
        ")",
        f"* on (cluster, group) group_left ({GROUP_LABELS})",
        _with_severity(groups, alert, level),
    )


def _with_severity(groups: str, alert: Alert, level: Level) -> str:
    """Return the groups that may have an alert of this level."""
    if level.severity == CRITICAL:
        return f'{groups}{{max_severity="critical"}}'
    is_for_capped_groups_only = alert.severities == (CRITICAL,)
    return f'{groups}{{max_severity!="critical"}}' if is_for_capped_groups_only else groups


def _labels(alert: Alert, level: Level) -> dict[str, str]:
    """Return the labels of a level. `max_severity` is removed: an empty label does not exist."""
    if alert.subject != GROUP:
        return {"severity": level.severity}
    severity = _CAPPED_SEVERITY if level.severity == WARNING else level.severity
    return {"severity": severity, "max_severity": ""}
