"""Alerts that fire, and the runbook that says what to do about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import text
from grafana_foundation_sdk.models.text import TextMode

from dashboards.boards import RUNBOOK_UID, create_dashboard
from dashboards.panels import AnyPanel, PanelSpec
from dashboards.promql import Scope
from dashboards.tables import Column, Label, Measure, ranked_table
from dashboards.words import ACT, NEITHER, WATCH, value_mapping

_SEVERITIES = {"page": (3, ACT), "ticket": (2, WATCH), "info": (1, NEITHER)}
_OUR_ALERTS = 'alertname=~"Kafka.+|RebalanceMonitor.+", alertstate="firing"'
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_FIRST_FREE_NUMBER = 1_000


def firing_alerts_panel(scope: Scope, whose: Sequence[Label] = ()) -> AnyPanel:
    """A table of the alerts that fire, pages first, with columns for whose they are. Each name leads to the runbook."""
    spec = PanelSpec(
        "Alerts that fire",
        "Page: for now. Ticket: for the next working day. Info: told to nobody. An alert's name leads to the runbook, "
        "which says what it means, how to confirm it and what to do.",
        "no alert fires; or Prometheus has not loaded the rules in `dashboards/rules`.",
        "none fires, if the rules are loaded",
        width=24,
        height=7,
    )
    ranks = " or ".join(
        f'{rank} * ALERTS{{{scope.matchers}, {_OUR_ALERTS}, severity="{name}"}}'
        for name, (rank, _) in _SEVERITIES.items()
    )
    words = value_mapping({str(rank): (name, color) for name, (rank, color) in _SEVERITIES.items()})
    runbook = build.DashboardLink("Runbook").url(f"/d/{RUNBOOK_UID}")
    columns: list[Column] = [
        Label("Alert", "alertname", links=[runbook]),
        *whose,
        Measure("Severity", f"topk(50, max by (alertname, cluster, group) ({ranks}))", mappings=[words]),
    ]
    return ranked_table(spec, columns, sort_by="Severity")


def runbook(markdown: str) -> build.Dashboard:
    """The runbook as a dashboard: whoever is paged has it at hand wherever Grafana is. A panel for each alert."""
    introduction, *rest = _SECTION.split(markdown)
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    about = "What each alert means, how to confirm it, what to do. Made from dashboards/RUNBOOK.md."
    panels = [_runbook_panel("Before you begin", introduction.partition("\n")[2], 24)]
    *pairs, last = sorted(sections.items())
    panels += [_runbook_panel(alert, section, 12) for alert, section in pairs]
    panels.append(_runbook_panel(*last, 24 if len(pairs) % 2 == 0 else 12))
    return create_dashboard(RUNBOOK_UID, "Rebalance monitor: runbook", about, [], {"Runbook": panels})


def panel_number(title: str) -> int:
    """The number of a panel of the runbook, by which an alert's link opens it (`viewPanel`): of its title alone.

    Rules and dashboards are not renewed at one moment: numbered in order, a new alert would have others lead to the
    panel beside their own. Panels that are numbered in order have smaller numbers.

    >>> panel_number("KafkaAssignmentSkewed")
    868679
    """
    return _FIRST_FREE_NUMBER + crc32(title.encode()) % 1_000_000


def _runbook_panel(title: str, markdown: str, width: int) -> AnyPanel:
    panel = text.Panel().id(panel_number(title)).title(title).mode(TextMode.MARKDOWN).content(markdown.strip())
    return panel.span(width).height(14 if width < 24 else 9)
