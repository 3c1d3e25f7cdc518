"""Request data from the HTTP APIs of Prometheus and Alertmanager, and send test alerts."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.client import HTTPException
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

import psutil
from msgspec import DecodeError, ValidationError, json

from streaming.config.secret_settings import without_credentials
from streaming.doctor import alerting
from streaming.doctor.answers import (
    Alertmanagers,
    AlertmanagerStatus,
    FromPrometheus,
    QueryResult,
    RuleGroups,
    StoredAlert,
    Targets,
)
from streaming.doctor.finding import Finding, failed, from_error, not_checked, ok
from streaming.errors import RemedyError
from streaming.http.client import request

PROMETHEUS, TEST_ALERTS = "Prometheus", "test alert"
_ATTEMPTS, _PAUSE_SECONDS = 5, 1.0
_STATUS_UNAUTHORIZED = 401
_READY_QUERY = urlencode({"query": "rebalance_monitor_ready"})

T = TypeVar("T")


class NoAnswerError(RemedyError):
    """Error: Prometheus or Alertmanager did not return the expected response."""


@dataclass(frozen=True, slots=True)
class _Server:
    """The API of Prometheus or Alertmanager. Each method raises RemedyError if the server does not answer as expected.

    `product` is the name of the program that should answer at `url`.
    """

    product: str
    url: str

    def get(self, path: str, answer: type[T]) -> T:
        content = self.request(path)
        try:
            return json.decode(content, type=answer)
        except ValidationError as error:
            reason = f"unexpected JSON ({error})"
        except (DecodeError, RecursionError) as error:
            reason = f"no valid JSON ({error})"
        raise NoAnswerError(f"{self.url}{path} returned {reason}: check that {self.product} is at this address")

    def request(self, path: str, body: bytes | None = None) -> bytes:
        """Return the content of the response. The request is a POST if `body` is set."""
        try:
            status, content = request(self.url, path, body)
        except (OSError, HTTPException, ValueError) as error:
            text = f"{self.url} does not answer ({error}): check the address, and check that the server runs"
            raise NoAnswerError(text) from error
        if status == _STATUS_UNAUTHORIZED:
            raise NoAnswerError(f"{self.url} requires a user name and a password: add them to ~/.netrc")
        if status != 200:
            raise NoAnswerError(f"{self.url}{path} returned the status {status}: check the address")
        return content


class AlertingCheck:
    """Checks Prometheus and Alertmanager.

    A server with an empty address is not checked. If only the address of Alertmanager is empty, the checks use the
    address that Prometheus reports. So call `prometheus_findings` first.
    """

    def __init__(self, prometheus: str, alertmanager: str) -> None:
        self._prometheus = _Server(PROMETHEUS, prometheus)
        self._alertmanager = _Server(alerting.ALERTMANAGER, alertmanager)

    def prometheus_findings(self, clusters: Sequence[str], port: int) -> Iterator[Finding]:
        """Yield the findings about the scrape job of each cluster, the rules, and the address of Alertmanager."""
        if not self._prometheus.url:
            yield from _unchecked(
                clusters, "the address of Prometheus is not set", "set --prometheus or links.prometheus_url"
            )
            return
        try:
            targets = self._prometheus.get("/api/v1/targets?state=active", FromPrometheus[Targets]).data.active_targets
            series = self._prometheus.get(f"/api/v1/query?{_READY_QUERY}", FromPrometheus[QueryResult]).data.result
            rules = self._prometheus.get("/api/v1/rules", FromPrometheus[RuleGroups]).data.groups
            reported = self._prometheus.get("/api/v1/alertmanagers", FromPrometheus[Alertmanagers]).data
            alertmanagers = [_base_address(one.url) for one in reported.active_alertmanagers]
        except RemedyError as error:
            yield from_error(PROMETHEUS, error)
            yield from _unchecked(clusters, "Prometheus returned no usable answer")
            return
        own_urls = {target.scrape_url for target in targets if _is_this_monitor(target.scrape_url, port)}
        for cluster in clusters:
            yield alerting.scrape_finding(cluster, port, targets, [one.metric for one in series], own_urls)
        yield alerting.rules_finding(rules)
        yield alerting.alertmanagers_finding(alertmanagers)
        if not self._alertmanager.url and alertmanagers:
            self._alertmanager = _Server(alerting.ALERTMANAGER, alertmanagers[0])

    def alertmanager_finding(self) -> Finding:
        """Check that Alertmanager answers, and return the finding."""
        if not self._alertmanager.url:
            remedy = "set --alertmanager or links.alertmanager_url"
            return not_checked(alerting.ALERTMANAGER, "the address of Alertmanager is not set", remedy)
        try:
            status = self._alertmanager.get("/api/v2/status", AlertmanagerStatus)
        except RemedyError as error:
            return from_error(alerting.ALERTMANAGER, error)
        return ok(alerting.ALERTMANAGER, f"version {status.version_info.version} at {self._alertmanager.url}")

    def send_test_alerts(
        self, cluster: str, labels: alerting.Labels, now: datetime, pause: Callable[[float], None]
    ) -> Iterator[Finding]:
        """Send one test alert for each severity, and yield one finding with the receivers of each alert."""
        if not self._alertmanager.url:
            remedy = "set --alertmanager or links.alertmanager_url"
            yield failed(TEST_ALERTS, "not sent, because the address of Alertmanager is unknown", remedy)
            return
        ends = now + timedelta(seconds=alerting.TEST_ALERT_SECONDS)
        alerts = alerting.alerts_to_send(cluster, labels, now.isoformat(), ends.isoformat())
        try:
            self._alertmanager.request("/api/v2/alerts", json.encode(alerts))
        except RemedyError as error:
            yield from_error(TEST_ALERTS, error)
            return
        try:
            sent = self._sent(alerting.labels_to_send(cluster, labels), pause)
        except RemedyError as error:
            yield from_error(TEST_ALERTS, NoAnswerError(f"sent, but its receivers are unknown, because {error}"))
        else:
            yield from alerting.sent_findings(sent)

    def _sent(self, labels: Sequence[alerting.Labels], pause: Callable[[float], None]) -> Sequence[StoredAlert]:
        """Return the test alerts with `labels`. Wait until Alertmanager has applied silences and inhibition rules."""
        query = urlencode({"filter": f'alertname="{alerting.TEST_ALERT}"'})
        for _ in range(_ATTEMPTS):
            pause(_PAUSE_SECONDS)
            stored = self._alertmanager.get(f"/api/v2/alerts?{query}", list[StoredAlert])
            found = [one for one in stored if one.labels in labels]
            if len(found) >= len(labels) and all(one.status.state != "unprocessed" for one in found):
                break
        return found


def _unchecked(clusters: Sequence[str], reason: str, remedy: str | None = None) -> Iterator[Finding]:
    for point in (*(f"{alerting.SCRAPE} of {cluster!r}" for cluster in clusters), alerting.RULES, alerting.ALERTS_SENT):
        yield not_checked(point, reason, remedy)


def _is_this_monitor(url: str, port: int) -> bool:
    """Return True if a URL contains `port` and an address of this machine."""
    try:
        parts = urlsplit(url)
        if parts.port != port or not parts.hostname:
            return False
        resolved = {address[4][0] for address in socket.getaddrinfo(parts.hostname, None)}
    except (OSError, ValueError):  # an unknown name, or no URL
        return False
    own = {address.address.partition("%")[0] for one in psutil.net_if_addrs().values() for address in one}
    return not resolved.isdisjoint(own)


def _base_address(url: str) -> str:
    """Return the address of an Alertmanager without the path of its API. Raises NoAnswerError if the URL is invalid.

    >>> _base_address("http://alertmanager:9093/am/api/v2/alerts")
    'http://alertmanager:9093/am'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        shown = without_credentials(url)
        raise NoAnswerError(f"{PROMETHEUS} returned the invalid address {shown!r} for Alertmanager: set --alertmanager")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.partition('/api/')[0]}"
