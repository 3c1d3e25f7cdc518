"""Sends requests to HTTP servers: a monitor (`streaming/page/API.md`), Prometheus, Alertmanager.

The name and the password come from the user's `.netrc` file, as with `curl --netrc`. So no command line contains a
password.
"""

from __future__ import annotations

import base64
import json
import netrc
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from streaming.config.load import Settings
from streaming.errors import RemedyError

TIMEOUT_SECONDS = 15.0
_GROUPS = "/api/v1/groups"

Reported = Mapping[str, Mapping[str, Any]]
"""The JSON object of each group in the API of a monitor, by group id."""


class NetrcError(RemedyError):
    """Error: the file `.netrc` cannot be read."""


class MonitorNotReadableError(RemedyError):
    """Error: the monitor did not return its groups."""


def request(url: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Send GET, or POST with a JSON body. Return the response's status and content. Raises OSError or HTTPException."""
    parts = urlsplit(url)
    connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    headers = {**_credentials(parts.hostname or ""), **({} if body is None else {"Content-Type": "application/json"})}
    with closing(connect(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)) as connection:
        connection.request("GET" if body is None else "POST", parts.path.rstrip("/") + path, body, headers)
        response: HTTPResponse = connection.getresponse()
        return response.status, response.read()


def _credentials(host: str) -> Mapping[str, str]:
    try:
        known = netrc.netrc().authenticators(host)
    except FileNotFoundError:
        return {}
    except (netrc.NetrcParseError, UnicodeDecodeError, OSError):
        raise NetrcError("~/.netrc cannot be read: correct its syntax and its permissions") from None
    if known is None:
        return {}
    return {"Authorization": "Basic " + base64.b64encode(f"{known[0]}:{known[2]}".encode()).decode()}


def request_reports(
    settings: Settings, monitor: str | None, cluster: str | None, *, is_other_cluster: bool
) -> tuple[Reported | None, list[str]]:
    """Request the groups of the cluster from the monitor. Return the groups and a list of warnings.

    If the address of the monitor is unknown, return None instead of the groups. If the address comes from the settings,
    a failed request causes only a warning.
    """
    if monitor is not None:
        return request_groups(monitor, cluster if is_other_cluster else settings.kafka.cluster), []
    if is_other_cluster or not settings.links.page_url:
        return None, []
    try:
        return request_groups(settings.links.page_url, settings.kafka.cluster), []
    except MonitorNotReadableError as error:
        return None, [str(error)]


def request_groups(url: str, cluster: str | None) -> Reported:
    """Return the JSON object of each group. `cluster` can be None if the monitor watches only one cluster.

    Raises MonitorNotReadableError.
    """
    try:
        status, body = request(url, _GROUPS + (f"?cluster={quote(cluster, safe='')}" if cluster else ""))
    except NetrcError as error:
        raise MonitorNotReadableError(str(error)) from None
    except (OSError, HTTPException, ValueError) as error:
        raise MonitorNotReadableError(
            f"the monitor at {url} does not answer ({error}): check that the monitor is running"
        ) from error
    if status == 401:
        raise MonitorNotReadableError(f"the monitor at {url} requires a name and a password: add them to ~/.netrc")
    try:
        document = json.loads(body) if status in {200, 404, 503} else {}
    except (ValueError, RecursionError):
        raise MonitorNotReadableError(
            f"the server at {url} returned status {status} without the JSON of a monitor: check the address"
        ) from None
    try:
        return _read_groups(url, status, document)
    except (AttributeError, KeyError, TypeError) as error:
        raise MonitorNotReadableError(
            f"the server at {url} is not a monitor of this version ({error!r}): check the address"
        ) from None


def _read_groups(url: str, status: int, document: Any) -> Reported:  # noqa: ANN401 - JSON
    if status != 200:
        reason = document.get("error") or f"status {status}"
        raise MonitorNotReadableError(f"the monitor at {url} returned no groups: {reason}")
    if len(document.get("clusters", ())) > 1:
        raise MonitorNotReadableError(f"the monitor at {url} watches several clusters: select one with --cluster")
    return {group["group_id"]: group for group in document["groups"]}
