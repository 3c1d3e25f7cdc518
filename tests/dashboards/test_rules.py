"""Test every rule: its metrics and labels exist, and its links work. `test_runbook.py` tests the runbook."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streaming.evaluation.conditions import reconciliation, silence
from streaming.evaluation.rebalances import detectors
from streaming.signals import HISTOGRAM, SIGNALS, exported_names
from tests.dashboards.rules import ALERTS, FILES, INFO, PAGE, RECORDED, RULES, TICKET
from tests.monitoring_programs import monitoring_programs

LABELS = {
    name: {*signal.labels, *(["le"] if signal.kind == HISTOGRAM else [])}
    for signal in SIGNALS.values()
    for name in exported_names(signal)
}
ONCE_SCRAPED = {"instance", "job"}
RECORDED_NAMES = {rule["record"] for rule in RECORDED}
CONDITIONS = {
    value
    for module in (detectors, silence, reconciliation)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str)
}

_SERIES = re.compile(r"\b((?:\w+:)?rebalance_monitor_\w+(?::\w+)?)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*(?:"([^"]*)"|%q)')
_GROUPING = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
_QUERY_IN_TEXT = re.compile(r'printf\s+"(?!%\.2f")((?:[^"\\]|\\.)*)"')
"""Each `printf` of an annotation makes a query, except the one that rounds a number."""

EACH_RULE = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
EACH_ALERT = pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: f"{rule['alert']} {rule['labels']['severity']}")


def queries(rule: dict[str, Any]) -> list[str]:
    """Return every PromQL query of a rule: its expression, and the queries in its texts."""
    texts = rule.get("annotations", {}).values()
    in_texts = (query.replace('\\"', '"') for text in texts for query in _QUERY_IN_TEXT.findall(text))
    return [rule["expr"], *in_texts]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_promtool_accepts_the_rules(file: Path) -> None:
    command = [monitoring_programs().promtool, "check", "rules", "--lint=all", "--lint-fatal", file]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr


@EACH_RULE
def test_a_rule_uses_only_exported_series_and_labels(rule: dict[str, Any]) -> None:
    """A misspelled name selects no series, and the alert would never fire."""
    for query in queries(rule):
        series = _SERIES.findall(query)
        assert series, query
        known = set(ONCE_SCRAPED)
        for name, matchers in series:
            assert name in RECORDED_NAMES or name in LABELS, name
            of_series = LABELS.get(name, {"cluster", "group"})
            assert {label for label, _ in _MATCHER.findall(matchers)} <= of_series, query
            known |= of_series
        assert {label for group in _GROUPING.findall(query) for label in re.findall(r"\w+", group)} <= known, query


@EACH_RULE
def test_a_rule_uses_only_existing_values_of_labels(rule: dict[str, Any]) -> None:
    """Only labels with a fixed set of values are checked, for example names of conditions."""
    for name, matchers in (series for query in queries(rule) for series in _SERIES.findall(query)):
        known = SIGNALS[name].label_values if name in SIGNALS else {}
        for label, value in _MATCHER.findall(matchers):
            if value and label in known:
                assert set(value.split("|")) <= set(known[label]), (name, label, value)


def test_every_condition_has_an_alert() -> None:
    """A new condition needs a rule and a section of the runbook."""
    in_alerts = {
        value
        for rule in ALERTS
        for _, matchers in _SERIES.findall(rule["expr"])
        for label, values in _MATCHER.findall(matchers)
        if label == "condition"
        for value in values.split("|")
    }
    known = set(SIGNALS["rebalance_monitor_group_condition"].label_values["condition"])
    assert in_alerts == known
    assert known <= CONDITIONS


@EACH_ALERT
def test_an_alert_has_a_severity_texts_and_links(rule: dict[str, Any]) -> None:
    assert set(rule["labels"]) == {"severity"}
    assert rule["labels"]["severity"] in {PAGE, TICKET, INFO}
    assert "for" in rule
    words = rule["annotations"]
    assert set(words) == {"summary", "description", "page_url", "dashboard_url", "runbook_url"}
    assert "What to do: " in words["description"]
    assert re.search(r"\$(labels|value)", words["summary"])
    assert words["runbook_url"].endswith(f"#{rule['alert'].lower()}")


@EACH_ALERT
def test_no_alert_on_a_group_fires_while_the_monitor_catches_up(rule: dict[str, Any]) -> None:
    """Until the monitor has caught up, it shows past values."""
    if rule["alert"].startswith("Kafka"):
        assert "and on (cluster) cluster:rebalance_monitor_ready:max == 1" in rule["expr"]


@EACH_ALERT
def test_an_alert_does_not_depend_on_the_instance_of_the_monitor(rule: dict[str, Any]) -> None:
    """With the label `instance`, every alert would end and begin again when a monitor moves."""
    first = rule["expr"].lstrip("( \n").split("\n")[0]
    assert first.startswith(("max by", "min by", "sum by", "cluster", "last_over_time(cluster")), first


def test_alerts_of_one_name_have_different_severities_and_the_same_texts() -> None:
    for rule in ALERTS:
        same_name = [other for other in ALERTS if other["alert"] == rule["alert"]]
        assert len({other["labels"]["severity"] for other in same_name}) == len(same_name)
        assert all(other["annotations"] == rule["annotations"] for other in same_name)
