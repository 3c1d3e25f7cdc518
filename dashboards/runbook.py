"""Create the panel that shows firing alerts, and the dashboard that shows the runbook."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import text
from grafana_foundation_sdk.models.text import TextMode

from dashboards.alerts import panel_number
from dashboards.boards import RUNBOOK_UID, create_dashboard
from dashboards.panels import AnyPanel, PanelSpec
from dashboards.promql import Scope
from dashboards.tables import Column, Label, Measure, ranked_table
from dashboards.words import ACT, NEITHER, WATCH, value_mapping

_SEVERITIES = {"page": (3, ACT), "ticket": (2, WATCH), "info": (1, NEITHER)}
_OUR_ALERTS = 'alertname=~"Kafka.+|RebalanceMonitor.+", alertstate="firing"'
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def firing_alerts_panel(scope: Scope, labels: Sequence[Label] = ()) -> AnyPanel:
    """Return a table of the firing alerts, with one column for each of `labels`. Severity `page` comes first.

    The name of each alert links to the runbook.
    """
    spec = PanelSpec(
        "Firing alerts",
        "Severity `page`: act now. `ticket`: act on the next working day. `info`: no notification. The name of an "
        "alert links to the runbook. The runbook describes the meaning of the alert, how to confirm the alert, and "
        "what to do.",
        "No alert fires, or Prometheus has not loaded the rules in `dashboards/rules`.",
        "no alert, if the rules are loaded",
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
        *labels,
        Measure("Severity", f"topk(50, max by (alertname, cluster, group) ({ranks}))", mappings=[words]),
    ]
    return ranked_table(spec, columns, sort_by="Severity")


def runbook(markdown: str) -> build.Dashboard:
    """Return the runbook as a dashboard with one panel for each alert. So Grafana itself can show the runbook."""
    introduction, *rest = _SECTION.split(markdown)
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    about = (
        "The meaning of each alert, how to confirm the alert, and what to do. This dashboard is generated from "
        "dashboards/RUNBOOK.md."
    )
    panels = [_runbook_panel("Before you begin", introduction.partition("\n")[2], 24)]
    *pairs, last = sorted(sections.items())
    panels += [_runbook_panel(alert, section, 12) for alert, section in pairs]
    panels.append(_runbook_panel(*last, 24 if len(pairs) % 2 == 0 else 12))
    return create_dashboard(RUNBOOK_UID, "Rebalance monitor: runbook", about, [], {"Runbook": panels})


def _runbook_panel(title: str, markdown: str, width: int) -> AnyPanel:
    panel = text.Panel().id(panel_number(title)).title(title).mode(TextMode.MARKDOWN).content(markdown.strip())
    return panel.span(width).height(14 if width < 24 else 9)
