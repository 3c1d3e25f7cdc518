"""Test every rule: its metrics and labels exist, and its links work. `test_runbook.py` tests the runbook."""

from __future__ import annotations

import re
import subprocess
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

from dashboards.alerts.files import ROOT, alert_files
from dashboards.alerts.links import panel_number
from streaming.evaluation import conditions
from streaming.evaluation.rebalances import condition_detectors
from streaming.signals import CLUSTER, GROUP, HISTOGRAM, SIGNALS, exported_names
from tests.dashboards.rules import ALERTS, CRITICAL, FILES, INFO, RECORDED, RULES, WARNING
from tests.monitoring_programs import monitoring_programs

LABELS = {
    name: {*signal.labels, *(["le"] if signal.kind == HISTOGRAM else [])}
    for signal in SIGNALS.values()
    for name in exported_names(signal)
}
ONCE_SCRAPED = {"instance", "job"}
RECORDED_NAMES = {rule["record"] for rule in RECORDED}
ALERTING = "cluster_group:rebalance_monitor_group_info:alerting"
LABELS_OF_RECORDED = {"cluster": {"cluster"}, "cluster_group": {"cluster", "group"}} | {
    ALERTING: {"cluster", "group", "team", "max_severity", "coordinator"},
    "cluster_coordinator": {"cluster", "coordinator"},
}
CAPPED = '{{ if eq $labels.max_severity "info" }}info{{ else }}warning{{ end }}'
WITHOUT_ALERT = {"subscription_mismatch"}
"""A cause of skew, which the alert on skew names. Alone, it harms nobody."""
_PACKAGE = f"{conditions.__name__}."
CONDITIONS = {
    value
    for module in (
        condition_detectors,
        *(import_module(found.name) for found in iter_modules(conditions.__path__, _PACKAGE)),
    )
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str)
}

_SERIES = re.compile(r"\b((?:\w+:)?rebalance_monitor_\w+(?::\w+)?)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*(?:"([^"]*)"|%q)')
_GROUPING = re.compile(r"\b(?:by|on|group_left)\s*\(([^)]*)\)")
_QUERY_IN_TEXT = re.compile(r'printf\s+"(?!%\.0f"|http)((?:[^"\\]|\\.)*)"')
"""Each `printf` of an annotation makes a query, except those that round a number or write an address."""

EACH_RULE = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
EACH_ALERT = pytest.mark.parametrize(
    "rule", ALERTS, ids=lambda rule: f"{rule['alert']} {rule['labels']['severity'].replace(CAPPED, WARNING)}"
)


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
            of_series = LABELS.get(name) or LABELS_OF_RECORDED.get(name) or LABELS_OF_RECORDED[name.split(":")[0]]
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


@EACH_RULE
def test_an_expression_uses_only_metrics_that_every_group_has_by_default(rule: dict[str, Any]) -> None:
    """Finer metrics exist only for the worst groups. An alert on them would end when other groups get worse."""
    names = {name for name, _ in _SERIES.findall(rule["expr"])} - RECORDED_NAMES
    assert {SIGNALS[name].granularity for name in names} <= {CLUSTER, GROUP}


def test_every_condition_has_an_alert() -> None:
    """A new condition needs a rule and a section of the runbook."""
    in_alerts = {
        value
        for rule in RULES
        for _, matchers in _SERIES.findall(rule["expr"])
        for label, values in _MATCHER.findall(matchers)
        if label == "condition"
        for value in values.split("|")
    }
    known = set(SIGNALS["rebalance_monitor_group_condition"].label_values["condition"])
    assert in_alerts == known - WITHOUT_ALERT
    assert known <= CONDITIONS


@EACH_ALERT
def test_an_alert_has_a_severity_texts_and_links(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {CRITICAL, WARNING, INFO, CAPPED}
    assert "for" in rule
    words = rule["annotations"]
    incident = {"incident_url"} if rule["alert"].startswith("Kafka") else set()
    assert set(words) == {"summary", "description", "page_url", "dashboard_url", "runbook_url"} | incident
    assert "What to do: " in words["description"]
    assert words["runbook_url"].endswith(f"#{rule['alert'].lower()}")
    assert f"viewPanel={panel_number(rule['alert'])}" in words["runbook_url"]


@EACH_ALERT
def test_a_summary_names_the_cluster_and_the_group(rule: dict[str, Any]) -> None:
    """It may be all that fits on a phone."""
    named = {"cluster", "group"} if is_about_a_group(rule) else {"cluster"}
    assert named <= set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))


def is_about_a_group(rule: dict[str, Any]) -> bool:
    """Return whether an alert has the label `group`."""
    return "on (cluster, group) group_left" in rule["expr"]


@EACH_ALERT
def test_an_alert_about_a_group_has_its_team_and_follows_its_settings(rule: dict[str, Any]) -> None:
    """`ALERTING` has no series for groups with `ignore_alerts`, and its label is the highest severity of the group."""
    about_clusters = {"KafkaCoordinatorTrouble", "KafkaCoordinatorMissing", "KafkaOffsetsBlockedByTransaction"}
    assert is_about_a_group(rule) == (rule["alert"].startswith("Kafka") and rule["alert"] not in about_clusters)
    if is_about_a_group(rule):
        _, _, groups = rule["expr"].partition("group_left (team, max_severity, coordinator)\n")
        assert ALERTING in groups
        assert rule["labels"]["max_severity"] == "", "the setting is no label of the alert"
        assert ('{max_severity="critical"}' in groups) == (rule["labels"]["severity"] == CRITICAL)


@EACH_ALERT
def test_no_alert_on_a_group_fires_while_the_monitor_catches_up(rule: dict[str, Any]) -> None:
    """Until the monitor has caught up, it shows past values. `ALERTING` has no series until then."""
    if rule["alert"] == "KafkaCoordinatorTrouble":
        assert "groups_in_trouble" in rule["expr"], "counts only groups in ALERTING"
    elif rule["alert"] == "KafkaCoordinatorMissing":
        assert "offsets_topic_leaderless" in rule["expr"], "this value comes from the brokers, not from the log"
    elif rule["alert"].startswith("Kafka"):
        assert ALERTING in rule["expr"] or "and on (cluster) cluster:rebalance_monitor_ready:max == 1" in rule["expr"]
    (alerting,) = (rule["expr"] for rule in RECORDED if rule["record"] == ALERTING)
    assert alerting.endswith("and on (cluster) cluster:rebalance_monitor_ready:max == 1")


@EACH_RULE
def test_a_rule_does_not_depend_on_the_instance_of_the_monitor(rule: dict[str, Any]) -> None:
    """With the label `instance`, every alert would end and begin again when a monitor moves."""
    first = rule["expr"].lstrip("( \n").split("\n")[0].removeprefix("time() - ")
    aggregations = ("max by", "min by", "count by", "topk by", "cluster")
    assert re.sub(r"^\w+_over_time\(", "", first).startswith(aggregations), first


@EACH_RULE
def test_a_sum_does_not_add_the_values_of_two_monitors(rule: dict[str, Any]) -> None:
    """Two monitors may watch one cluster. So a sum is for each instance, and the largest one counts."""
    assert not re.search(r"\bsum by \((?!cluster, instance\))|\bsum\s*\(", rule["expr"])


def test_the_levels_of_an_alert_have_different_severities_and_the_same_texts() -> None:
    for rule in ALERTS:
        same_name = [other for other in ALERTS if other["alert"] == rule["alert"]]
        assert len({other["labels"]["severity"] for other in same_name}) == len(same_name)
        assert all(other["annotations"] == rule["annotations"] for other in same_name)


def test_all_alerts_about_groups_and_all_others_link_in_the_same_way() -> None:
    """So one story of each kind tests the links of all alerts. Only alerts on the monitor look back for a day."""
    links = {
        (kind, re.sub(r"last_over_time\((.*?)\[1d\]\)", r"\1", rule["annotations"][kind]).partition("viewPanel=")[0])
        for rule in ALERTS
        for kind in ("page_url", "incident_url", "dashboard_url", "runbook_url")
        if kind in rule["annotations"]
    }
    assert len(links) == 7, "two pages, two incidents, two dashboards, one runbook"


def test_there_are_29_alerts_and_the_committed_files_are_those_of_the_generator() -> None:
    """`python -m dashboards` writes the files: rules, manifests, inhibition rules and the table of alerts."""
    assert len({rule["alert"] for rule in ALERTS}) == 29
    for path, text in alert_files():
        assert (ROOT / path).read_text() == text, path
