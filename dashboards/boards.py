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


def group_dashboard(cluster: str, group: str) -> str:
    """The address of a group's dashboard, where Grafana fills in what these expressions stand for."""
    return f"/d/{GROUP_UID}?{_SAME_SOURCE}&var-cluster={cluster}&var-group={group}&{_SAME_TIME}"


def of_same_clusters(uid: str) -> str:
    """The address of a dashboard that shows several clusters, of those that are shown here."""
    return f"/d/{uid}?{_SAME_SOURCE}&${{cluster:queryparam}}"


def monitor_page(cluster: str, group: str) -> str:
    """The address of a group's page at the monitor, likewise."""
    return f"${{monitor}}/groups/?id={group}&cluster={cluster}"


def links_of_row() -> list[build.DashboardLink]:
    """Links of a table's column of groups."""
    cluster, group = "${__data.fields.cluster:percentencode}", "${__data.fields.group:percentencode}"
    page = build.DashboardLink("Its page at the monitor: members, story, what-if").url(monitor_page(cluster, group))
    return [
        build.DashboardLink("This group's dashboard").url(group_dashboard(cluster, group)),
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


def one_of(name: str, label: str, query: str) -> AnyVariable:
    """One value out of those that Prometheus has."""
    return _of_query(name, label, query)


def some_of(name: str, label: str, query: str) -> AnyVariable:
    """Any number of values; all of them unless told otherwise, those that come later too."""
    return _of_query(name, label, query).multi(True).include_all(True).all_value(".*").current(_ALL)


def _of_query(name: str, label: str, query: str) -> build.QueryVariable:
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


def _to_others(uid: str) -> list[build.DashboardLink]:
    """Links at the top. Not by tag with all variables: all groups of the fleet are no group for another dashboard."""
    others = {"All groups": FLEET_UID, "The monitor itself": MONITOR_UID, "Runbook": RUNBOOK_UID}
    is_asking = uid != RUNBOOK_UID
    return [
        build.DashboardLink(title)
        .url(of_same_clusters(other) if is_asking and other != RUNBOOK_UID else f"/d/{other}")
        .keep_time(True)
        for title, other in others.items()
        if other != uid
    ]


def board(
    uid: str,
    title: str,
    about: str,
    variables: Sequence[AnyVariable],
    rows: Rows,
) -> build.Dashboard:
    """A dashboard with its rows, and links to the others."""
    made = build.Dashboard(title).uid(uid).description(about).tags([TAG, "kafka"]).time("now-1h", "now").refresh("30s")
    made.timezone("browser").tooltip(dashboard.DashboardCursorSync.CROSSHAIR).readonly()
    made.variables(list(variables)).links(list(_to_others(uid)))
    for row, panels in rows.items():
        made.with_row(build.Row(row))
        for panel in panels:
            made.with_panel(panel)
    return made


def with_events(made: build.Dashboard, events: Sequence[Event]) -> build.Dashboard:
    """Draw these into all panels over time."""
    return made.annotations([_Events(event) for event in events])


def written(made: build.Dashboard) -> str:
    """The dashboard as JSON, its panels without a number numbered in the order in which they stand."""
    model = made.build()
    for number, panel in enumerate(model.panels or [], start=1):
        panel.id_val = panel.id_val or number
    return json.dumps(model, cls=JSONEncoder, indent=2, ensure_ascii=False) + "\n"
