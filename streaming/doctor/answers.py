"""The fields of Prometheus' and Alertmanager's JSON responses that the checks read. Other fields are ignored.

Sources: "HTTP API" in the documentation of Prometheus, and the OpenAPI file of Alertmanager's API v2.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class FromPrometheus(Struct, Generic[T], frozen=True):
    """The outer object of each response of Prometheus."""

    data: T


class ScrapedTarget(Struct, frozen=True, rename="camel"):
    """One active scrape target. `health` is `up`, `down` or `unknown`."""

    labels: dict[str, str]
    scrape_url: str
    health: str
    last_error: str = ""


class Targets(Struct, frozen=True, rename="camel"):
    """The response of `/api/v1/targets`."""

    active_targets: list[ScrapedTarget]


class Series(Struct, frozen=True):
    """One series in the result of an instant query."""

    metric: dict[str, str]


class QueryResult(Struct, frozen=True):
    """The response of `/api/v1/query`."""

    result: list[Series]


class LoadedRule(Struct, frozen=True, rename="camel"):
    """One recording rule or alerting rule. `health` is `ok`, `err` or `unknown` (not evaluated yet)."""

    name: str
    health: str
    last_error: str = ""
    labels: dict[str, str] = {}


class RuleGroup(Struct, frozen=True):
    """One group of rules."""

    name: str
    rules: list[LoadedRule]


class RuleGroups(Struct, frozen=True):
    """The response of `/api/v1/rules`."""

    groups: list[RuleGroup]


class AlertmanagerAddress(Struct, frozen=True):
    """An address to which Prometheus sends alerts."""

    url: str


class Alertmanagers(Struct, frozen=True, rename="camel"):
    """The response of `/api/v1/alertmanagers`."""

    active_alertmanagers: list[AlertmanagerAddress]


class VersionInfo(Struct, frozen=True):
    """The version of Alertmanager."""

    version: str


class AlertmanagerStatus(Struct, frozen=True, rename="camel"):
    """The response of Alertmanager's `/api/v2/status`."""

    version_info: VersionInfo


class AlertState(Struct, frozen=True, rename="camel"):
    """The state of an alert, with the silences and the alerts that suppress it."""

    state: str
    silenced_by: list[str]
    inhibited_by: list[str]


class Receiver(Struct, frozen=True):
    """A receiver of an alert."""

    name: str


class StoredAlert(Struct, frozen=True):
    """One alert in the response of `/api/v2/alerts`."""

    labels: dict[str, str]
    receivers: list[Receiver]
    status: AlertState
