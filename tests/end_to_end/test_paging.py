"""From a group that shares its work badly to the words on somebody's pager, and the links and commands they lead to.

Everything is real: broker, clients, monitor, Prometheus and Alertmanager, with the rules and the configuration that are
delivered. Of these only the times are shorter, and the pager's address is the test's.
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
from tests.end_to_end.prometheus_process import OnCall, RealAlertmanager, RealPrometheus
from tests.end_to_end.runbook import commands_of_blocks, typed

pytestmark = pytest.mark.slow

GROUP = "demo-range"
ALERTMANAGER = Path(__file__).parents[2] / "deploy" / "compose" / "alertmanager.yaml"
PAGED_SECONDS = 120.0


def impatient(folder: Path) -> list[Path]:
    """The rules, but no alert is waited for longer than some seconds: enough for the first scrape."""
    folder.mkdir()
    for file in FILES:
        text = re.sub(r"^( +for: ).*$", r"\g<1>5s", file.read_text(), flags=re.MULTILINE)
        (folder / file.name).write_text(text)
    return sorted(folder.iterdir())


def alertmanager_that_pages(address: str) -> dict[str, Any]:
    """The configuration, but pages go to this address, and at once."""
    configuration: dict[str, Any] = yaml.safe_load(ALERTMANAGER.read_text())
    configuration["route"]["group_wait"] = "1s"
    for receiver in configuration["receivers"]:
        if receiver["name"] == "on-call":
            receiver["webhook_configs"] = [{"url": address}]
    return configuration


@dataclass(frozen=True)
class Watch:
    """Somebody is on call for one of the demo's groups."""

    broker: EmbeddedBroker
    monitor: MonitorProcess
    on_call: OnCall


@pytest.fixture(scope="module")
def watch(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    """Prometheus keeps what is of that group or of none."""
    folder = tmp_path_factory.mktemp("paging")
    with ExitStack() as stack:
        demo.monitor.wait_until_ready()
        on_call = stack.enter_context(closing(OnCall()))
        configuration = alertmanager_that_pages(on_call.address)
        alertmanager = stack.enter_context(RealAlertmanager(folder / "alertmanager", configuration))
        prometheus = RealPrometheus(
            folder / "prometheus",
            [f"127.0.0.1:{demo.monitor.port}"],
            rule_files=impatient(folder / "rules"),
            alertmanager=alertmanager.address,
            only_group=GROUP,
        )
        stack.enter_context(prometheus)
        yield Watch(demo.broker, demo.monitor, on_call)


@pytest.fixture(scope="module")
def page(watch: Watch) -> dict[str, Any]:
    """Return the page on the group's assignment."""
    found = until("the page", lambda: watch.on_call.firing("KafkaAssignmentSkewed"), PAGED_SECONDS)
    return found[0]


def test_the_page_says_which_group_who_how_much_since_when_why_and_what_to_do(watch: Watch, page: dict[str, Any]):
    """Range gives the first of three members two of four partitions of each of eight topics: 16, where 11 would do."""
    assert page["labels"] == {
        "alertname": "KafkaAssignmentSkewed",
        "cluster": "demo",
        "group": GROUP,
        "severity": "page",
    }
    assert page["annotations"]["summary"] == f"{GROUP}: the busiest member holds 45% more partitions than necessary"
    said = re.fullmatch(
        r"Client (\S+) on /127\.0\.0\.1 holds 16 partitions, 5 more than the fairest possible maximum,"
        r" since (\S+ \S+) \+0000 UTC\. Cause: topic skew\. The same members hold the extra partition of several"
        r" topics\. What to do: change the group's strategy to (\S+)\. This strategy removes the topic skew\.",
        page["annotations"]["description"],
    )
    assert said, page["annotations"]["description"]
    reported = of_group(watch, "rebalance_monitor_busiest_member")
    assert [labels["client_id"] for labels in reported] == [said[1]]
    since = watch.monitor.value("rebalance_monitor_assignment_timestamp_seconds", group=GROUP)
    assert since is not None
    assert said[2].startswith(datetime.fromtimestamp(since, timezone.utc).strftime("%Y-%m-%d %H:%M:%S"))
    reported = of_group(watch, "rebalance_monitor_topic_skew")
    assert [labels["remedy"] for labels in reported] == [said[3]]


def of_group(watch: Watch, metric: str) -> list[dict[str, str]]:
    """Labels of a metric's series of the group."""
    return [labels for labels in map(dict, watch.monitor.metrics()[metric]) if labels["group"] == GROUP]


def test_nobody_is_paged_for_anything_else(watch: Watch, page: dict[str, Any]):
    """The group reads, commits and keeps up: one page for all that is wrong, and that is the skew."""
    assert page in watch.on_call.firing("KafkaAssignmentSkewed")
    assert {one["labels"]["alertname"] for sent in watch.on_call.pages for one in sent["alerts"]} == {
        "KafkaAssignmentSkewed"
    }


def test_the_links_of_the_page_lead_to_the_group_and_to_the_runbook(page: dict[str, Any]):
    """Without external labels the page's address is where Prometheus scrapes the monitor."""
    links = page["annotations"]
    with urlopen(links["page_url"], timeout=30) as answer:  # noqa: S310 - http, to loopback
        assert GROUP in answer.read().decode()
    file, _, section = links["runbook_url"].partition("#")
    assert (Path(__file__).parents[2] / file).samefile(RUNBOOK)
    assert f"## {section}" in RUNBOOK.read_text().lower()
    assert links["dashboard_url"].endswith(f"/d/rebalance-monitor-group?var-cluster=demo&var-group={GROUP}")


def commands() -> list[str]:
    """Every command of the runbook that asks the monitor, once."""
    ours = re.compile(r"rebalance-monitor|(group|overview|metrics) \||ready|python ")
    return [line for line in commands_of_blocks() if ours.match(line)]


@pytest.mark.parametrize("command", commands())
def test_what_the_runbook_has_somebody_type_works(watch: Watch, page: dict[str, Any], command: str):
    """At 3 a.m. nobody corrects a command. Without jq its part is left out."""
    assert page["labels"]["group"] == GROUP
    if shutil.which("jq") is None:
        command = command.partition(" | jq ")[0]
    variables = {
        "BROKERS": watch.broker.bootstrap_servers,
        "MONITOR": f"http://127.0.0.1:{watch.monitor.port}",
        "CLUSTER": "demo",
        "GROUP": GROUP,
        "TABLES": str(watch.monitor.folder / "tables"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    ran = typed(command, variables, watch.monitor._environment())
    answered = ran.returncode == 0 or ("grep" in command and ran.returncode == 1 and not ran.stderr)
    assert answered, f"{ran.returncode}\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"
