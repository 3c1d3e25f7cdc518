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

from tests.dashboards.rules import ALERTS, CRITICAL, INFO, WARNING
from tests.end_to_end.monitor_process import until
from tests.end_to_end.prometheus_process import RealAlertmanager
from tests.monitoring_programs import monitoring_programs

FILE = Path(__file__).parents[2] / "deploy" / "compose" / "alertmanager.yaml"
CONFIGURATION: dict[str, Any] = yaml.safe_load(FILE.read_text())
LABELS = [
    {"alertname": rule["alert"], "severity": severity}
    for rule in ALERTS
    for severity in ([WARNING, INFO] if "{{" in rule["labels"]["severity"] else [rule["labels"]["severity"]])
]
"""Every alert with each of its severities. A warning about a group becomes information if its setting is `info`."""


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
    ("labels", "receiver"),
    [
        (["severity=critical"], "on-call"),
        (["severity=warning"], "tickets"),
        (["severity=info"], "nobody"),
        (["severity=unknown"], "tickets"),
        (["severity=critical", "team=payments"], "payments-on-call"),
        (["severity=warning", "team=payments"], "payments-tickets"),
        (["severity=info", "team=payments"], "nobody"),
        (["severity=critical", "team=without-a-route"], "on-call"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_an_alert_goes_to_the_receiver_of_its_severity_and_team(labels: list[str], receiver: str) -> None:
    """A team without a route of its own, or an unknown severity, still reaches somebody."""
    ran = amtool("config", "routes", "test", f"--config.file={FILE}", *labels, "alertname=Any")
    assert ran.stdout.strip() == receiver, ran.stderr


def test_one_notification_contains_all_alerts_of_a_group() -> None:
    assert CONFIGURATION["route"]["group_by"] == ["cluster", "group"]


def test_every_alert_named_in_the_configuration_exists() -> None:
    """If an alert is renamed only in the rules, its inhibition rule has no effect."""
    rules = CONFIGURATION["inhibit_rules"]
    named = [matcher for rule in rules for matcher in (*rule["source_matchers"], *rule["target_matchers"])]
    values = [value for matcher in named for value in re.findall(r'^alertname=~?"(.*)"$', matcher)]
    names = {name for value in values for name in value.split("|")}
    assert names <= {labels["alertname"] for labels in LABELS}, "a pattern would match alerts of other products"
    assert all("alertname" in str(rule[side]) for rule in rules for side in ("source_matchers", "target_matchers"))
    assert all({"cluster"} <= set(rule["equal"]) for rule in rules), "an alert inhibits only alerts of its own cluster"


@pytest.mark.parametrize(
    ("source", "target", "why"),
    [
        ("RebalanceMonitorStale", "KafkaAssignmentSkewed", "the values are not the present"),
        ("RebalanceMonitorDown", "KafkaGroupLagging", "the cluster is not monitored"),
        ("KafkaRollingRestart", "KafkaRebalanceStorm", "a deployment ends by itself"),
        ("KafkaGroupSilent", "KafkaGroupStopped", "it describes the same problem"),
        ("KafkaGroupWithoutMembers", "KafkaGroupLagging", "it describes the same problem"),
        ("KafkaCoordinatorTrouble", "KafkaGroupSilent", "the broker is the cause"),
        ("KafkaOffsetsBlockedByTransaction", "KafkaGroupUnknown", "the transaction is the cause"),
    ],
)
def test_the_alert_for_the_cause_inhibits_the_alert_for_the_effect(source: str, target: str, why: str) -> None:
    assert (source, target) in {(one[0], one[2]) for one in inhibited()}, why


@pytest.mark.parametrize("target", ["KafkaRecordsLost", "KafkaRecordsAboutToBeLost"])
def test_a_loss_of_records_is_notified_even_if_many_groups_of_a_broker_fail(target: str) -> None:
    """Each of these groups needs an action of its own: its topics have a retention of their own."""
    assert ("KafkaCoordinatorTrouble", target) not in {(one[0], one[2]) for one in inhibited()}


def test_a_monitor_that_is_only_slow_suppresses_nothing() -> None:
    """A minute behind, its values are still worth a notification."""
    assert not [one for one in inhibited() if one[:2] == ("RebalanceMonitorStale", WARNING)]


def test_a_real_alertmanager_sends_one_notification_for_many_groups_of_a_broker(tmp_path: Path) -> None:
    """Only alerts of groups of the same coordinator are suppressed. An alert without the label is not."""
    trouble = {"alertname": "KafkaCoordinatorTrouble", "cluster": "prod", "coordinator": "2", "severity": CRITICAL}
    silent = {"alertname": "KafkaGroupSilent", "cluster": "prod", "severity": CRITICAL}
    of_broker = {**silent, "group": "payments", "coordinator": "2"}
    others = [{**silent, "group": "orders", "coordinator": "3"}, {**silent, "group": "unknown-coordinator"}]
    with RealAlertmanager(tmp_path / "alertmanager", CONFIGURATION) as running:
        running.send([{"labels": labels} for labels in (trouble, of_broker, *others)])
        inhibited_labels = until(
            "one inhibited alert",
            lambda: len(alerts := running.ask("/api/v2/alerts")) == 4 and labels_of_inhibited(alerts),
        )
    assert inhibited_labels == [of_broker]


def labels_of_inhibited(alerts: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the labels of inhibited alerts. Alertmanager decides this moments after it receives the alerts."""
    return [alert["labels"] for alert in alerts if alert["status"]["inhibitedBy"]]


def test_only_a_critical_alert_inhibits_a_critical_one_and_no_two_alerts_inhibit_each_other() -> None:
    """Otherwise no notification would be sent."""
    pairs = inhibited()
    assert not [pair for pair in pairs if pair[3] == CRITICAL and pair[1] != CRITICAL]
    both = [pair for pair in pairs if (*pair[2:], *pair[:2]) in pairs and pair[:2] != pair[2:]]
    assert both == []
