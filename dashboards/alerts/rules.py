"""Create Prometheus' rules from the definitions of alerts (`definition.py`, rules 1 to 5)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent
from typing import Any

from dashboards.alerts.definition import CRITICAL, GROUP, WARNING, Alert, AlertFile, Level
from dashboards.alerts.expressions import ALERTING, GROUP_LABELS, READY, RECORDING_RULES, RULES_INFO, lines
from dashboards.alerts.links import links

Rule = dict[str, Any]

_CAPPED_SEVERITY = '{{ if eq $labels.max_severity "info" }}info{{ else }}warning{{ end }}'


def rule_groups(files: Iterable[AlertFile]) -> list[Rule]:
    """Return all rule groups: the recording rules, and one group for each file with alerts.

    The last recording rule has a label that contains the checksum of all other rules. `rebalance-monitor doctor` reads
    this label to check whether Prometheus has loaded the current rules. The command cannot compare the rules
    themselves, because Prometheus' API formats expressions differently.
    """
    groups = [_recording_group(), *map(_alert_group, files)]
    ready = f"max by (cluster) ({READY})"
    groups[0]["rules"].append({"record": RULES_INFO, "expr": ready, "labels": {"checksum": _checksum(groups)}})
    return groups


def checksum(groups: Sequence[Rule]) -> str:
    """Return the checksum that the last recording rule contains."""
    (found,) = [rule["labels"]["checksum"] for rule in groups[0]["rules"] if rule["record"] == RULES_INFO]
    return str(found)


def _checksum(groups: Sequence[Rule]) -> str:
    digest = hashlib.sha256(json.dumps(groups, sort_keys=True).encode()).hexdigest()
    return f"sha256-{digest[:16]}"  # without the prefix, YAML could read it as a number


def _recording_group() -> Rule:
    rules = [{"record": name, "expr": expression} for _, name, expression in RECORDING_RULES]
    return {"name": "rebalance-monitor-recording", "rules": rules}


def _alert_group(file: AlertFile) -> Rule:
    _, _, subject = file.name.partition("-")
    return {
        "name": f"rebalance-monitor-{subject}",
        "rules": [rule for alert in file.alerts for rule in rules_of(alert)],
    }


def rules_of(alert: Alert) -> Iterator[Rule]:
    """Return the rules of an alert, one for each level (see `levels_of`)."""
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
    """Return all levels. If an alert about groups has only a critical level, a warning level is added (rule 5)."""
    yield from alert.levels
    if alert.subject == GROUP and alert.severities == (CRITICAL,):
        (only,) = alert.levels
        yield Level(WARNING, only.expression, only.pending, only.keep_firing)


def _expression(alert: Alert, level: Level) -> str:
    """Return the expression of a level. Alerts about groups get the labels of the groups (rules 3 and 4)."""
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
    """Return a query for the groups whose setting `severity` allows this level."""
    if level.severity == CRITICAL:
        return f'{groups}{{max_severity="critical"}}'
    is_for_capped_groups_only = alert.severities == (CRITICAL,)
    return f'{groups}{{max_severity!="critical"}}' if is_for_capped_groups_only else groups


def _labels(alert: Alert, level: Level) -> dict[str, str]:
    """Return the labels of a level. Prometheus removes `max_severity` from the alert, because the label is empty."""
    if alert.subject != GROUP:
        return {"severity": level.severity}
    severity = _CAPPED_SEVERITY if level.severity == WARNING else level.severity
    return {"severity": severity, "max_severity": ""}
