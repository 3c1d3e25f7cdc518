"""Create Prometheus' rules from the definitions of alerts (`definition.py`, rules 1 to 5)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from textwrap import indent
from typing import Any

from dashboards.alerts.definition import CRITICAL, GROUP, WARNING, Alert, AlertFile, Level
from dashboards.alerts.expressions import GROUP_LABELS, READY, RECORDING_RULES, RULES_INFO, lines
from dashboards.alerts.links import links

Rule = dict[str, Any]

_CAPPED_SEVERITY = '{{ if eq $labels.max_severity "info" }}info{{ else }}warning{{ end }}'


def rule_groups(files: Iterable[AlertFile]) -> list[Rule]:
    """Return all rule groups: the recording rules, and one group for each file with alerts.

    The last recording rule has a label that contains the checksum of all other rules. `rebalance-monitor doctor` reads
    this label to check whether Prometheus has loaded the current rules. The command cannot compare the rules
    themselves, because Prometheus' API formats expressions differently.
    """
    recording = [{"record": name, "expr": expression} for _, name, expression in RECORDING_RULES]
    groups: list[Rule] = [{"name": "rebalance-monitor-recording", "rules": recording}]
    for file in files:
        _, _, subject = file.name.partition("-")
        rules = [rule for alert in file.alerts for rule in _rules_of(alert)]
        groups.append({"name": f"rebalance-monitor-{subject}", "rules": rules})
    digest = hashlib.sha256(json.dumps(groups, sort_keys=True).encode()).hexdigest()
    checksum = f"sha256-{digest[:16]}"  # without the prefix, YAML could read the checksum as a number
    ready = f"max by (cluster) ({READY})"
    groups[0]["rules"].append({"record": RULES_INFO, "expr": ready, "labels": {"checksum": checksum}})
    return groups


def _rules_of(alert: Alert) -> Iterator[Rule]:
    levels = list(alert.levels)
    if alert.subject == GROUP and alert.severities == (CRITICAL,):
        levels.append(replace(levels[0], severity=WARNING))  # rule 5
    for level in levels:
        yield {
            "alert": alert.name,
            "expr": _expression(alert, level),
            "for": level.pending,
            **({"keep_firing_for": level.keep_firing} if level.keep_firing != "0s" else {}),
            "labels": _labels(alert, level),
            "annotations": {"summary": alert.summary, "description": alert.description, **links(alert)},
        }


def _expression(alert: Alert, level: Level) -> str:
    """Return the expression of a level. Alerts about groups get the labels of the groups (rules 3 and 4)."""
    if alert.subject != GROUP:
        return level.expression
    groups = alert.labels_of_groups
    if level.severity == CRITICAL:
        groups += '{max_severity="critical"}'
    elif alert.severities == (CRITICAL,):
        groups += '{max_severity!="critical"}'
    join = f"* on (cluster, group) group_left ({GROUP_LABELS})"
    return lines("(", indent(level.expression, "  "), ")", join, groups)


def _labels(alert: Alert, level: Level) -> dict[str, str]:
    """Return the labels of a level. Prometheus removes `max_severity` from the alert, because the label is empty."""
    if alert.subject != GROUP:
        return {"severity": level.severity}
    severity = _CAPPED_SEVERITY if level.severity == WARNING else level.severity
    return {"severity": severity, "max_severity": ""}
