"""Read the rules of `dashboards/rules`, and evaluate them with promtool on series of a test case."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import yaml

from dashboards.alerts.links import panel_number
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

CRITICAL, WARNING, INFO = "critical", "warning", "info"
BOTH = (CRITICAL, WARNING)
"""Both levels fire. Alertmanager sends only the critical alert."""

INSTANCE = "monitor:9560"
READY = f'rebalance_monitor_ready{{cluster="prod",instance="{INSTANCE}"}}'
LINKS = {
    "page_url": "https://monitor.example.org",
    "grafana_url": "https://grafana.example.org",
    "runbook_url": "https://example.org/runbook",
}
COORDINATOR = "1"
OF_GROUP = {"cluster": "prod", "group": "payments", "coordinator": COORDINATOR}
"""Labels of an alert about group `payments`."""

_LIMITS = {"max_lag_seconds": 600, "critical_lag_seconds": 3600, "max_commit_gap_seconds": 300}


@dataclass(frozen=True)
class AlertCase:
    """Series with one value per `step`, in promtool's notation, and the expected alert at time `at`.

    `fires` has the severities of the firing alerts, each exactly once. It is empty if the alert must not fire. `says`
    has its summary and description, if the case checks the texts. The monitor of cluster `prod` is always ready unless
    `series` has a different value. Group `payments` exists and has the default limits, unless `series` has a series of
    `group_info`. `links` are the addresses in the monitor's settings.
    """

    alert: str
    why: str
    at: str
    fires: tuple[str, ...]
    series: Mapping[str, str]
    step: str = "1m"
    says: tuple[str, str] | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: OF_GROUP)
    links: Mapping[str, str] = field(default_factory=lambda: LINKS)


def of_group(metric: str, values: str, **labels: str) -> dict[str, str]:
    """Return one series of group `payments`, or of the group in `labels`."""
    return {_selector(f"rebalance_monitor_{metric}", **{"cluster": "prod", "group": "payments", **labels}): values}


def of_cluster(metric: str, values: str, **labels: str) -> dict[str, str]:
    """Return one series of cluster `prod`."""
    return {_selector(f"rebalance_monitor_{metric}", cluster="prod", **labels): values}


def group(values: str = "1x6000", limits: Mapping[str, int] | None = None, **labels: str) -> dict[str, str]:
    """Return the series that each existing group has: its info and its limits. `values` are those of the info."""
    defaults = {"coordinator": COORDINATOR, "team": "", "max_severity": CRITICAL, "ignore_alerts": "false"}
    series = of_group("group_info", values, **{**defaults, "state": "Stable", **labels})
    identity = {name: value for name, value in labels.items() if name in ("group", "instance")}
    for limit, seconds in {**_LIMITS, **(limits or {})}.items():
        series |= of_group("group_limit", re.sub(r"\b1x", f"{seconds}x", values), limit=limit, **identity)
    return series


def condition(name: str, values: str) -> dict[str, str]:
    """Return both series of a condition: one with the value 1, and one with its start time."""
    since = re.sub(r"\b1x", "1700000000x", values)
    return of_group("group_condition", values, condition=name) | of_group(
        "group_condition_timestamp_seconds", since, condition=name
    )


Series = Mapping[str, str]
"""Values in promtool's notation, by series."""


def _as_it_is(series: Series) -> Series:
    return series


def promtool_output(case: AlertCase, folder: Path, scraped: Callable[[Series], Series] = _as_it_is) -> str:
    """Run promtool on a case. Return its output if the result differs from the expected one; otherwise "".

    `scraped` returns the series in Prometheus. Its argument is the complete series of the case.
    """
    file = folder / "case.yaml"
    file.write_text(yaml.safe_dump(_promtool_file(case, scraped)))
    promtool = monitoring_programs().promtool
    environment = {**os.environ, "GOGC": "off"}  # garbage collection is a fifth of the processor time
    command = [promtool, "test", "rules", file]
    completed = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return "" if completed.returncode == 0 else completed.stdout + completed.stderr


def _promtool_file(case: AlertCase, scraped: Callable[[Series], Series]) -> dict[str, Any]:
    info = of_cluster("info", "1x6000", instance=INSTANCE, **case.links)
    defaults = {} if any("rebalance_monitor_group_info{" in name for name in case.series) else group()
    series = scraped(
        {_of_instance(name): values for name, values in {READY: "1x6000", **info, **defaults, **case.series}.items()}
    )
    test: dict[str, Any] = {
        "interval": case.step,
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
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


def _of_instance(series: str) -> str:
    """Return the series with the label `instance`, which every scraped series has."""
    return series if re.search(r"\binstance=", series) else f'{series[:-1]},instance="{INSTANCE}"}}'


def _files_of(alert: str) -> list[Path]:
    """Return the files with recording rules and the file that defines the alert; all files for `*`."""
    return [file for file in FILES if alert == "*" or "- record:" in (text := file.read_text()) or f"{alert}\n" in text]


def _expected_severities(case: AlertCase) -> dict[str, Any]:
    """Return promtool's check of the firing severities of an alert. `*` is every alert that notifies a receiver."""
    which = 'alertname!="",severity!="info"' if case.alert == "*" else f'alertname="{case.alert}"'
    expected = [{"labels": f'{{severity="{severity}"}}', "value": 1} for severity in case.fires]
    expression = f'count by (severity) (ALERTS{{alertstate="firing",{which}}})'
    return {"expr": expression, "eval_time": case.at, "exp_samples": expected}


def _expected_texts(case: AlertCase) -> dict[str, Any]:
    assert case.says is not None
    summary, description = case.says
    annotations = {"summary": summary, "description": description, **_expected_links(case)}
    expected = [
        {"exp_labels": {**case.labels, "severity": severity}, "exp_annotations": annotations} for severity in case.fires
    ]
    return {"eval_time": case.at, "alertname": case.alert, "exp_alerts": expected}


def _expected_links(case: AlertCase) -> dict[str, str]:
    """Return the links of rules 1 to 4 in `dashboards/alerts/links.py`."""
    group_id = case.labels.get("group")
    page = case.links["page_url"] or f"http://{INSTANCE}"
    grafana = case.links["grafana_url"]
    board = f"rebalance-monitor-{'group' if group_id else 'itself'}?var-cluster=prod"
    of_board = f"{grafana}/d/{board}" + (f"&var-group={quote_plus(group_id)}" if group_id else "")
    of_group = f"group={quote_plus(group_id)}&" if group_id else ""
    incident = {"incident_url": f"{page}/incidents?{of_group}cluster=prod"} if case.alert.startswith("Kafka") else {}
    return {
        **incident,
        "page_url": f"{page}/groups/?id={quote_plus(group_id)}&cluster=prod" if group_id else f"{page}/?cluster=prod",
        "dashboard_url": of_board if grafana else "",
        "runbook_url": f"{_runbook(case)}#{case.alert.lower()}",
    }


def _runbook(case: AlertCase) -> str:
    """Return the runbook's address: the setting, or the alert's panel in Grafana, or the path of the file."""
    if case.links["runbook_url"]:
        return case.links["runbook_url"]
    if not case.links["grafana_url"]:
        return str(RUNBOOK.relative_to(ROOT))
    return f"{case.links['grafana_url']}/d/rebalance-monitor-runbook?viewPanel={panel_number(case.alert)}"


def _selector(metric: str, **labels: str) -> str:
    quoted = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items())
    return f"{metric}{{{','.join(quoted)}}}"


ROLLING = condition("rolling_restart", "1x300")
"""Series of a rolling restart."""
