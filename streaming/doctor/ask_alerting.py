"""Ask Prometheus and Alertmanager over their HTTP APIs, and send test alerts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit

from streaming.config.redaction import without_credentials
from streaming.doctor.alerting import (
    ALERTMANAGER,
    ALERTS_SENT,
    RULES,
    SCRAPE,
    TEST_ALERT,
    TEST_ALERT_SECONDS,
    Labels,
    Rule,
    SentAlert,
    Target,
    alertmanagers_finding,
    alerts_to_send,
    labels_to_send,
    rules_finding,
    scrape_finding,
    sent_findings,
)
from streaming.doctor.finding import Finding, failed, from_error, not_checked, ok
from streaming.errors import RemedyError
from streaming.http.client import request

PROMETHEUS = "Prometheus"
_ATTEMPTS, _PAUSE_SECONDS = 5, 1.0
_STATUS_UNAUTHORIZED = 401


class NoAnswerError(RemedyError):
    """A server did not return the expected JSON."""


def ask(url: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON that a server returns. Raises RemedyError."""
    sent = None if body is None else json.dumps(body).encode()
    try:
        status, content = request(url, path, sent)
        if status == _STATUS_UNAUTHORIZED:
            raise NoAnswerError(f"{url} requires a name and a password: add them to ~/.netrc")
        if status != 200:
            raise NoAnswerError(f"{url}{path} returned the status {status}: check the address")
        return json.loads(content) if content else None
    except (OSError, HTTPException, ValueError) as error:
        raise NoAnswerError(f"{url} does not answer ({error}): check the address, and that the server runs") from error


@dataclass(frozen=True, slots=True)
class _PrometheusAnswer:
    targets: Sequence[Target]
    series: Sequence[Labels]
    rules: Sequence[Rule]
    alertmanagers: Sequence[str]


class AlertingCheck:
    """The checks of Prometheus and Alertmanager. An empty address means that the server is not checked.

    If `alertmanager` is empty, the checks use the address that Prometheus uses.
    """

    def __init__(self, prometheus: str, alertmanager: str) -> None:
        self._prometheus = prometheus
        self._alertmanager = alertmanager

    def findings(self, clusters: Sequence[str], port: int) -> Iterator[Finding]:
        """Yield the findings about Prometheus, then about Alertmanager."""
        try:
            yield from self._prometheus_findings(clusters, port)
        except RemedyError as error:
            yield from_error(PROMETHEUS, error)
            yield from _unchecked(clusters, "Prometheus returned no answer")
        yield self._alertmanager_finding()

    def send_test_alerts(
        self, cluster: str, labels: Labels, now: datetime, pause: Callable[[float], None]
    ) -> Iterator[Finding]:
        """Send one alert for each severity, and yield one finding for each alert, with its receivers."""
        if not self._alertmanager:
            yield not_checked("test alert", "no address of Alertmanager", "set --alertmanager")
            return
        ends = now + timedelta(seconds=TEST_ALERT_SECONDS)
        try:
            ask(
                self._alertmanager,
                "/api/v2/alerts",
                alerts_to_send(cluster, labels, now.isoformat(), ends.isoformat()),
            )
            yield from sent_findings(self._sent(labels_to_send(cluster, labels), pause))
        except RemedyError as error:
            yield from_error("test alert", error)

    def _prometheus_findings(self, clusters: Sequence[str], port: int) -> Iterator[Finding]:
        if not self._prometheus:
            yield from _unchecked(clusters, "no address of Prometheus", "set --prometheus or links.prometheus_url")
            return
        answer = self._ask_prometheus()
        for cluster in clusters:
            yield scrape_finding(cluster, port, answer.targets, answer.series)
        yield rules_finding(answer.rules)
        yield alertmanagers_finding(answer.alertmanagers)
        self._alertmanager = self._alertmanager or next(iter(answer.alertmanagers), "")

    def _ask_prometheus(self) -> _PrometheusAnswer:
        query = urlencode({"query": "rebalance_monitor_ready"})
        try:
            return _PrometheusAnswer(
                targets=[_target(one) for one in self._query("/api/v1/targets?state=active")["activeTargets"]],
                series=[one["metric"] for one in self._query(f"/api/v1/query?{query}")["result"]],
                rules=list(_rules(self._query("/api/v1/rules")["groups"])),
                alertmanagers=[
                    _base_address(one["url"]) for one in self._query("/api/v1/alertmanagers")["activeAlertmanagers"]
                ],
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise NoAnswerError(f"{self._prometheus} is not Prometheus ({error!r}): check the address") from None

    def _query(self, path: str) -> Any:  # noqa: ANN401 - JSON
        return ask(self._prometheus, path)["data"]

    def _alertmanager_finding(self) -> Finding:
        if not self._alertmanager:
            remedy = "set --alertmanager or links.alertmanager_url"
            return not_checked(ALERTMANAGER, "no address of Alertmanager", remedy)
        try:
            version = ask(self._alertmanager, "/api/v2/status")["versionInfo"]["version"]
        except RemedyError as error:
            return from_error(ALERTMANAGER, error)
        except (AttributeError, KeyError, TypeError) as error:
            return failed(ALERTMANAGER, f"{self._alertmanager} is not Alertmanager ({error!r})", "check the address")
        return ok(ALERTMANAGER, f"version {version} at {self._alertmanager}")

    def _sent(self, labels: Sequence[Labels], pause: Callable[[float], None]) -> Sequence[SentAlert]:
        """Return the test alerts with these labels, after Alertmanager has evaluated silences and inhibition rules."""
        filters = [("filter", f'alertname="{TEST_ALERT}"')]
        for _ in range(_ATTEMPTS):
            pause(_PAUSE_SECONDS)
            found = [
                one
                for one in ask(self._alertmanager, f"/api/v2/alerts?{urlencode(filters)}")
                if one["labels"] in labels
            ]
            if found and all(one["status"]["state"] != "unprocessed" for one in found):
                break
        return [_sent_alert(one) for one in found]


def _unchecked(clusters: Sequence[str], reason: str, remedy: str | None = None) -> Iterator[Finding]:
    for point in (*(f"{SCRAPE} of {cluster!r}" for cluster in clusters), RULES, ALERTS_SENT):
        yield not_checked(point, reason, remedy)


def _target(target: Mapping[str, Any]) -> Target:
    labels = target["labels"]
    return Target(
        labels["job"],
        labels["instance"],
        without_credentials(target["scrapeUrl"]),
        target["health"],
        target["lastError"],
    )


def _rules(groups: Sequence[Mapping[str, Any]]) -> Iterator[Rule]:
    for group in groups:
        for rule in group["rules"]:
            yield Rule(group["name"], rule["name"], rule["health"], rule.get("lastError", ""))


def _base_address(url: str) -> str:
    """Return the address of an Alertmanager without the path of its API.

    >>> _base_address("http://alertmanager:9093/am/api/v2/alerts")
    'http://alertmanager:9093/am'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.partition('/api/')[0]}"


def _sent_alert(alert: Mapping[str, Any]) -> SentAlert:
    status = alert["status"]
    muted_by = (*(f"silence {one}" for one in status["silencedBy"]), *(f"alert {one}" for one in status["inhibitedBy"]))
    return SentAlert(alert["labels"]["severity"], tuple(one["name"] for one in alert["receivers"]), muted_by)
