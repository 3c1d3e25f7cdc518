"""Define the settings of the section `[links]`."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from streaming.config.section import Section


class LinkSettings(Section):
    """Addresses that an on-call engineer opens from alerts, and addresses that the command `doctor` checks."""

    page_url: str = Field(
        "",
        description="Address of the monitor's pages, for example https://monitor.example.com. If this setting is"
        " empty, alerts link to the address that Prometheus scrapes.",
    )
    grafana_url: str = Field(
        "", description="Address of Grafana. If this setting is empty, alerts do not link to dashboards."
    )
    runbook_url: str = Field(
        "",
        description="Address of the runbook, which is a web page with the content of dashboards/RUNBOOK.md. If this"
        " setting is empty, alerts link to the dashboard in Grafana that contains the runbook.",
    )
    prometheus_url: str = Field(
        "",
        description="Address of Prometheus. Only the command `doctor` uses this address. If empty, the command"
        " does not check Prometheus.",
    )
    alertmanager_url: str = Field(
        "",
        description="Address of Alertmanager. Only the command `doctor` uses this address. If empty, the command gets"
        " the address from Prometheus.",
    )

    @field_validator("page_url", "grafana_url", "runbook_url", "prometheus_url", "alertmanager_url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if url and not re.fullmatch(r"https?://[^\s/@?#\"{}]+(/[^\s@?#\"{}]*)?", url):
            raise ValueError("an address is http(s)://HOST or http(s)://HOST/PATH, without user, query and spaces")
        return url.rstrip("/")
