"""Test the way from an uneven assignment to the notification of the on-call engineer, with its links and commands.

Everything is real: broker, clients, monitor, Prometheus and Alertmanager, with the rules and the configuration of this
project. Only the waiting times are shorter, and the receiver's address belongs to the test.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from streaming.embedded import EmbeddedBroker
from tests.dashboards.rules import FILES, RUNBOOK
from tests.end_to_end.conftest import Demo
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.end_to_end.prometheus_process import NotificationReceiver, RealAlertmanager, RealPrometheus
from tests.end_to_end.runbook import commands_of_blocks, run_in_shell

pytestmark = pytest.mark.slow

GROUP = "demo-range"
ALERTMANAGER = Path(__file__).parents[2] / "deploy" / "compose" / "alertmanager.yaml"
NOTIFIED_SECONDS = 120.0


def rules_with_short_delays(folder: Path) -> list[Path]:
    """Write the rules with a delay of five seconds for each alert, which is enough for the first scrape."""
    folder.mkdir()
    for file in FILES:
        text = re.sub(r"^( +for: ).*$", r"\g<1>5s", file.read_text(), flags=re.MULTILINE)
        (folder / file.name).write_text(text)
    return sorted(folder.iterdir())


def configuration_with_receiver(address: str) -> dict[str, Any]:
    """Return Alertmanager's configuration with this receiver for the on-call engineer, and a short group wait."""
    configuration: dict[str, Any] = yaml.safe_load(ALERTMANAGER.read_text())
    configuration["route"]["group_wait"] = "1s"
    for receiver in configuration["receivers"]:
        if receiver["name"] == "on-call":
            receiver["webhook_configs"] = [{"url": address}]
    return configuration


@dataclass(frozen=True)
class Alerting:
    """A monitor of the demo, and the receiver of notifications about one of its groups."""

    broker: EmbeddedBroker
    monitor: MonitorProcess
    on_call: NotificationReceiver


@pytest.fixture(scope="module")
def alerting(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alerting]:
    """Start everything. Prometheus keeps only series of this group and series without a group."""
    folder = tmp_path_factory.mktemp("paging")
    with ExitStack() as stack:
        demo.monitor.wait_until_ready()
        on_call = stack.enter_context(closing(NotificationReceiver()))
        configuration = configuration_with_receiver(on_call.address)
        alertmanager = stack.enter_context(RealAlertmanager(folder / "alertmanager", configuration))
        prometheus = RealPrometheus(
            folder / "prometheus",
            [f"127.0.0.1:{demo.monitor.port}"],
            rule_files=rules_with_short_delays(folder / "rules"),
            alertmanager=alertmanager.address,
            only_group=GROUP,
        )
        stack.enter_context(prometheus)
        yield Alerting(demo.broker, demo.monitor, on_call)


@pytest.fixture(scope="module")
def alert(alerting: Alerting) -> dict[str, Any]:
    """Return the notified alert on the group's assignment."""
    firing = until("the alert", lambda: alerting.on_call.firing("KafkaAssignmentSkewed"), NOTIFIED_SECONDS)
    return firing[0]


def test_the_alert_names_group_member_amount_start_cause_and_remedy(alerting: Alerting, alert: dict[str, Any]):
    """Range gives the first of three members two of the four partitions of each of eight topics: 16 instead of 11."""
    assert alert["labels"] == {
        "alertname": "KafkaAssignmentSkewed",
        "cluster": "demo",
        "group": GROUP,
        "severity": "page",
    }
    assert alert["annotations"]["summary"] == f"{GROUP}: the busiest member holds 45% more partitions than necessary"
    description = re.fullmatch(
        r"Client (\S+) on /127\.0\.0\.1 holds 16 partitions, 5 more than the fairest possible maximum,"
        r" since (\S+ \S+) \+0000 UTC\. Cause: topic skew\. The same members hold the extra partition of several"
        r" topics\. What to do: change the group's strategy to (\S+)\. This strategy removes the topic skew\.",
        alert["annotations"]["description"],
    )
    assert description, alert["annotations"]["description"]
    busiest = labels_of_group(alerting, "rebalance_monitor_busiest_member")
    assert [labels["client_id"] for labels in busiest] == [description[1]]
    since = alerting.monitor.value("rebalance_monitor_assignment_timestamp_seconds", group=GROUP)
    assert since is not None
    assert description[2].startswith(datetime.fromtimestamp(since, timezone.utc).strftime("%Y-%m-%d %H:%M:%S"))
    skew = labels_of_group(alerting, "rebalance_monitor_topic_skew")
    assert [labels["remedy"] for labels in skew] == [description[3]]


def labels_of_group(alerting: Alerting, metric: str) -> list[dict[str, str]]:
    """Return the labels of the group's series of a metric."""
    return [labels for labels in map(dict, alerting.monitor.metrics()[metric]) if labels["group"] == GROUP]


def test_no_other_alert_is_notified(alerting: Alerting, alert: dict[str, Any]):
    """The group reads, commits and keeps up. Its only problem is the skew."""
    assert alert in alerting.on_call.firing("KafkaAssignmentSkewed")
    assert {one["labels"]["alertname"] for sent in alerting.on_call.notifications for one in sent["alerts"]} == {
        "KafkaAssignmentSkewed"
    }


def test_the_links_of_the_alert_lead_to_the_group_and_to_the_runbook(alert: dict[str, Any]):
    """Without external labels, `page_url` has the address at which Prometheus scrapes the monitor."""
    links = alert["annotations"]
    with urlopen(links["page_url"], timeout=30) as answer:  # noqa: S310 - http, to loopback
        assert GROUP in answer.read().decode()
    file, _, section = links["runbook_url"].partition("#")
    assert (Path(__file__).parents[2] / file).samefile(RUNBOOK)
    assert f"## {section}" in RUNBOOK.read_text().lower()
    assert links["dashboard_url"].endswith(f"/d/rebalance-monitor-group?var-cluster=demo&var-group={GROUP}")


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
