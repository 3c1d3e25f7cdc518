"""Test the way from real groups to the notifications of their team, with links and commands.

The group `demo-range` has an uneven assignment and no lag: a warning. The group `demo-slow` falls behind: critical.

Everything is real: broker, clients, monitor, Prometheus and Alertmanager, with the rules and the configuration of this
project. There are two exceptions: the waiting times are shorter, and the test receives the notifications.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from streaming.doctor.alerting import TEST_ALERT
from streaming.embedded import EmbeddedBroker
from tests.dashboards.rules import RUNBOOK
from tests.end_to_end.conftest import Demo
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.end_to_end.prometheus_process import (
    NotificationReceiver,
    RealAlertmanager,
    RealPrometheus,
    rules_with_short_delays,
)
from tests.end_to_end.runbook import commands_of_blocks, run_in_shell

pytestmark = pytest.mark.slow

GROUP = "demo-range"
SLOW_GROUP = "demo-slow"
ALERTMANAGER = Path(__file__).parents[2] / "deploy" / "compose" / "alertmanager.yaml"
NOTIFIED_SECONDS = 120.0


def configuration_with_webhook(address: str) -> dict[str, Any]:
    """Return Alertmanager's configuration with this webhook for each receiver except nobody, and a short group wait."""
    configuration: dict[str, Any] = yaml.safe_load(ALERTMANAGER.read_text())
    configuration["route"]["group_wait"] = "1s"
    for receiver in configuration["receivers"]:
        if receiver["name"] != "nobody":
            receiver["webhook_configs"] = [{"url": address}]
    return configuration


@dataclass(frozen=True)
class Alerting:
    """A monitor of the demo, and the webhook that gets all notifications about two of its groups."""

    broker: EmbeddedBroker
    monitor: MonitorProcess
    webhook: NotificationReceiver
    prometheus: RealPrometheus


@pytest.fixture(scope="module")
def alerting(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alerting]:
    """Start everything. Prometheus keeps only series of the two groups and series without a group."""
    folder = tmp_path_factory.mktemp("paging")
    with ExitStack() as stack:
        demo.monitor.wait_until_ready()
        webhook = stack.enter_context(closing(NotificationReceiver()))
        configuration = configuration_with_webhook(webhook.address)
        alertmanager = stack.enter_context(RealAlertmanager(folder / "alertmanager", configuration))
        prometheus = RealPrometheus(
            folder / "prometheus",
            [f"127.0.0.1:{demo.monitor.port}"],
            rule_files=rules_with_short_delays(folder / "rules"),
            alertmanager=alertmanager.address,
            only_groups=[GROUP, SLOW_GROUP],
        )
        stack.enter_context(prometheus)
        yield Alerting(demo.broker, demo.monitor, webhook, prometheus)


@pytest.fixture(scope="module")
def alert(alerting: Alerting) -> dict[str, Any]:
    """Return the notified alert on the group's assignment. It is a warning, so it goes to the team's tickets."""
    return until(
        "the warning", lambda: alerting.webhook.firing("KafkaAssignmentSkewed", "payments-tickets"), NOTIFIED_SECONDS
    )[0]


@pytest.fixture(scope="module")
def critical_alert(alerting: Alerting) -> dict[str, Any]:
    """Return the notified alert on the group that falls behind. It is critical, so it wakes the team's engineer."""
    return until(
        "the critical alert", lambda: alerting.webhook.firing("KafkaGroupLagging", "payments-on-call"), NOTIFIED_SECONDS
    )[0]


def test_a_warning_names_group_member_amount_start_cause_and_remedy(alerting: Alerting, alert: dict[str, Any]):
    """Range gives the first of three members two of the four partitions of each of eight topics: 16 instead of 11."""
    (info,) = labels_of_group(alerting, "rebalance_monitor_group_info")
    assert alert["labels"] == {
        "alertname": "KafkaAssignmentSkewed",
        "cluster": "demo",
        "coordinator": info["coordinator"],
        "group": GROUP,
        "severity": "warning",
        "team": "payments",
    }
    summary = f"{GROUP} on demo: the busiest member holds 5 partitions more than necessary"
    assert alert["annotations"]["summary"] == summary
    description = re.match(
        r"Client (\S+) on /127\.0\.0\.1 holds 16 partitions\."
        r" In the fairest assignment, the busiest member would hold 5 fewer than now\."
        r" The assignment has been in use since (\S+ \S+) \+0000 UTC\.",
        alert["annotations"]["description"],
    )
    assert description, alert["annotations"]["description"]
    busiest = labels_of_group(alerting, "rebalance_monitor_busiest_member")
    assert [labels["client_id"] for labels in busiest] == [description[1]]
    since = alerting.monitor.value("rebalance_monitor_assignment_timestamp_seconds", group=GROUP)
    assert since is not None
    assert description[2].startswith(datetime.fromtimestamp(since, timezone.utc).strftime("%Y-%m-%d %H:%M:%S"))
    (skew,) = labels_of_group(alerting, "rebalance_monitor_topic_skew")
    assert alert["annotations"]["description"].endswith(
        " Cause of the uneven assignment: topic skew. In several topics, the same members hold one partition more than "
        f"the other members. What to do: change the group's strategy to {skew['remedy']}. This strategy removes the "
        "topic skew."
    )


def test_a_critical_alert_reaches_the_team_of_the_group_and_follows_its_limit(critical_alert: dict[str, Any]):
    """The entry of the group has a limit of 10 s. With the default of one hour, nothing would fire."""
    labels, texts = critical_alert["labels"], critical_alert["annotations"]
    assert (labels["group"], labels["severity"], labels["team"]) == (SLOW_GROUP, "critical", "payments")
    assert "max_severity" not in labels
    assert re.fullmatch(rf"{SLOW_GROUP} on demo: the group is .*s behind", texts["summary"])
    assert " records wait." in texts["description"]
    assert f"?id={SLOW_GROUP}&cluster=demo" in texts["page_url"]


def labels_of_group(alerting: Alerting, metric: str) -> list[dict[str, str]]:
    """Return the labels of the group's series of a metric."""
    return [labels for labels in map(dict, alerting.monitor.metrics()[metric]) if labels["group"] == GROUP]


def test_no_other_alert_is_notified(alerting: Alerting, alert: dict[str, Any], critical_alert: dict[str, Any]):
    """The first group keeps up, so its skew wakes nobody. The second group reads and commits, but too slowly."""
    assert (alert["labels"]["group"], critical_alert["labels"]["group"]) == (GROUP, SLOW_GROUP)
    notified = {
        (sent["receiver"], one["labels"]["alertname"], one["labels"]["severity"])
        for sent in alerting.webhook.notifications
        for one in sent["alerts"]
    }
    early_warning = ("payments-tickets", "KafkaGroupLagging", "warning")
    assert notified - {early_warning} == {
        ("payments-tickets", "KafkaAssignmentSkewed", "warning"),
        ("payments-on-call", "KafkaGroupLagging", "critical"),
    }


def test_the_links_of_the_alert_lead_to_the_group_and_to_the_runbook(alert: dict[str, Any]):
    """Without settings in `[links]`, `page_url` has the address at which Prometheus scrapes the monitor."""
    links = alert["annotations"]
    with urlopen(links["page_url"], timeout=30) as answer:  # noqa: S310 - http, to loopback
        assert GROUP in answer.read().decode()
    file, _, section = links["runbook_url"].partition("#")
    assert (Path(__file__).parents[2] / file).samefile(RUNBOOK)
    assert f"## {section}" in RUNBOOK.read_text().lower()
    assert links["dashboard_url"] == "", "the address of Grafana is not set"


def commands() -> list[str]:
    """Return every command of the runbook that queries the monitor, once."""
    monitor_command = re.compile(r"rebalance-monitor|(group|overview|metrics) \||ready|python ")
    return [line for line in commands_of_blocks() if monitor_command.match(line)]


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_runbook_works(alerting: Alerting, alert: dict[str, Any], command: str):
    """During an incident there is no time to correct a command. If jq is not installed, the test omits it."""
    assert alert["labels"]["group"] == GROUP
    if shutil.which("jq") is None:
        command = command.partition(" | jq ")[0]
    variables = {
        "BROKERS": alerting.broker.bootstrap_servers,
        "MONITOR": f"http://127.0.0.1:{alerting.monitor.port}",
        "CLUSTER": "demo",
        "GROUP": GROUP,
        "TABLES": str(alerting.monitor.folder / "tables"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    completed = run_in_shell(command, variables, alerting.monitor._environment())
    found_nothing = "grep" in command and completed.returncode == 1 and not completed.stderr
    output = f"{completed.returncode}\n{completed.stdout[-2000:]}\n{completed.stderr[-2000:]}"
    assert completed.returncode == 0 or found_nothing, output


def test_doctor_finds_scrape_rules_and_alertmanager_and_its_test_alerts_arrive(alerting: Alerting):
    """Prometheus names the Alertmanager. Alertmanager names the receivers, and the alerts reach exactly these."""
    options = ("--prometheus", alerting.prometheus.address, "--send-test-alert", "--alert-label", "team=payments")
    port = {"METRICS__PORT": str(alerting.monitor.port)}  # users have a fixed port
    with_port = replace(alerting.monitor, environment={**alerting.monitor.environment, **port})
    lines = with_port.run_command("doctor", "--json", *options).splitlines()
    points = {point["point"]: point for point in map(json.loads, lines)}
    assert [point for point in points.values() if point["status"] == "failed"] == []
    for point, text in {
        "Prometheus scrapes the monitor of 'demo'": f"127.0.0.1:{alerting.monitor.port} (job rebalance-monitor)",
        "alert rules": "7 groups, all healthy",
        "Prometheus sends alerts": "to http://127.0.0.1:",
        "Alertmanager": "version ",
        "test alert critical": "sent to payments-on-call;",
        "test alert warning": "sent to payments-tickets;",
        "test alert info": "dropped by the receiver nobody,",
        "clocks, broker 1": "differs from the clock of this machine by at most ",
        "checkpoint": "belongs to the cluster 'demo'",
    }.items():
        assert (points[point]["status"], text in points[point]["text"]) == ("ok", True), points[point]
    for receiver in ("payments-on-call", "payments-tickets"):
        until(f"the test alert at {receiver}", partial(alerting.webhook.firing, TEST_ALERT, receiver), NOTIFIED_SECONDS)
