"""Tests of the findings about Prometheus and Alertmanager, and of the requests to both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.doctor.alerting import (
    RULE_GROUPS,
    SEVERITIES,
    TEST_ALERT,
    alertmanagers_finding,
    rules_finding,
    scrape_finding,
    sent_findings,
)
from streaming.doctor.answers import AlertState, LoadedRule, Receiver, RuleGroup, ScrapedTarget, StoredAlert
from streaming.doctor.ask_alerting import AlertingCheck
from streaming.doctor.finding import FAILED, NOT_CHECKED, NOTE, OK, Finding
from streaming.doctor.rules_checksum import RULES_CHECKSUM
from tests.dashboards.rules import FILES, RECORDED
from tests.streaming.cli.test_monitor_api import served


def target(job: str, instance: str, health: str = "up", last_error: str = "") -> ScrapedTarget:
    return ScrapedTarget({"job": job, "instance": instance}, f"http://{instance}/metrics", health, last_error)


UP = target("rebalance-monitor", "host:9560")
DOWN = target("kafka", "host:9560", "down", "connection refused")
OWN_URLS = {UP.scrape_url}
FIRST = target("rebalance-monitor", "first:9560")
OTHER = target("node", "host:9100", "down", "connection refused")
SERIES = {"job": "rebalance-monitor", "instance": "host:9560", "cluster": "eu"}
OF_FIRST = {**SERIES, "instance": "first:9560"}
STALE_SERIES = {**SERIES, "job": "kafka"}
RENAMED = {**SERIES, "cluster": "vm", "exported_cluster": "eu"}


@pytest.mark.parametrize(
    ("targets", "series", "status", "text", "why"),
    [
        ([UP, OTHER], [SERIES], OK, "host:9560 (job rebalance-monitor)", "a good installation"),
        ([UP, FIRST], [SERIES, OF_FIRST], OK, "first:9560 (job", "two monitors"),
        ([FIRST], [OF_FIRST], NOTE, "None comes from port 9560 of this machine", "only the other monitor is scraped"),
        ([DOWN, FIRST], [OF_FIRST], FAILED, "connection refused", "the other monitor is up, but this one is down"),
        ([UP, FIRST], [OF_FIRST], FAILED, "no series of this cluster comes from http://host", "a different cluster"),
        ([], [SERIES], NOTE, "host:9560", "a Prometheus that receives the series by remote write"),
        ([OTHER], [], FAILED, "no target and no series", "no scrape job"),
        ([DOWN], [], FAILED, "connection refused", "found by its port, because the job has a different name"),
        ([DOWN], [STALE_SERIES], FAILED, "connection refused", "the series stays for five minutes"),
        (
            [UP],
            [{**SERIES, "cluster": "us"}],
            FAILED,
            "no series of this cluster",
            "the monitor of a different cluster",
        ),
        ([UP], [RENAMED], FAILED, "replaces the name", "honor_labels is missing, so every rule finds a wrong cluster"),
    ],
)
def test_prometheus_must_scrape_the_monitor_of_the_cluster(
    targets: list[ScrapedTarget], series: list[Mapping[str, str]], status: str, text: str, why: str
) -> None:
    finding = scrape_finding("eu", 9560, targets, series, OWN_URLS)
    assert (finding.status, text in finding.text) == (status, True), why


@pytest.mark.parametrize(
    ("url", "is_this_monitor"),
    [
        ("http://localhost:9560/metrics", True),
        ("https://127.0.0.1:9560/metrics", True),
        ("http://localhost:9561/metrics", False),
        ("http://192.0.2.1:9560/metrics", False),
        ("http://no-such-host.invalid:9560/metrics", False),
        ("http://localhost/metrics", False),
        ("http://[localhost:9560", False),
    ],
)
def test_a_target_is_this_monitor_if_it_has_an_address_of_this_machine_and_its_port(
    url: str, is_this_monitor: bool
) -> None:
    """192.0.2.1 is an address for documentation. No machine has it."""
    scraped = {"labels": {"job": "j", "instance": "i"}, "scrapeUrl": url, "health": "up"}
    series = {"metric": {"job": "j", "instance": "i", "cluster": "eu"}}
    answers = {
        **GOOD_ANSWERS,
        "/api/v1/targets": {"data": {"activeTargets": [scraped]}},
        "/api/v1/query": {"data": {"result": [series]}},
    }
    with served(server(answers)) as address:
        finding = findings(address)["Prometheus scrapes the monitor of 'eu'"]
    assert finding.status == (OK if is_this_monitor else NOTE), finding


def rule(group: str, name: str = "Any", health: str = "ok", last_error: str = "", **labels: str) -> RuleGroup:
    return RuleGroup(group, [LoadedRule(name, health, last_error, labels)])


HEALTHY = [rule(group, checksum=RULES_CHECKSUM) for group in RULE_GROUPS]
OLDER = [rule(group, checksum="0123456789abcdef") for group in RULE_GROUPS]


@pytest.mark.parametrize(
    ("loaded", "status", "text", "why"),
    [
        (HEALTHY, OK, "7 rules in 7 groups", "a good installation"),
        (OLDER, FAILED, "a different version", "after an upgrade, Prometheus still has the rules of the old release"),
        ([rule(group) for group in RULE_GROUPS], FAILED, "a different version", "before 0.1.0, no checksum"),
        (HEALTHY[1:], FAILED, "rebalance-monitor-recording", "without recording rules, alerts never fire"),
        ([RuleGroup(RULE_GROUPS[0], []), *HEALTHY[1:]], FAILED, "rebalance-monitor-recording", "an empty group"),
        ([rule("other")], FAILED, "not loaded", "rules of a different project"),
        ([*HEALTHY, rule(RULE_GROUPS[1], "Skewed", "err", "many-to-many")], FAILED, "Skewed (many-to-many)", "broken"),
        ([*HEALTHY, rule(RULE_GROUPS[1], "New", "unknown")], NOTE, "1 of 8 rules", "loaded a second ago"),
        (
            [*HEALTHY, rule("other", "Any", "err", "bad")],
            OK,
            "7 rules",
            "a different project's broken rule is not ours",
        ),
    ],
)
def test_all_rules_must_be_loaded_and_healthy(loaded: list[RuleGroup], status: str, text: str, why: str) -> None:
    finding = rules_finding(loaded)
    assert (finding.status, text in finding.text) == (status, True), why


def test_the_names_of_the_rule_groups_are_those_in_the_rule_files() -> None:
    """The wheel does not contain the rule files, so the command has its own list."""
    groups = [group["name"] for file in FILES for group in yaml.safe_load(file.read_text())["groups"]]
    assert sorted(groups) == sorted(RULE_GROUPS)


def test_the_checksum_is_in_a_rule_and_prometheus_returns_it() -> None:
    """Prometheus formats expressions again, so they cannot be compared with the rule files."""
    info = {"name": "cluster:rebalance_monitor_rules:info", "health": "ok", "labels": {"checksum": RULES_CHECKSUM}}
    assert any(loaded.get("labels", {}).get("checksum") == RULES_CHECKSUM for loaded in RECORDED)
    groups = [{"name": group, "rules": [info]} for group in RULE_GROUPS]
    with served(server({**GOOD_ANSWERS, "/api/v1/rules": {"data": {"groups": groups}}})) as url:
        assert findings(url)["alert rules"].status == OK


def test_without_an_alertmanager_every_alert_stays_in_prometheus() -> None:
    assert alertmanagers_finding([]).status == FAILED
    assert alertmanagers_finding(["http://am:9093"]).status == OK


def sent_alert(
    severity: str, *receivers: str, silenced_by: Sequence[str] = (), inhibited_by: Sequence[str] = ()
) -> StoredAlert:
    status = AlertState("active", list(silenced_by), list(inhibited_by))
    return StoredAlert({"severity": severity}, [Receiver(name) for name in receivers], status)


@pytest.mark.parametrize(
    ("sent", "statuses", "why"),
    [
        ([sent_alert(severity, "tickets") for severity in SEVERITIES], [OK, OK, OK], "all routes exist"),
        ([], [FAILED] * 3, "Alertmanager did not return the alerts, so nobody knows their receivers"),
        (
            [
                sent_alert("critical"),
                sent_alert("warning", "t", silenced_by=["4711"]),
                sent_alert("info", "t", inhibited_by=["0815"]),
            ],
            [FAILED, FAILED, FAILED],
            "no receiver; a silence for the whole cluster; an inhibition rule that ignores the group",
        ),
        (
            [
                sent_alert("critical", "monitoring/rebalance-monitor/on-call", "null"),
                sent_alert("warning", "null"),
                sent_alert("info", "monitoring/rebalance-monitor/nobody"),
            ],
            [OK, NOTE, OK],
            "only alerts with the severity info may have no receiver that sends notifications",
        ),
    ],
)
def test_a_test_alert_must_have_a_receiver_and_must_not_be_suppressed(
    sent: list[StoredAlert], statuses: list[str], why: str
) -> None:
    assert [finding.status for finding in sent_findings(sent)] == statuses, why


def test_the_reader_checks_the_arrival_only_if_a_receiver_sends_notifications() -> None:
    sent = [sent_alert("critical", "on-call", "null"), sent_alert("warning", "null"), sent_alert("info", "nobody")]
    assert ["check that it arrived" in finding.text for finding in sent_findings(sent)] == [True, False, False]


Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def server(answers: Mapping[str, Any], received: list[Any] | None = None) -> Application:
    """Return a server with these answers by path. Bytes are sent unchanged. It keeps the bodies that it receives."""

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
        if environ["REQUEST_METHOD"] == "POST" and received is not None:
            received.append(json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))))
        found = environ["PATH_INFO"] in answers
        start_response("200 OK" if found else "404 Not Found", [])
        answer = answers.get(environ["PATH_INFO"])
        yield answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    return application


def findings(prometheus: str, alertmanager: str = "") -> dict[str, Finding]:
    check = AlertingCheck(prometheus, alertmanager)
    found = list(check.prometheus_findings(["eu"], 9560))
    return {one.point: one for one in (*found, check.alertmanager_finding())}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use an empty home folder, so that no test reads the user's passwords."""
    monkeypatch.setenv("HOME", str(tmp_path))


def test_without_an_address_nothing_is_checked_and_nothing_is_ok() -> None:
    assert {finding.status for finding in findings("").values()} == {NOT_CHECKED}


GOOD_ANSWERS: Mapping[str, Any] = {
    "/api/v1/targets": {"data": {"activeTargets": []}},
    "/api/v1/query": {"data": {"result": []}},
    "/api/v1/rules": {"data": {"groups": []}},
    "/api/v1/alertmanagers": {"data": {"activeAlertmanagers": []}},
}


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ({}, "returned the status 404"),
        ({"/api/v1/targets": {"status": "success"}}, "unexpected JSON"),
        ({"/api/v1/targets": ["a list"]}, "unexpected JSON"),
        ({"/api/v1/targets": None}, "unexpected JSON"),
        ({"/api/v1/targets": {"data": {"activeTargets": ["a target"]}}}, "at `$.data.activeTargets[0]`"),
        ({"/api/v1/query": {"data": {"result": [{"metric": ["eu"]}]}}}, "at `$.data.result[0].metric`"),
        ({"/api/v1/rules": {"data": {"groups": [{"name": 1, "rules": []}]}}}, "at `$.data.groups[0].name`"),
        ({"/api/v1/alertmanagers": {"data": {"activeAlertmanagers": [{"url": 9093}]}}}, "Expected `str`, got `int`"),
        ({"/api/v1/alertmanagers": {"data": {"activeAlertmanagers": [{"url": "alertmanager"}]}}}, "'alertmanager' for"),
        ({"/api/v1/alertmanagers": {"data": {"activeAlertmanagers": [{"url": "http://[am"}]}}}, "'http://[am' for"),
        ({"/api/v1/targets": b"<html>"}, "returned no valid JSON"),
        ({"/api/v1/targets": b"\xff"}, "returned no valid JSON"),
        ({"/api/v1/targets": b""}, "returned no valid JSON"),
        ({"/api/v1/targets": b'{"data":' + 100_000 * b"["}, "returned "),
    ],
    ids=lambda value: str(value)[:70],
)
def test_an_unexpected_answer_is_one_clear_line_and_the_other_points_are_not_checked(
    answers: Mapping[str, Any], text: str
) -> None:
    """The address of Grafana is the usual mistake. A proxy can also return its own page with the status 200."""
    with served(server({**GOOD_ANSWERS, **answers} if answers else {})) as url:
        found = findings(url)
    finding = found["Prometheus"]
    assert (finding.status, text in finding.text, "\n" in finding.text) == (FAILED, True, False), finding
    assert finding.remedy
    assert found["alert rules"].status == NOT_CHECKED


@pytest.mark.parametrize("answer", [{}, [], {"versionInfo": "0.28"}, b"<html>", b""], ids=str)
def test_an_unexpected_answer_of_alertmanager_is_one_clear_line(answer: Any) -> None:  # noqa: ANN401 - any JSON
    with served(server({"/api/v2/status": answer})) as url:
        finding = findings("", url)["Alertmanager"]
    assert (finding.status, "JSON" in finding.text) == (FAILED, True)
    assert finding.remedy == "check that Alertmanager is at this address"


def active(receiver: str, **labels: str) -> Mapping[str, Any]:
    """Return a test alert as Alertmanager returns it."""
    status = {"state": "active", "silencedBy": [], "inhibitedBy": []}
    group = f"rebalance-monitor-test-{labels['severity']}"
    named = {"alertname": TEST_ALERT, "group": group, **labels}
    return {"labels": named, "receivers": [{"name": receiver}], "status": status}


@pytest.mark.parametrize(
    ("older", "labels", "why"),
    [
        ({}, {"team": "payments"}, "the older alert has no team"),
        ({"team": "payments"}, {}, "the older alert has a team"),
        ({"team": "payments"}, {"team": ""}, "for Alertmanager, an empty label is no label"),
        ({"team": "search"}, {"team": "payments"}, "the older alert has a different team"),
    ],
)
def test_the_receiver_of_an_older_test_alert_is_not_reported(
    older: Mapping[str, str], labels: Mapping[str, str], why: str
) -> None:
    """The engineer repeats the command for a different team within five minutes. Both test alerts are active."""
    given = {name: value for name, value in labels.items() if value}
    returned = [
        active("new", cluster="eu", severity="critical", **given),
        active("old", cluster="eu", severity="critical", **older),
    ]
    with served(server({"/api/v2/alerts": returned})) as url:
        check = AlertingCheck("", url)
        critical, *_ = check.send_test_alerts("eu", labels, datetime.now(timezone.utc), lambda _: None)
    assert "sent to new;" in critical.text, why


def test_a_path_before_the_api_and_a_missing_receiver_are_handled() -> None:
    """Behind a proxy, the API of Alertmanager has a path. Its answer names the receivers."""
    returned = [
        active("on-call", cluster="eu", severity="critical", team="payments"),
        active("tickets", cluster="us", severity="warning", team="payments"),
    ]
    received: list[Any] = []
    now = datetime(2026, 11, 23, tzinfo=timezone.utc)
    with served(server({"/am/api/v2/alerts": returned}, received)) as url:
        check = AlertingCheck("", f"{url}/am")
        found = list(check.send_test_alerts("eu", {"team": "payments"}, now, lambda _: None))
    assert [finding.status for finding in found] == [OK, FAILED, FAILED], "the alert of us is not ours"
    assert "on-call" in found[0].text
    (alerts,) = received
    assert [alert["labels"]["severity"] for alert in alerts] == list(SEVERITIES)
    assert {alert["labels"]["team"] for alert in alerts} == {"payments"}
    assert {(alert["startsAt"], alert["endsAt"]) for alert in alerts} == {
        ("2026-11-23T00:00:00+00:00", "2026-11-23T00:05:00+00:00")
    }


def test_a_requested_test_alert_that_cannot_be_sent_is_a_failure() -> None:
    """The last step of the installation ended with exit code 0, but nothing was sent."""
    (finding,) = AlertingCheck("", "").send_test_alerts("eu", {}, datetime.now(timezone.utc), lambda _: None)
    assert (finding.status, finding.text) == (FAILED, "not sent, because the address of Alertmanager is unknown")


def test_the_receivers_are_reported_when_alertmanager_returns_all_test_alerts() -> None:
    """After the first alert was returned, the command did not wait for the others."""
    answers = [active("on-call", cluster="eu", severity=severity) for severity in SEVERITIES]
    returned = answers[:1]
    with served(server({"/api/v2/alerts": returned})) as url:
        check, requests = AlertingCheck("", url), iter([lambda: None, lambda: returned.extend(answers[1:])])
        found = check.send_test_alerts("eu", {}, datetime.now(timezone.utc), lambda _: next(requests)())
        assert [finding.status for finding in found] == [OK, OK, OK]


def test_an_error_of_prometheus_shows_no_password() -> None:
    """Prometheus repeats the URL of the target in its error."""
    reason = 'Get "http://u:hunter2@host:9560/metrics?token=hunter3": refused'
    finding = scrape_finding("eu", 9560, [target("rebalance-monitor", "host:9560", "down", reason)], [], OWN_URLS)
    assert "hunter" not in finding.text
    assert "host:9560/metrics" in finding.text
    broken = rule(RULE_GROUPS[1], "Broken", "err", reason)
    assert "hunter" not in rules_finding([*HEALTHY, broken]).text


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "success"},
        None,
        ["an alert"],
        [{"labels": {}}],
        [{**active("x", severity="info"), "receivers": "x"}],
        b"<html>",
        b"",
    ],
    ids=lambda value: str(value)[:70],
)
def test_if_the_receivers_of_a_sent_alert_are_unknown_it_is_reported_as_sent(answer: Any) -> None:  # noqa: ANN401
    """The server accepted the alerts, so a notification can arrive. Before, this was a traceback."""
    received: list[Any] = []
    with served(server({"/api/v2/alerts": answer}, received)) as url:
        check = AlertingCheck("", url)
        (finding,) = check.send_test_alerts("eu", {}, datetime.now(timezone.utc), lambda _: None)
    assert len(received) == 1
    assert (finding.status, finding.text.startswith("sent, but its receivers are unknown")) == (FAILED, True)


def test_a_refused_test_alert_is_not_reported_as_sent() -> None:
    with served(server({})) as url:
        check = AlertingCheck("", url)
        (finding,) = check.send_test_alerts("eu", {}, datetime.now(timezone.utc), lambda _: None)
    assert (finding.status, "sent" in finding.text) == (FAILED, False)
