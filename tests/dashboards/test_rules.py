"""What holds of every rule: its names are defined, its links lead somewhere, somebody described what to do."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streaming.evaluation.conditions import reconciliation, silence
from streaming.evaluation.rebalances import detectors
from streaming.signals import HISTOGRAM, SIGNALS, exported_names
from tests.dashboards.rules import ALERTS, FILES, INFO, PAGE, RECORDED, RULES, RUNBOOK, TICKET
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
_ASKED = re.compile(r'printf\s+"(?!%\.2f")((?:[^"\\]|\\.)*)"')
"""Each `printf` of an annotation makes a query, except the one that rounds a number."""

EACH_RULE = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
EACH_ALERT = pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: f"{rule['alert']} {rule['labels']['severity']}")


def queries(rule: dict[str, Any]) -> list[str]:
    """Every PromQL of a rule: its expression, and what its words ask for."""
    words = rule.get("annotations", {}).values()
    return [rule["expr"], *(asked.replace('\\"', '"') for text in words for asked in _ASKED.findall(text))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_promtool_has_nothing_to_say_of_the_rules(file: Path) -> None:
    command = [monitoring_programs().promtool, "check", "rules", "--lint=all", "--lint-fatal", file]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@EACH_RULE
def test_a_rule_asks_for_series_and_labels_that_are_exported(rule: dict[str, Any]) -> None:
    """A name that is misspelled selects nothing: the alert would never fire, and nobody would know."""
    for query in queries(rule):
        asked = _SERIES.findall(query)
        assert asked, query
        known = set(ONCE_SCRAPED)
        for name, matchers in asked:
            assert name in RECORDED_NAMES or name in LABELS, name
            of_series = LABELS.get(name, {"cluster", "group"})
            assert {label for label, _ in _MATCHER.findall(matchers)} <= of_series, query
            known |= of_series
        assert {label for group in _GROUPING.findall(query) for label in re.findall(r"\w+", group)} <= known, query


@EACH_RULE
def test_a_value_of_a_label_is_one_that_there_is(rule: dict[str, Any]) -> None:
    """Of labels all of whose values are known; a condition that was renamed would be waited for for ever."""
    for name, matchers in (found for query in queries(rule) for found in _SERIES.findall(query)):
        known = SIGNALS[name].label_values if name in SIGNALS else {}
        for label, value in _MATCHER.findall(matchers):
            if value and label in known:
                assert set(value.split("|")) <= set(known[label]), (name, label, value)


def test_every_condition_has_an_alert() -> None:
    """What the detectors find, somebody is told: a new one needs a rule and a page of the runbook."""
    asked = {
        value
        for rule in ALERTS
        for _, matchers in _SERIES.findall(rule["expr"])
        for label, values in _MATCHER.findall(matchers)
        if label == "condition"
        for value in values.split("|")
    }
    known = set(SIGNALS["rebalance_monitor_group_condition"].label_values["condition"])
    assert asked == known
    assert known <= CONDITIONS


@EACH_ALERT
def test_an_alert_has_all_that_somebody_who_is_called_needs(rule: dict[str, Any]) -> None:
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
    """What it shows then is the past."""
    if rule["alert"].startswith("Kafka"):
        assert "and on (cluster) cluster:rebalance_monitor_ready:max == 1" in rule["expr"]


@EACH_ALERT
def test_an_alert_is_the_same_whichever_monitor_tells_it(rule: dict[str, Any]) -> None:
    """With `instance` among its labels every alert would end, and begin again, when a monitor moves."""
    first = rule["expr"].lstrip("( \n").split("\n")[0]
    assert first.startswith(("max by", "min by", "sum by", "cluster", "last_over_time(cluster")), first


def test_alerts_of_one_name_have_different_severities_and_the_same_words() -> None:
    for rule in ALERTS:
        alike = [other for other in ALERTS if other["alert"] == rule["alert"]]
        assert len({other["labels"]["severity"] for other in alike}) == len(alike)
        assert all(other["annotations"] == rule["annotations"] for other in alike)


def test_the_runbook_has_a_section_for_each_alert_and_for_nothing_else() -> None:
    """A page whose link leads nowhere leaves somebody alone at 3 a.m."""
    sections = re.findall(r"^## (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert sections == list(dict.fromkeys(rule["alert"] for rule in ALERTS))


@EACH_ALERT
def test_a_section_of_the_runbook_says_what_it_means_how_to_confirm_it_and_what_to_do(rule: dict[str, Any]) -> None:
    text = RUNBOOK.read_text()
    section = text.split(f"\n## {rule['alert']}\n")[1].split("\n## ")[0]
    for part in ("**Means**", "**Confirm**", "**Do**", "**False alarm**"):
        assert part in section, part
    (commands,) = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    assert len(commands.strip().splitlines()) == 3


def test_what_the_runbook_has_somebody_type_names_the_brokers_and_the_cluster() -> None:
    """Where several clusters are watched, a command without a name is of another cluster, or refuses."""
    text = " ".join(RUNBOOK.read_text().split())
    for tool in re.findall(r"kafka-[a-z-]+\.sh[^;|`]*", text):
        assert '--bootstrap-server "$BROKERS"' in tool or len(tool.split()) == 1, tool
    for command in re.findall(r"rebalance-monitor (?:what-if|history|rebuild)[^`;|]{0,30}", text):
        assert '--cluster "$CLUSTER"' in command, command
    asked = [line for line in RUNBOOK.read_text().splitlines() if "curl " in line]
    assert asked
    assert all("cluster=" in line for line in asked), asked


def test_the_runbook_shows_what_the_monitor_answers_while_it_catches_up() -> None:
    """The API answers 503 then, with phase and records behind: `curl -f` would hide just these."""
    asked = [line for line in RUNBOOK.read_text().splitlines() if "/api/v1/" in line]
    assert asked
    assert not [line for line in asked if re.search(r"curl -\w*f", line)]
