"""The rules of `dashboards/rules`, and what promtool makes of them and of a story told in series."""

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
class Story:
    """Series as they are told at every `step`, in promtool's notation, and whether an alert fires at a time.

    `severity` is that of the alert that fires, None: it does not fire. `says` are its summary and description, where
    the story is about words. The monitor of cluster `prod` is ready all the time unless `series` says otherwise.
    `external_labels` are Prometheus' own.
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
    """One series of group `payments`, or of the one that `labels` name."""
    return {_selector(f"rebalance_monitor_{metric}", **{"cluster": "prod", "group": "payments", **labels}): values}


def of_cluster(metric: str, values: str, **labels: str) -> dict[str, str]:
    """One series of cluster `prod`."""
    return {_selector(f"rebalance_monitor_{metric}", cluster="prod", **labels): values}


def condition(name: str, values: str) -> dict[str, str]:
    """Both series of a condition; the values are 1 and the time since when it holds."""
    since = re.sub(r"\b1x", "1700000000x", values)
    return of_group("group_condition", values, condition=name) | of_group(
        "group_condition_timestamp_seconds", since, condition=name
    )


def reported(story: Story, folder: Path) -> str:
    """Run promtool on a story; what it says where it comes out differently, empty where it does not."""
    file = folder / "story.yaml"
    file.write_text(yaml.safe_dump(_promtool_file(story)))
    promtool = monitoring_programs().promtool
    ran = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    return "" if ran.returncode == 0 else ran.stdout + ran.stderr


def _promtool_file(story: Story) -> dict[str, Any]:
    series = {READY: "1x6000", **story.series}
    test: dict[str, Any] = {
        "interval": story.step,
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "external_labels": dict(story.external_labels),
    }
    if story.says is None:
        test["promql_expr_test"] = [_firing(story)]
    else:
        test["alert_rule_test"] = [_words(story)]
    return {
        "rule_files": [str(file) for file in _files_of(story.alert)],
        "evaluation_interval": story.step,
        "group_eval_order": [group["name"] for group in GROUPS],
        "tests": [test],
    }


def _files_of(alert: str) -> list[Path]:
    """The recording rules, and where an alert is defined: the others' alerts are not asked for. `*`: all."""
    return [file for file in FILES if alert == "*" or "- record:" in (text := file.read_text()) or f"{alert}\n" in text]


def _firing(story: Story) -> dict[str, Any]:
    """Which severities of an alert fire; `*`: of any alert that somebody is told of."""
    which = 'alertname!="",severity!="info"' if story.alert == "*" else f'alertname="{story.alert}"'
    expected = [] if story.severity is None else [{"labels": f'{{severity="{story.severity}"}}', "value": 1}]
    expression = f'count by (severity) (ALERTS{{alertstate="firing",{which}}})'
    return {"expr": expression, "eval_time": story.at, "exp_samples": expected}


def _words(story: Story) -> dict[str, Any]:
    assert story.says is not None
    summary, description = story.says
    group = story.labels.get("group")
    monitor = story.external_labels["rebalance_monitor_url"]
    grafana = story.external_labels.get("grafana_url", "http://localhost:3000")
    board = f"rebalance-monitor-{'group' if group else 'itself'}?var-cluster=prod"
    annotations = {
        "summary": summary,
        "description": description,
        "page_url": f"{monitor}/groups/?id={quote_plus(group)}&cluster=prod" if group else f"{monitor}/?cluster=prod",
        "dashboard_url": f"{grafana}/d/{board}" + (f"&var-group={quote_plus(group)}" if group else ""),
        "runbook_url": f"{_runbook(story)}#{story.alert.lower()}",
    }
    labels = {**story.labels, "severity": story.severity}
    expected = {"exp_labels": labels, "exp_annotations": annotations}
    return {"eval_time": story.at, "alertname": story.alert, "exp_alerts": [expected]}


def _runbook(story: Story) -> str:
    """Where somebody set it; else in Grafana, at the alert's own panel; else, of no address, the file's name."""
    known = story.external_labels
    if "rebalance_monitor_runbook_url" in known:
        return known["rebalance_monitor_runbook_url"]
    if "grafana_url" not in known:
        return str(RUNBOOK.relative_to(ROOT))
    runbook = Dashboard("runbook")
    (number,) = (panel["id"] for panel in runbook.panels if panel["title"] == story.alert)
    return f"{known['grafana_url']}/d/{runbook.model['uid']}?viewPanel={number}"


def _selector(metric: str, **labels: str) -> str:
    quoted = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items())
    return f"{metric}{{{','.join(quoted)}}}"


ROLLING = condition("rolling_restart", "1x300")
"""Members are being replaced one after the other."""
