"""Create the common parts of all dashboards: variables, links, panel numbers and the JSON text."""

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
"""Maps the title of a row to its panels.

Each line of panels is 24 units wide. All panels in one line have the same height.
"""

_SAME_TIME = "${__url_time_range}"
_SAME_SOURCE = "${datasource:queryparam}"
_ALL = dashboard.VariableOption(selected=True, text="All", value="$__all")


def group_dashboard_url(cluster: str, group: str) -> str:
    """Return the URL of a group's dashboard. The arguments are Grafana variables or fields."""
    return f"/d/{GROUP_UID}?{_SAME_SOURCE}&var-cluster={cluster}&var-group={group}&{_SAME_TIME}"


def dashboard_url(uid: str) -> str:
    """Return the URL of a dashboard that can show several clusters.

    The URL contains the clusters that are selected in the current dashboard.
    """
    return f"/d/{uid}?{_SAME_SOURCE}&${{cluster:queryparam}}"


def monitor_page_url(cluster: str, group: str) -> str:
    """Return the URL of the monitor's page for a group. The arguments are Grafana variables or fields."""
    return f"${{monitor}}/groups/?id={group}&cluster={cluster}"


def group_links() -> list[build.DashboardLink]:
    """Return the links for the table column that contains group names."""
    cluster, group = "${__data.fields.cluster:percentencode}", "${__data.fields.group:percentencode}"
    page = build.DashboardLink("This group's page at the monitor: members, rebalances, what-if").url(
        monitor_page_url(cluster, group)
    )
    return [
        build.DashboardLink("This group's dashboard").url(group_dashboard_url(cluster, group)),
        page.target_blank(True),
    ]


def source_variable() -> AnyVariable:
    """Return the variable for the Prometheus data source."""
    return build.DatasourceVariable("datasource").label("Data source").type("prometheus")


def monitor_variable() -> AnyVariable:
    """Return the variable for the address of the monitor's pages. No metric contains this address."""
    about = "Address at which your browser reaches the monitor, for links to its pages"
    return (
        build.TextBoxVariable("monitor")
        .label("Monitor's address")
        .description(about)
        .default_value("http://localhost:9560")
    )


def top_variable() -> AnyVariable:
    """Return the variable for the maximum number of rows in a table of the worst groups."""
    ten = dashboard.VariableOption(selected=True, text="10", value="10")
    return build.CustomVariable("top").label("Worst").values("10,20,50,100").current(ten)


def single_choice_variable(name: str, label: str, query: str) -> AnyVariable:
    """Return a variable for one label value from Prometheus."""
    return _query_variable(name, label, query)


def multiple_choice_variable(name: str, label: str, query: str) -> AnyVariable:
    """Return a variable for several label values. The default, "All", includes values that appear later."""
    return _query_variable(name, label, query).multi(True).include_all(True).all_value(".*").current(_ALL)


def _query_variable(name: str, label: str, query: str) -> build.QueryVariable:
    variable = build.QueryVariable(name).label(label).datasource(SOURCE).query(query)
    in_order = dashboard.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC
    return variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(in_order)


class Event(dashboard.AnnotationQuery):
    """An annotation, which draws a vertical line at each time at which a Prometheus query has a value.

    The class exists because the SDK's class for annotations has no fields for titles.
    """

    def __init__(self, name: str, expression: str, title: str, color: str) -> None:
        super().__init__(name=name, datasource=SOURCE, expr=expression, icon_color=color)
        self._title = title

    def to_json(self) -> dict[str, object]:
        """Return the JSON object that Grafana's Prometheus plugin needs."""
        return super().to_json() | {"titleFormat": self._title, "step": "15s"}


class _Events(Builder[dashboard.AnnotationQuery]):
    def __init__(self, event: Event) -> None:
        self._event = event

    def build(self) -> dashboard.AnnotationQuery:
        return self._event


def _links_to_other_dashboards(uid: str) -> list[build.DashboardLink]:
    """Return the links at the top of a dashboard.

    The links do not contain all variables, because the dashboard of one group cannot show the value "all groups".
    """
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
    """Return a dashboard that contains `rows`, and links to the other dashboards."""
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


def add_events(target: build.Dashboard, events: Sequence[Event]) -> build.Dashboard:
    """Show `events` in all panels that have a time axis."""
    return target.annotations([_Events(event) for event in events])


def as_json_text(source: build.Dashboard) -> str:
    """Return the dashboard as JSON. Panels without a number are numbered by their position."""
    model = source.build()
    for number, panel in enumerate(model.panels or [], start=1):
        panel.id_val = panel.id_val or number
    return json.dumps(model, cls=JSONEncoder, indent=2, ensure_ascii=False) + "\n"
