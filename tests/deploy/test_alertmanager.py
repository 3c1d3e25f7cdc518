"""Test the routes and the inhibition rules of Alertmanager's configuration."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards.rules import ALERTS, INFO, PAGE, TICKET
from tests.end_to_end.monitor_process import until
from tests.end_to_end.prometheus_process import RealAlertmanager
from tests.monitoring_programs import monitoring_programs

FILE = Path(__file__).parents[2] / "deploy" / "compose" / "alertmanager.yaml"
CONFIGURATION: dict[str, Any] = yaml.safe_load(FILE.read_text())
LABELS = [{"alertname": rule["alert"], **rule["labels"]} for rule in ALERTS]


def amtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [monitoring_programs().amtool, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def matches(matchers: Sequence[str], labels: Mapping[str, str]) -> bool:
    """Return whether labels match all matchers. Only the two operators of this configuration are supported."""
    parsed = [re.fullmatch(r'(\w+)(=~|=)"(.*)"', matcher) for matcher in matchers]
    assert all(parsed), matchers
    return all(
        re.fullmatch(value if kind == "=~" else re.escape(value), labels.get(name, ""))
        for name, kind, value in (matched.groups() for matched in parsed if matched)
    )


def inhibited() -> set[tuple[str, str, str, str]]:
    """Return (alert, severity, inhibited alert, its severity) for all alerts."""
    return {
        (source["alertname"], source["severity"], target["alertname"], target["severity"])
        for rule in CONFIGURATION["inhibit_rules"]
        for source, target in itertools.product(LABELS, LABELS)
        if matches(rule["source_matchers"], source) and matches(rule["target_matchers"], target)
        if "alertname" not in rule["equal"] or source["alertname"] == target["alertname"]
    }


def test_amtool_accepts_the_configuration() -> None:
    ran = amtool("check-config", str(FILE))
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("severity", "receiver"), [(PAGE, "on-call"), (TICKET, "tickets"), (INFO, "nobody"), ("critical", "tickets")]
)
def test_each_severity_goes_to_its_receiver(severity: str, receiver: str) -> None:
    """An unknown severity becomes a ticket."""
    ran = amtool("config", "routes", "test", f"--config.file={FILE}", f"severity={severity}", "alertname=Any")
    assert ran.stdout.strip() == receiver, ran.stderr


def test_one_notification_contains_all_alerts_of_a_group() -> None:
    assert CONFIGURATION["route"]["group_by"] == ["cluster", "group"]


def test_every_alert_named_in_the_configuration_exists() -> None:
    """If an alert is renamed only in the rules, its inhibition rule has no effect."""
    rules = CONFIGURATION["inhibit_rules"]
    named = [matcher for rule in rules for matcher in (*rule["source_matchers"], *rule["target_matchers"])]
    values = [value for matcher in named for value in re.findall(r'^alertname=~?"(.*)"$', matcher)]
    names = {name for value in values for name in value.split("|")} - {"Kafka.+"}
    assert names <= {labels["alertname"] for labels in LABELS}
    assert all({"cluster"} <= set(rule["equal"]) for rule in rules), "an alert inhibits only alerts of its own cluster"


@pytest.mark.parametrize(
    ("source", "target", "why"),
    [
        ("RebalanceMonitorNotReady", "KafkaAssignmentSkewed", "the values are not the present"),
        ("RebalanceMonitorDown", "KafkaGroupLagging", "the cluster is not monitored"),
        ("KafkaRollingRestart", "KafkaRebalanceStorm", "a deployment ends by itself"),
        ("KafkaMemberFlapping", "KafkaRebalanceStorm", "it is the cause"),
        ("KafkaGroupSilent", "KafkaGroupStopped", "it describes the same problem"),
    ],
)
def test_the_alert_for_the_cause_inhibits_the_alert_for_the_effect(source: str, target: str, why: str) -> None:
    assert (source, target) in {(one[0], one[2]) for one in inhibited()}, why


def test_a_real_alertmanager_inhibits_a_storm_that_a_flapping_member_explains(tmp_path: Path) -> None:
    """Only the storm of the same group in the same cluster is inhibited."""
    labels = {
        name: {"alertname": alert, "cluster": "prod", "group": group, "severity": PAGE}
        for name, alert, group in (
            ("cause", "KafkaMemberFlapping", "payments"),
            ("storm", "KafkaRebalanceStorm", "payments"),
            ("elsewhere", "KafkaRebalanceStorm", "orders"),
        )
    }
    with RealAlertmanager(tmp_path / "alertmanager", CONFIGURATION) as running:
        running.send([{"labels": of_alert} for of_alert in labels.values()])
        inhibited_labels = until(
            "one inhibited alert",
            lambda: len(alerts := running.ask("/api/v2/alerts")) == 3 and labels_of_inhibited(alerts),
        )
    assert inhibited_labels == [labels["storm"]]


def labels_of_inhibited(alerts: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the labels of inhibited alerts. Alertmanager decides this moments after it receives the alerts."""
    return [alert["labels"] for alert in alerts if alert["status"]["inhibitedBy"]]


def test_no_ticket_inhibits_a_page_and_no_two_alerts_inhibit_each_other() -> None:
    """Otherwise no notification would be sent. Of the severity info, only a deployment inhibits other alerts."""
    pairs = inhibited()
    assert not [pair for pair in pairs if (pair[1], pair[3]) == (TICKET, PAGE)]
    assert {pair[0] for pair in pairs if pair[1] == INFO} == {"KafkaRollingRestart"}
    both = [pair for pair in pairs if (*pair[2:], *pair[:2]) in pairs and pair[:2] != pair[2:]]
    assert both == []
