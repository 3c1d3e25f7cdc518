"""Define the settings of the section `[links]`."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from streaming.config.secret_settings import ADDRESS
from streaming.config.section import Section


def _check_url(url: str) -> str:
    if url and not (re.fullmatch(r"https?://[^\s/@?#;\"{}]+(/[^\s@?#;\"{}]*)?", url) and _has_host_and_port(url)):
        raise ValueError(
            "an address must be http(s)://HOST or http(s)://HOST/PATH, without user, query, fragment, semicolon or"
            " space"
        )
    return url.rstrip("/")


def _has_host_and_port(url: str) -> bool:
    """Return False if a client cannot connect to the address, for example to http://[::1 or http://host:99999."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return parts.hostname is not None and port != 0


Url = Annotated[str, AfterValidator(_check_url), ADDRESS]


class LinkSettings(Section):
    """Addresses of the pages that alerts link to, and of the services that the command `doctor` checks."""

    page_url: Url = Field(
        "",
        description="Address of the monitor's pages, for example https://monitor.example.com. If this setting is"
        " empty, alerts link to the address that Prometheus scrapes.",
    )
    grafana_url: Url = Field(
        "", description="Address of Grafana. If this setting is empty, alerts do not link to dashboards."
    )
    runbook_url: Url = Field(
        "",
        description="Address of a web page with the content of dashboards/RUNBOOK.md. If this setting is empty, alerts"
        " link to the runbook dashboard in Grafana.",
    )
    prometheus_url: Url = Field(
        "",
        description="Address of Prometheus. Only the command `doctor` uses this address. If this setting is empty, the"
        " command does not check Prometheus.",
    )
    alertmanager_url: Url = Field(
        "",
        description="Address of Alertmanager. Only the command `doctor` uses this address. If this setting is empty,"
        " the command gets the address from Prometheus.",
    )
