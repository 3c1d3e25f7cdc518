"""Test the routes and the inhibition rules of Alertmanager's configuration."""

from __future__ import annotations

import itertools
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.doctor.ask_alerting import AlertingCheck
from streaming.doctor.finding import FAILED, OK
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


KUBE_PROMETHEUS_STACK = [
    {"source_matchers": ["severity = critical"], "target_matchers": ["severity =~ warning|info"]},
    {"source_matchers": ["severity = warning"], "target_matchers": ["severity = info"]},
]
"""The two inhibition rules for all alerts in the chart's defaults. Both have `equal: [namespace, alertname]`."""


def stack(equal: Sequence[str]) -> dict[str, Any]:
    """Return a configuration with these two rules, and with one receiver for all alerts."""
    rules = [{**rule, "equal": list(equal)} for rule in KUBE_PROMETHEUS_STACK]
    return {"route": {"receiver": "all"}, "receivers": [{"name": "all"}], "inhibit_rules": rules}


def rules_of_the_page() -> list[dict[str, Any]]:
    """Return the inhibition rules that the page for Kubernetes has for kube-prometheus-stack."""
    page = (FILE.parents[1] / "KUBERNETES.md").read_text()
    (values,) = [text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "inhibit_rules" in text]
    rules: list[dict[str, Any]] = yaml.safe_load(values)["alertmanager"]["config"]["inhibit_rules"]
    return rules


def lagging(group: str, severity: str) -> dict[str, str]:
    """Return the labels of an alert, as the chart's PrometheusRule creates them."""
    labels = {"alertname": "KafkaGroupLagging", "cluster": "prod", "namespace": "rebalance-monitor"}
    return {**labels, "group": group, "severity": severity}


def statuses_of_test_alerts(alertmanager: RealAlertmanager) -> list[str]:
    """Send the test alerts of step 6, and return the statuses that `doctor` prints."""
    labels = {"namespace": "rebalance-monitor"}
    sent = AlertingCheck("", alertmanager.address).send_test_alerts(
        "prod", labels, datetime.now(timezone.utc), time.sleep
    )
    return [finding.status for finding in sent]


def test_doctor_finds_the_rules_of_kube_prometheus_stack_which_hide_the_warnings_of_other_groups(tmp_path: Path):
    """By default, one critical alert of any group suppresses the warnings with the same name of all groups."""
    with RealAlertmanager(tmp_path / "alertmanager", stack(["namespace", "alertname"])) as running:
        assert statuses_of_test_alerts(running) == [OK, FAILED, FAILED]


def test_with_the_rules_of_the_page_a_critical_alert_hides_only_the_warning_of_its_own_group(tmp_path: Path):
    """The page replaces the two rules of kube-prometheus-stack. All test alerts of step 6 then reach a receiver."""
    hidden = lagging("payments", WARNING)
    sent = [lagging("payments", CRITICAL), hidden, lagging("orders", WARNING)]
    configuration = {**stack([]), "inhibit_rules": rules_of_the_page()}
    with RealAlertmanager(tmp_path / "alertmanager", configuration) as running:
        running.send([{"labels": labels} for labels in sent])
        inhibited_labels = until(
            "one inhibited alert",
            lambda: len(alerts := running.ask("/api/v2/alerts")) == 3 and labels_of_inhibited(alerts),
        )
        assert inhibited_labels == [hidden]
        assert statuses_of_test_alerts(running) == [OK, OK, OK]


def test_the_page_replaces_only_the_labels_that_must_be_equal():
    """The rules of kube-prometheus-stack also apply to its own alerts. The labels are those of this project's rule."""
    (own,) = [rule["equal"] for rule in CONFIGURATION["inhibit_rules"] if "alertname" in rule["equal"]]
    first, second, info, inhibitor = rules_of_the_page()
    assert [first, second] == [{**rule, "equal": ["namespace", *own]} for rule in KUBE_PROMETHEUS_STACK]
    assert info == {
        "source_matchers": ["alertname = InfoInhibitor"],
        "target_matchers": ["severity = info"],
        "equal": ["namespace"],
    }
    assert inhibitor == {"target_matchers": ["alertname = InfoInhibitor"]}
