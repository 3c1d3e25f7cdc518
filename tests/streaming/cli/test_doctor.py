"""Tests of `rebalance-monitor doctor`: exit codes, output, and what it never prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import streaming.doctor.checkup
from streaming.cli import main
from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.config.links import LinkSettings
from streaming.doctor.finding import Finding, failed, not_checked, note, ok

SECRET = "tall-hedge"  # noqa: S105 - of this test


@pytest.fixture(autouse=True)
def settings_of_the_test_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in {
        "PROTOCOL": "SASL_PLAINTEXT",
        "MECHANISM": "PLAIN",
        "USERNAME": "m",
        "PASSWORD": SECRET,
    }.items():
        monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}KAFKA__SECURITY__{name}", value)
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}KAFKA__CLUSTER", "orders")
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}LINKS__PROMETHEUS_URL", "http://prometheus:9090")


def run(monkeypatch: pytest.MonkeyPatch, found: list[Finding], *options: str) -> tuple[Result, list[Any]]:
    """Run the command with these findings. Return the result and the arguments of the checks."""
    arguments: list[Any] = []

    def checks(*given: Any) -> Iterator[Finding]:  # noqa: ANN401 - the arguments of the checks
        arguments.extend(given)
        yield from found

    monkeypatch.setattr(streaming.doctor.checkup, "all_findings", checks)
    return CliRunner().invoke(main, ["doctor", *options]), arguments


GOOD, NOTED = ok("java", "version 17"), note("disk", "8 % free", "free space")
BAD, OPEN = failed("brokers", "no broker answered", "check the address"), not_checked("clocks", "no broker answered")


@pytest.mark.parametrize(
    ("found", "code", "why"),
    [
        ([GOOD, NOTED], 0, "a note does not prevent a start"),
        ([GOOD, OPEN], 0, "without the address of Prometheus, an automatic check must still pass"),
        ([GOOD, BAD, NOTED], 1, "one failed point"),
    ],
)
def test_the_exit_code_is_one_if_a_point_failed(
    found: list[Finding], code: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, found)[0].exit_code == code, why


def test_each_point_is_one_line_with_its_remedy_below(monkeypatch: pytest.MonkeyPatch) -> None:
    several = note("permissions in Strimzi", "missing", "spec:\n  acls: []")
    assert run(monkeypatch, [GOOD, BAD, OPEN, several])[0].stdout.splitlines() == [
        "ok           java: version 17",
        "failed       brokers: no broker answered",
        "             -> check the address",
        "not checked  clocks: no broker answered",
        "note         permissions in Strimzi: missing",
        "             -> spec:",
        "                  acls: []",
    ]


def test_json_has_one_object_for_each_point(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run(monkeypatch, [BAD, GOOD], "--json")[0].stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"point": "brokers", "status": "failed", "text": "no broker answered", "remedy": "check the address"},
        {"point": "java", "status": "ok", "text": "version 17", "remedy": None},
    ]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_no_secret_and_no_terminal_command_is_printed(
    options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of a library can contain the password. Names of receivers come from a different team."""
    finding = failed("brokers", f"login with {SECRET} failed", "check\x1b[2J")
    printed = run(monkeypatch, [finding], *options)[0].output
    assert SECRET not in printed
    assert "\x1b" not in printed


def test_an_option_replaces_the_address_in_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    _, (_, _, links, test_labels) = run(monkeypatch, [], "--alertmanager", "https://am/path/")
    assert links == LinkSettings(prometheus_url="http://prometheus:9090", alertmanager_url="https://am/path")
    assert test_labels is None, "test alerts are sent only on request"


def test_the_labels_of_test_alerts_select_the_route_of_a_team(monkeypatch: pytest.MonkeyPatch) -> None:
    _, (*_, test_labels) = run(monkeypatch, [], "--send-test-alert", "--alert-label", "team=payments")
    assert test_labels == {"team": "payments"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--prometheus", "prometheus:9090"), "'--prometheus': an address must be http(s)://HOST"),
        (("--alertmanager", f"http://me:{SECRET}@am"), "'--alertmanager': an address must be http(s)://HOST"),
        (("--alert-label", "payments"), "'payments' is not NAME=VALUE"),
        (("--alert-label", "alertname=X"), "the command itself sets the label alertname"),
        (("--alert-label", "severity=page"), "the command itself sets the label severity"),
        (("--alert-label", "cluster=eu"), "the command itself sets the label cluster"),
        (("--alert-label", "group=orders"), "the command itself sets the label group"),
    ],
)
def test_a_wrong_argument_is_reported_before_the_checks(
    options: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, arguments = run(monkeypatch, [GOOD], *options)
    assert (result.exit_code, message in result.stderr, arguments) == (2, True, [])
    assert SECRET not in result.stderr


def test_an_unknown_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = run(monkeypatch, [GOOD], "--cluster", "nowhere")
    assert (result.exit_code, "no cluster 'nowhere' is configured" in result.stderr) == (1, True)
