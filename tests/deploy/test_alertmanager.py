"""Who is told of an alert, and which of them keep others quiet: by amtool, and by the matchers as they are read."""

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
    """Whether labels match all of some matchers of the two kinds that are used here."""
    parsed = [re.fullmatch(r'(\w+)(=~|=)"(.*)"', matcher) for matcher in matchers]
    assert all(parsed), matchers
    return all(
        re.fullmatch(value if kind == "=~" else re.escape(value), labels.get(name, ""))
        for name, kind, value in (found.groups() for found in parsed if found)
    )


def inhibited() -> set[tuple[str, str, str, str]]:
    """Pairs of alert and severity: the first keeps the second quiet."""
    return {
        (source["alertname"], source["severity"], target["alertname"], target["severity"])
        for rule in CONFIGURATION["inhibit_rules"]
        for source, target in itertools.product(LABELS, LABELS)
        if matches(rule["source_matchers"], source) and matches(rule["target_matchers"], target)
        if "alertname" not in rule["equal"] or source["alertname"] == target["alertname"]
    }


def test_amtool_has_nothing_to_say_of_it() -> None:
    ran = amtool("check-config", str(FILE))
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("severity", "receiver"), [(PAGE, "on-call"), (TICKET, "tickets"), (INFO, "nobody"), ("critical", "tickets")]
)
def test_each_severity_goes_to_its_receiver(severity: str, receiver: str) -> None:
    """And what nobody thought of becomes a ticket, not nothing."""
    ran = amtool("config", "routes", "test", f"--config.file={FILE}", f"severity={severity}", "alertname=Any")
    assert ran.stdout.strip() == receiver, ran.stderr


def test_one_notification_tells_of_all_that_is_wrong_with_a_group() -> None:
    assert CONFIGURATION["route"]["group_by"] == ["cluster", "group"]


def test_every_alert_that_is_named_here_there_is() -> None:
    """A name that was changed in the rules alone would keep nothing quiet."""
    rules = CONFIGURATION["inhibit_rules"]
    named = [matcher for rule in rules for matcher in (*rule["source_matchers"], *rule["target_matchers"])]
    values = [value for matcher in named for value in re.findall(r'^alertname=~?"(.*)"$', matcher)]
    names = {name for value in values for name in value.split("|")} - {"Kafka.+"}
    assert names <= {labels["alertname"] for labels in LABELS}
    assert all({"cluster"} <= set(rule["equal"]) for rule in rules), "of one cluster never another's"


@pytest.mark.parametrize(
    ("source", "target", "why"),
    [
        ("RebalanceMonitorNotReady", "KafkaAssignmentSkewed", "what is shown is not the present"),
        ("RebalanceMonitorDown", "KafkaGroupLagging", "nobody looks"),
        ("KafkaRollingRestart", "KafkaRebalanceStorm", "a deployment is over by itself"),
        ("KafkaMemberFlapping", "KafkaRebalanceStorm", "that is why"),
        ("KafkaGroupSilent", "KafkaGroupStopped", "the same, in fewer words"),
    ],
)
def test_who_is_told_of_the_cause_is_not_told_of_what_follows(source: str, target: str, why: str) -> None:
    assert (source, target) in {(one[0], one[2]) for one in inhibited()}, why


def test_a_real_alertmanager_keeps_a_storm_quiet_that_a_flapping_member_explains(tmp_path: Path) -> None:
    """Of the same group of the same cluster alone: the storm of another is told."""
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
        reported = until("one to be quiet", lambda: len(found := running.ask("/api/v2/alerts")) == 3 and quiet(found))
    assert reported == [labels["storm"]]


def quiet(reported: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Which alerts notify nobody because of another. Alertmanager works that out moments after it hears of them."""
    return [alert["labels"] for alert in reported if alert["status"]["inhibitedBy"]]


def test_no_ticket_keeps_a_page_quiet_and_no_two_keep_each_other_quiet() -> None:
    """Nobody would be called. What does it with no notification of its own is a deployment at work, and that alone."""
    pairs = inhibited()
    assert not [pair for pair in pairs if (pair[1], pair[3]) == (TICKET, PAGE)]
    assert {pair[0] for pair in pairs if pair[1] == INFO} == {"KafkaRollingRestart"}
    both = [pair for pair in pairs if (*pair[2:], *pair[:2]) in pairs and pair[:2] != pair[2:]]
    assert both == []
