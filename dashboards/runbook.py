"""Create the dashboard of the runbook, and the table that links each firing alert to its runbook panel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import text
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.text import TextMode

from dashboards.alerts.catalogue import ALERTS
from dashboards.alerts.links import FIRST_PANEL_NUMBER, PANEL_NUMBERS, panel_number
from dashboards.boards import GRID_WIDTH, RUNBOOK_UID, Row, create_dashboard
from dashboards.panels import AnyPanel, PanelSpec
from dashboards.promql import Scope, repeat_for_rows
from dashboards.tables import Column, Label, Measure, ranked_table
from dashboards.words import NEITHER, SEVERITIES, value_mapping

RUNBOOK = Path(__file__).parent / "RUNBOOK.md"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def firing_alerts_panel(
    scope: Scope, labels: Sequence[Label] = (), *, width: int = GRID_WIDTH, height: int = 7, only: str = ""
) -> AnyPanel:
    """Return a table of the monitor's firing alerts, critical first, with columns for `labels`.

    Each row links to a section of the runbook. If the query `only` is set, the table shows only alerts about the groups
    in the result of `only`.
    """
    spec = PanelSpec(
        "Firing alerts",
        "If the severity is `critical`, act now. If it is `warning`, act on the next working day. An alert with the "
        "severity `info` sends no notification. The link in the last column opens the section of the runbook that "
        "describes the alert.",
        "Either no alert fires, or Prometheus has not loaded the rules in `dashboards/rules`.",
        "no alert fires, or the rules are not loaded",
        width=width,
        height=height,
    )
    firing = _firing_by_severity(scope, [label.label for label in labels], only)
    words = value_mapping({str(word.code): (word.value, word.color) for word in SEVERITIES})
    columns: list[Column] = [
        Label("Alert", "alertname"),
        *labels,
        Measure("Severity", firing, mappings=[words]),
        _runbook_column(firing),
    ]
    return ranked_table(spec, columns, sort_by="Severity")


def _firing_by_severity(scope: Scope, labels: Sequence[str], only: str) -> str:
    ours = f'{scope.matchers}, alertname=~"{"|".join(alert.name for alert in ALERTS)}", alertstate="firing"'
    ranks = " or ".join(f'{word.code} * ALERTS{{{ours}, severity="{word.value}"}}' for word in SEVERITIES)
    selected = f"({ranks}) and on (cluster, group) {only}" if only else ranks
    by = ", ".join(dict.fromkeys(("alertname", "cluster", "group", *labels)))
    return f"topk(50, max by ({by}) ({selected}))"


def _runbook_column(firing: str) -> Measure:
    """Return the column with links to the runbook. The value of each cell is a panel id."""
    numbers = " or ".join(
        f'label_replace(vector({panel_number(alert.name)}), "alertname", "{alert.name}", "", "")' for alert in ALERTS
    )
    shown = models.ValueMappingResult(text="open section", color=NEITHER, index=0)
    link = build.DashboardLink("Section of the runbook").url(f"/d/{RUNBOOK_UID}?viewPanel=${{__value.raw}}")
    return Measure(
        "Runbook",
        repeat_for_rows(f"({numbers})", "alertname", firing),
        mappings=[
            models.RangeMap(
                models.DashboardRangeMapOptions(FIRST_PANEL_NUMBER, FIRST_PANEL_NUMBER + PANEL_NUMBERS, shown)
            )
        ],
        links=[link],
    )


def runbook(markdown: str) -> build.Dashboard:
    """Return the runbook as a dashboard with a panel for each alert, in the order of the runbook."""
    introduction, *rest = _SECTION.split(markdown)
    sections = list(zip(rest[::2], rest[1::2], strict=True))
    about = (
        "This dashboard explains the meaning of each alert, how to confirm the alert, and what to do. It is "
        "generated from dashboards/RUNBOOK.md."
    )
    panels = [_runbook_panel("Before you begin", introduction.partition("\n")[2], GRID_WIDTH)]
    *pairs, last = sections
    panels += [_runbook_panel(alert, section, GRID_WIDTH // 2) for alert, section in pairs]
    panels.append(_runbook_panel(*last, GRID_WIDTH if len(pairs) % 2 == 0 else GRID_WIDTH // 2))
    return create_dashboard(RUNBOOK_UID, "Rebalance monitor: runbook", about, [], [Row("Runbook", panels)])


def _runbook_panel(title: str, markdown: str, width: int) -> AnyPanel:
    panel = text.Panel().id(panel_number(title)).title(title).mode(TextMode.MARKDOWN).content(markdown.strip())
    return panel.span(width).height(14 if width < GRID_WIDTH else 9)
