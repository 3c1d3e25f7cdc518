"""Test the runbook: it has a section for each alert, and its commands work on secured clusters and in Kubernetes.

`tests/end_to_end/test_runbook_commands.py` runs the commands on a real broker.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.config.groups import GroupEntry
from streaming.evaluation.limits import DEFAULT_LIMITS
from streaming.signals import SIGNALS, exported_names
from tests.dashboards.rules import ALERTS, ROOT, RUNBOOK
from tests.end_to_end.runbook import (
    blocks,
    commands_of,
    commands_with_kafkas_tools,
    introduction,
    preparation,
    run_in_shell,
    sections,
)

CAN_BE_CRITICAL = (
    "KafkaRecordsLost",
    "KafkaRecordsAboutToBeLost",
    "KafkaGroupWithoutMembers",
    "KafkaGroupSilent",
    "KafkaGroupStopped",
    "KafkaStaticMemberSilent",
    "KafkaGroupLagging",
    "KafkaRebalanceStuck",
    "KafkaRebalanceStorm",
    "KafkaPartitionsUnowned",
    "KafkaAssignmentSkewed",
    "KafkaCoordinatorTrouble",
    "KafkaCoordinatorMissing",
    "KafkaOffsetsBlockedByTransaction",
    "RebalanceMonitorDown",
    "RebalanceMonitorStale",
)
NEVER_CRITICAL = (
    "KafkaCommitGapLong",
    "KafkaProtocolFault",
    "KafkaAssignmentDrift",
    "KafkaGroupRewound",
    "KafkaGroupVanished",
    "KafkaGroupUnknown",
    "KafkaOffsetsExpiring",
    "RebalanceMonitorRestarts",
    "RebalanceMonitorTablesFailing",
    "RebalanceMonitorQuarantineGrows",
    "RebalanceMonitorIncomplete",
    "RebalanceMonitorClocksDiffer",
    "KafkaRollingRestart",
)
PARTS = ["Impact", "First mitigation", "Diagnosis", "Fix", "Escalation"]
MAXIMUM_LINES = 35
FAKE_PROGRAM = '#!/bin/sh\nprintf "%s" "${0##*/}"; printf " <%s>" "$@"; echo\n'
"""Prints its name and each of its arguments in <>."""

EACH_SECTION = pytest.mark.parametrize("alert", [*CAN_BE_CRITICAL, *NEVER_CRITICAL])


def fake_programs(folder: Path, *names: str) -> str:
    """Return a PATH on which these programs only print their arguments."""
    for name in names:
        (folder / name).write_text(FAKE_PROGRAM)
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_the_sections_are_the_alerts_with_those_that_can_be_critical_first() -> None:
    """The runbook is also a dashboard in this order. At 3 a.m., the engineer must not search."""
    assert list(sections()) == [*CAN_BE_CRITICAL, *NEVER_CRITICAL]


def test_each_alert_of_the_rules_has_a_section_and_its_place_fits_its_severity() -> None:
    severities: dict[str, set[str]] = {}
    for rule in ALERTS:
        severities.setdefault(rule["alert"], set()).add(rule["labels"]["severity"])
    if "KafkaCoordinatorTrouble" not in severities:
        pytest.skip("the rules still have the old alerts")
    assert severities.keys() == sections().keys()
    assert {name for name, levels in severities.items() if "critical" in levels} == set(CAN_BE_CRITICAL)


@EACH_SECTION
def test_a_section_has_all_parts_in_order_and_is_short(alert: str) -> None:
    section = sections()[alert]
    leads = re.findall(r"^\*\*([^*]+)\*\*", section, re.MULTILINE)
    assert leads in (PARTS, [*PARTS, "False alarm"])
    assert len(section.strip().splitlines()) <= MAXIMUM_LINES
    diagnosis = section.split("**Diagnosis**")[1].split("**Fix**")[0]
    assert len(blocks(diagnosis)) == 1


@pytest.mark.parametrize("alert", CAN_BE_CRITICAL)
def test_a_critical_alert_has_a_first_mitigation_and_somebody_to_call(alert: str) -> None:
    """An alert that wakes an engineer must have an action."""
    section = sections()[alert]
    assert "**First mitigation** None" not in section
    assert re.search(r"\b(team|operators)\b", section.split("**Escalation**")[1])


@pytest.mark.parametrize("command", commands_with_kafkas_tools())
def test_a_kafka_tool_gets_the_brokers_and_the_settings_of_a_secured_cluster(command: str) -> None:
    """Without `--command-config`, no tool works on a cluster with TLS or SASL."""
    assert re.match(r'kafka-[a-z-]+\.sh --bootstrap-server "\$BROKERS" "\$\{CONFIG\[@\]\}" ', command)


@EACH_SECTION
def test_retention_is_read_before_it_changes_and_is_set_back_later(alert: str) -> None:
    """The runbook once set two weeks at once. On a topic with a longer retention, this deletes records."""
    commands = commands_of(sections()[alert])
    changes = [at for at, command in enumerate(commands) if "kafka-configs.sh" in command and "--alter" in command]
    if not changes:
        return
    reads = [at for at, command in enumerate(commands) if "--describe --all --entity-type topics" in command]
    assert reads, "the present value is read"
    assert reads[0] < changes[0], "the present value is read first"
    assert "$RETENTION_MS" in commands[changes[0]], "the runbook does not choose the new value"
    assert "--delete-config retention.ms" in commands[changes[-1]], "the old value is set again"


def test_no_command_changes_a_retention_elsewhere() -> None:
    """The test above must find every change."""
    changing = {alert for alert, section in sections().items() if "--alter" in section or "--add-config" in section}
    assert changing == {"KafkaRecordsLost", "KafkaRecordsAboutToBeLost"}
    assert "--alter" not in "".join(introduction().values())


@pytest.mark.parametrize(
    "line",
    [
        "  retention.ms=604800000 sensitive=false synonyms={DEFAULT_CONFIG:log.retention.hours=168}",
        "  retention.bytes=-1 sensitive=false synonyms={DEFAULT_CONFIG:log.retention.bytes=-1}",
    ],
)
def test_the_command_that_reads_the_retention_shows_it_and_not_a_similar_setting(line: str) -> None:
    """`delete.retention.ms` is the retention of tombstones."""
    similar = "  delete.retention.ms=86400000 sensitive=false\n  local.retention.ms=-2 sensitive=false\n"
    (command,) = (one for one in commands_with_kafkas_tools() if "--describe --all --entity-type topics" in one)
    _, _, filtering = command.partition(" | ")
    shown = subprocess.run(
        ["bash", "-c", filtering], input=f"{similar}{line}\n", capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"{line}\n"


def test_each_request_with_curl_has_the_credentials_and_names_the_cluster() -> None:
    """The port can have TLS and a password. With several clusters, a request without a cluster gets the wrong group."""
    lines = [line for line in RUNBOOK.read_text().splitlines() if re.search(r"\bcurl\b|CURL\[", line)]
    requests = [line for line in lines if "$MONITOR" in line]
    assert len(requests) == 4
    assert all('"${CURL[@]}"' in line and "cluster=" in line for line in requests)
    defining = [line for line in lines if line not in requests and "`curl`" not in line]
    assert all(re.search(r"\bCURL=\(curl -sS\b", line) for line in defining), defining


def test_requests_show_the_answer_of_a_monitor_that_catches_up() -> None:
    """Then the API answers 503 with the phase and the number of unread records. `curl -f` would hide this answer."""
    requests = [line for line in preparation().splitlines() if "/api/v1/" in line or "/-/ready" in line]
    assert requests
    assert not [line for line in requests if re.search(r" -\w*f", line)]


@EACH_SECTION
def test_each_command_of_the_monitor_names_the_cluster(alert: str) -> None:
    """With several clusters, a command without a name fails or uses the wrong cluster."""
    own = [command for command in commands_of(sections()[alert]) if command.startswith("rebalance-monitor ")]
    assert all('--cluster "$CLUSTER"' in command or "config check" in command for command in own), own


def test_each_section_that_restarts_the_leader_shows_where_its_name_is() -> None:
    """The runbook once named the leader although no page, API or command showed it."""
    texts = {alert: " ".join(section.split()) for alert, section in sections().items()}
    restarting = {
        alert for alert, text in texts.items() if re.search(r"[Rr]estart the (leader|member that leads)", text)
    }
    assert restarting == {"KafkaPartitionsUnowned", "KafkaProtocolFault", "KafkaAssignmentDrift"}
    command = 'rebalance-monitor groups --cluster "$CLUSTER" --verbose --monitor "$MONITOR"'
    for alert in restarting:
        assert (
            f"To find this member, see the group's page, the API field `leader` or the output of `{command}`."
            in texts[alert]
        ), alert
        assert "jq '.leader" in texts[alert], alert


def test_metrics_in_commands_exist() -> None:
    """A misspelled name finds nothing, and the engineer believes that all is well."""
    names = {*(name for signal in SIGNALS.values() for name in exported_names(signal)), *SIGNALS}
    labels = {label for signal in SIGNALS.values() for label in signal.labels}
    known = " ".join([*names, *labels])
    searched = {
        word
        for section in sections().values()
        for command in commands_of(section)
        if command.startswith("metrics ")
        for word in re.findall(r"[a-z_]{5,}", command.removeprefix("metrics "))
    }
    assert len(searched) > 20
    assert sorted(word for word in searched if word not in known) == []


def test_fields_in_commands_are_fields_of_the_api() -> None:
    """Jq shows a misspelled field as null, which looks like an unknown value."""
    documented = set(re.findall(r"`(\w+)`", (ROOT / "streaming" / "page" / "API.md").read_text()))
    programs = [jq for section in sections().values() for jq in re.findall(r"\| jq '([^']+)'", section)]
    used = {field for program in programs for field in re.findall(r"\.([a-z_]+)", program)}
    assert len(used) > 20
    assert used - documented <= {"leader"}


def test_a_shell_understands_every_block() -> None:
    """ShellCheck finds unset variables and missing quotes. A command between backticks could also be pasted."""
    parts = [preparation(heading) for heading in ("Variables", "Secured clusters", "Kubernetes")]
    commands = dict.fromkeys(command for section in sections().values() for command in commands_of(section))
    script = "\n".join(["#!/bin/bash", *parts, "export RETENTION_MS=1 OFFSET=1", *commands])
    completed = subprocess.run(
        [Path(sys.executable).parent / "shellcheck", "--exclude=SC2119,SC2120,SC2218,SC2317,SC2329", "-"],
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout


def test_on_a_secured_cluster_tools_and_requests_get_their_credentials(tmp_path: Path) -> None:
    path = fake_programs(tmp_path, "kafka-topics.sh", "curl")
    block = preparation("Secured clusters")
    tools = 'kafka-topics.sh --bootstrap-server "$BROKERS" "${CONFIG[@]}" --list'
    completed = run_in_shell(f"{tools}; ready", {"CLUSTER": "eu west"}, {"PATH": path}, block)
    request = "<http://localhost:9560/-/ready> <--data-urlencode> <cluster=eu west>"
    assert completed.stdout.splitlines() == [
        "kafka-topics.sh <--bootstrap-server> <kafka-1:9092> <--command-config> <client.properties> <--list>",
        f"curl <-sS> <--netrc> <--cacert> <ca.pem> <-G> {request}",
    ]


def test_in_kubernetes_every_tool_of_the_runbook_runs_in_a_pod(tmp_path: Path) -> None:
    """On-call engineers have neither Kafka's tools nor the tables on their machines."""
    path = fake_programs(tmp_path, "kubectl")
    block = preparation("Kubernetes").replace(" &", "")
    for command in commands_with_kafkas_tools():
        tool_name, *_ = alone = shlex.split(command.partition(" | ")[0].partition(" || ")[0])
        variables = {"RETENTION_MS": "1", "OFFSET": "1", "GROUP": "it is; mine"}
        completed = run_in_shell(command.partition(" | ")[0], variables, {"PATH": path}, block)
        assert completed.returncode == 0, completed.stderr
        forwarding, called = completed.stdout.splitlines()
        assert "<port-forward>" in forwarding
        in_broker = f"kubectl <exec> <-n> <kafka> <kafka-0> <--> </opt/kafka/bin/{tool_name}> <--bootstrap-server>"
        assert called.startswith(in_broker), called
        assert called.count("<") >= len(alone) - 1, called
        assert ("<it is; mine>" in called) == ("$GROUP" in command), called


@pytest.mark.parametrize(
    ("command", "in_pod"),
    [
        (
            'rebalance-monitor history "$GROUP"',
            "<rebalance-monitor> <history> <payments> <--config> </etc/rebalance-monitor/monitor.toml>",
        ),
        ('python -c "print(1)"', "<python> <-c> <print(1)>"),
    ],
)
def test_in_kubernetes_the_commands_of_the_monitor_run_in_its_pod(tmp_path: Path, command: str, in_pod: str) -> None:
    """The tables are on a volume of the pod, and its settings are in a file."""
    block = preparation("Kubernetes").replace(" &", "")
    completed = run_in_shell(command, {}, {"PATH": fake_programs(tmp_path, "kubectl")}, block)
    _, called = completed.stdout.splitlines()
    assert called == f"kubectl <exec> <-n> <rebalance-monitor> <deploy/rebalance-monitor> <--> {in_pod}"


def test_the_introduction_explains_each_setting_of_a_group_with_its_default() -> None:
    """The defaults are written out, because an engineer reads them without the monitor at hand."""
    text = " ".join(introduction()["Severities, limits and owners"].split())
    assert [name for name in GroupEntry.model_fields if f"`{name}" not in text and name != "match"] == []
    assert f"default {DEFAULT_LIMITS.max_lag_seconds / 60:g} minutes" in text
    assert f"`critical_lag_seconds` (default {DEFAULT_LIMITS.critical_lag_seconds / 3600:g} hour)" in text
    assert f"`max_commit_gap_seconds` (default {DEFAULT_LIMITS.max_commit_gap_seconds / 60:g} minutes)" in text
    assert "config check --group" in text
