"""What all dashboards have in common: variables, links, the numbering of panels, and how they are written down."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard

from dashboards.panels import SOURCE, AnyPanel

FLEET_UID, GROUP_UID, MONITOR_UID = "rebalance-monitor-fleet", "rebalance-monitor-group", "rebalance-monitor-itself"
RUNBOOK_UID = "rebalance-monitor-runbook"
TAG = "rebalance-monitor"

AnyVariable = Builder[dashboard.VariableModel]
Rows = Mapping[str, Sequence[AnyPanel]]
"""Panels under the title of their row, in order; each line of panels is 24 wide, and its panels are equally high."""

_SAME_TIME = "${__url_time_range}"
_SAME_SOURCE = "${datasource:queryparam}"
_ALL = dashboard.VariableOption(selected=True, text="All", value="$__all")


def group_dashboard_url(cluster: str, group: str) -> str:
    """The address of a group's dashboard, where Grafana fills in what these expressions stand for."""
    return f"/d/{GROUP_UID}?{_SAME_SOURCE}&var-cluster={cluster}&var-group={group}&{_SAME_TIME}"


def dashboard_url(uid: str) -> str:
    """The address of a dashboard that shows several clusters, of those that are shown here."""
    return f"/d/{uid}?{_SAME_SOURCE}&${{cluster:queryparam}}"


def monitor_page_url(cluster: str, group: str) -> str:
    """The address of a group's page at the monitor, likewise."""
    return f"${{monitor}}/groups/?id={group}&cluster={cluster}"


def group_links() -> list[build.DashboardLink]:
    """Links of a table's column of groups."""
    cluster, group = "${__data.fields.cluster:percentencode}", "${__data.fields.group:percentencode}"
    page = build.DashboardLink("Its page at the monitor: members, story, what-if").url(monitor_page_url(cluster, group))
    return [
        build.DashboardLink("This group's dashboard").url(group_dashboard_url(cluster, group)),
        page.target_blank(True),
    ]


def source_variable() -> AnyVariable:
    """Which Prometheus."""
    return build.DatasourceVariable("datasource").label("Data source").type("prometheus")


def monitor_variable() -> AnyVariable:
    """Where a browser finds the monitor's pages: no metric can know that."""
    about = "The monitor as your browser reaches it, for links to its pages"
    return (
        build.TextBoxVariable("monitor")
        .label("Monitor's address")
        .description(about)
        .default_value("http://localhost:9560")
    )


def top_variable() -> AnyVariable:
    """How long a list of the worst is."""
    ten = dashboard.VariableOption(selected=True, text="10", value="10")
    return build.CustomVariable("top").label("Worst").values("10,20,50,100").current(ten)


def single_choice_variable(name: str, label: str, query: str) -> AnyVariable:
    """One value out of those that Prometheus has."""
    return _query_variable(name, label, query)


def multiple_choice_variable(name: str, label: str, query: str) -> AnyVariable:
    """Any number of values; all of them unless told otherwise, those that come later too."""
    return _query_variable(name, label, query).multi(True).include_all(True).all_value(".*").current(_ALL)


def _query_variable(name: str, label: str, query: str) -> build.QueryVariable:
    variable = build.QueryVariable(name).label(label).datasource(SOURCE).query(query)
    in_order = dashboard.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC
    return variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(in_order)


class Event(dashboard.AnnotationQuery):
    """Vertical lines where a query of Prometheus has a value; the SDK's model lacks the fields its titles come from."""

    def __init__(self, name: str, expression: str, title: str, color: str) -> None:
        super().__init__(name=name, datasource=SOURCE, expr=expression, icon_color=color)
        self._title = title

    def to_json(self) -> dict[str, object]:
        """As Grafana's Prometheus plugin reads it."""
        return super().to_json() | {"titleFormat": self._title, "step": "15s"}


class _Events(Builder[dashboard.AnnotationQuery]):
    def __init__(self, event: Event) -> None:
        self._event = event

    def build(self) -> dashboard.AnnotationQuery:
        return self._event


def _links_to_other_dashboards(uid: str) -> list[build.DashboardLink]:
    """Links at the top. Not by tag with all variables: all groups of the fleet are no group for another dashboard."""
    others = {"All groups": FLEET_UID, "The monitor itself": MONITOR_UID, "Runbook": RUNBOOK_UID}
    has_queries = uid != RUNBOOK_UID
    return [
        build.DashboardLink(title)
        .url(dashboard_url(other) if has_queries and other != RUNBOOK_UID else f"/d/{other}")
        .keep_time(True)
        for title, other in others.items()
        if other != uid
    ]


def create_dashboard(
    uid: str,
    title: str,
    about: str,
    variables: Sequence[AnyVariable],
    rows: Rows,
) -> build.Dashboard:
    """A dashboard with its rows, and links to the others."""
    result = (
        build.Dashboard(title).uid(uid).description(about).tags([TAG, "kafka"]).time("now-1h", "now").refresh("30s")
    )
    result.timezone("browser").tooltip(dashboard.DashboardCursorSync.CROSSHAIR).readonly()
    result.variables(list(variables)).links(list(_links_to_other_dashboards(uid)))
    for row, panels in rows.items():
        result.with_row(build.Row(row))
        for panel in panels:
            result.with_panel(panel)
    return result


def add_events(result: build.Dashboard, events: Sequence[Event]) -> build.Dashboard:
    """Draw these into all panels over time."""
    return result.annotations([_Events(event) for event in events])


def as_json_text(result: build.Dashboard) -> str:
    """The dashboard as JSON, its panels without a number numbered in the order in which they stand."""
    model = result.build()
    for number, panel in enumerate(model.panels or [], start=1):
        panel.id_val = panel.id_val or number
    return json.dumps(model, cls=JSONEncoder, indent=2, ensure_ascii=False) + "\n"
