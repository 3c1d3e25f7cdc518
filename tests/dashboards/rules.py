"""Read the rules of `dashboards/rules`, and evaluate them with promtool on series of a test case."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import yaml

from tests.grafana import Dashboard
from tests.monitoring_programs import monitoring_programs

ROOT = Path(__file__).parents[2]
RUNBOOK = ROOT / "dashboards" / "RUNBOOK.md"
FILES = tuple(sorted((ROOT / "dashboards" / "rules").glob("*.yaml")))
GROUPS: tuple[dict[str, Any], ...] = tuple(
    group for file in FILES for group in yaml.safe_load(file.read_text())["groups"]
)
RULES: tuple[dict[str, Any], ...] = tuple(rule for group in GROUPS for rule in group["rules"])
ALERTS = tuple(rule for rule in RULES if "alert" in rule)
RECORDED = tuple(rule for rule in RULES if "record" in rule)

PAGE, TICKET, INFO = "page", "ticket", "info"
READY = 'rebalance_monitor_ready{cluster="prod",instance="monitor:9560"}'
EXTERNAL_LABELS = {
    "grafana_url": "https://grafana.example.org",
    "rebalance_monitor_url": "https://monitor.example.org",
    "rebalance_monitor_runbook_url": "https://example.org/runbook",
}


@dataclass(frozen=True)
class AlertCase:
    """Series with one value per `step`, in promtool's notation, and the expected alert at time `at`.

    `severity` is the severity of the firing alert; None if it must not fire. `says` has its summary and description, if
    the case checks the texts. The monitor of cluster `prod` is always ready unless `series` has a different value.
    `external_labels` are the external labels of Prometheus.
    """

    alert: str
    why: str
    at: str
    severity: str | None
    series: Mapping[str, str]
    step: str = "1m"
    says: tuple[str, str] | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: {"cluster": "prod", "group": "payments"})
    external_labels: Mapping[str, str] = field(default_factory=lambda: EXTERNAL_LABELS)


def of_group(metric: str, values: str, **labels: str) -> dict[str, str]:
    """Return one series of group `payments`, or of the group in `labels`."""
    return {_selector(f"rebalance_monitor_{metric}", **{"cluster": "prod", "group": "payments", **labels}): values}


def of_cluster(metric: str, values: str, **labels: str) -> dict[str, str]:
    """Return one series of cluster `prod`."""
    return {_selector(f"rebalance_monitor_{metric}", cluster="prod", **labels): values}


def condition(name: str, values: str) -> dict[str, str]:
    """Return both series of a condition: one with the value 1, and one with its start time."""
    since = re.sub(r"\b1x", "1700000000x", values)
    return of_group("group_condition", values, condition=name) | of_group(
        "group_condition_timestamp_seconds", since, condition=name
    )


def promtool_output(case: AlertCase, folder: Path) -> str:
    """Run promtool on a case. Return its output if the result differs from the expected one; otherwise ""."""
    file = folder / "case.yaml"
    file.write_text(yaml.safe_dump(_promtool_file(case)))
    promtool = monitoring_programs().promtool
    completed = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    return "" if completed.returncode == 0 else completed.stdout + completed.stderr


def _promtool_file(case: AlertCase) -> dict[str, Any]:
    series = {READY: "1x6000", **case.series}
    test: dict[str, Any] = {
        "interval": case.step,
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "external_labels": dict(case.external_labels),
    }
    if case.says is None:
        test["promql_expr_test"] = [_expected_severities(case)]
    else:
        test["alert_rule_test"] = [_expected_texts(case)]
    return {
        "rule_files": [str(file) for file in _files_of(case.alert)],
        "evaluation_interval": case.step,
        "group_eval_order": [group["name"] for group in GROUPS],
        "tests": [test],
    }


def _files_of(alert: str) -> list[Path]:
    """Return the files with recording rules and the file that defines the alert; all files for `*`."""
    return [file for file in FILES if alert == "*" or "- record:" in (text := file.read_text()) or f"{alert}\n" in text]


def _expected_severities(case: AlertCase) -> dict[str, Any]:
    """Return promtool's check of the firing severities of an alert. `*` is every alert that notifies a receiver."""
    which = 'alertname!="",severity!="info"' if case.alert == "*" else f'alertname="{case.alert}"'
    expected = [] if case.severity is None else [{"labels": f'{{severity="{case.severity}"}}', "value": 1}]
    expression = f'count by (severity) (ALERTS{{alertstate="firing",{which}}})'
    return {"expr": expression, "eval_time": case.at, "exp_samples": expected}


def _expected_texts(case: AlertCase) -> dict[str, Any]:
    assert case.says is not None
    summary, description = case.says
    group = case.labels.get("group")
    monitor = case.external_labels["rebalance_monitor_url"]
    grafana = case.external_labels.get("grafana_url", "http://localhost:3000")
    board = f"rebalance-monitor-{'group' if group else 'itself'}?var-cluster=prod"
    annotations = {
        "summary": summary,
        "description": description,
        "page_url": f"{monitor}/groups/?id={quote_plus(group)}&cluster=prod" if group else f"{monitor}/?cluster=prod",
        "dashboard_url": f"{grafana}/d/{board}" + (f"&var-group={quote_plus(group)}" if group else ""),
        "runbook_url": f"{_runbook(case)}#{case.alert.lower()}",
    }
    labels = {**case.labels, "severity": case.severity}
    expected = {"exp_labels": labels, "exp_annotations": annotations}
    return {"eval_time": case.at, "alertname": case.alert, "exp_alerts": [expected]}


def _runbook(case: AlertCase) -> str:
    """Return the runbook's address: the external label, or the alert's panel in Grafana, or the path of the file."""
    known = case.external_labels
    if "rebalance_monitor_runbook_url" in known:
        return known["rebalance_monitor_runbook_url"]
    if "grafana_url" not in known:
        return str(RUNBOOK.relative_to(ROOT))
    runbook = Dashboard("runbook")
    (number,) = (panel["id"] for panel in runbook.panels if panel["title"] == case.alert)
    return f"{known['grafana_url']}/d/{runbook.model['uid']}?viewPanel={number}"


def _selector(metric: str, **labels: str) -> str:
    quoted = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items())
    return f"{metric}{{{','.join(quoted)}}}"


ROLLING = condition("rolling_restart", "1x300")
"""Series of a rolling restart: members are replaced one after the other."""
