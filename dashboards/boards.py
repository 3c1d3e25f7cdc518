"""Create the common parts of all dashboards: variables, links, panel ids and the JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard

from dashboards.panels import SOURCE, AnyPanel
from dashboards.promql import ONE_CLUSTER
from streaming.signals.monitor import MONITOR_INFO

FLEET_UID, GROUP_UID, TOPIC_UID = "rebalance-monitor-fleet", "rebalance-monitor-group", "rebalance-monitor-topic"
MONITOR_UID, RUNBOOK_UID = "rebalance-monitor-itself", "rebalance-monitor-runbook"
TAG = "rebalance-monitor"
GRID_WIDTH = 24

AnyVariable = Builder[dashboard.VariableModel]
AnyPanelModel = dashboard.Panel | dashboard.RowPanel

_SAME_TIME = "${__url_time_range}"
_SAME_SOURCE = "${datasource:queryparam}"
_SAME_CLUSTER = "${cluster:queryparam}"
_ALL = dashboard.VariableOption(selected=True, text="All", value="$__all")
_WITH_ONE_CLUSTER = frozenset({GROUP_UID, TOPIC_UID})
"""Dashboards whose variable `cluster` has one value. A link to them must not pass the value "all clusters"."""


@dataclass(frozen=True)
class Row:
    """A row of a dashboard. Grafana does not run the queries of a collapsed row.

    A row contains one or more lines of panels. Each line is 24 units wide. All panels of a line have the same height.
    """

    title: str
    panels: Sequence[AnyPanel]
    is_collapsed: bool = False


def topic_dashboard_url(cluster: str, topic: str) -> str:
    """Return the URL of a topic's dashboard. The arguments are Grafana variables or fields."""
    return f"/d/{TOPIC_UID}?{_SAME_SOURCE}&var-cluster={cluster}&var-topic={topic}&{_SAME_TIME}"


def dashboard_url(uid: str) -> str:
    """Return the URL of a dashboard that can show several clusters. The user's selection of clusters stays the same."""
    return f"/d/{uid}?{_SAME_SOURCE}&{_SAME_CLUSTER}"


def group_link(cluster: str = "${__data.fields.cluster:percentencode}") -> build.DashboardLink:
    """Return the link from a group in a table to the dashboard of this group."""
    group = "${__data.fields.group:percentencode}"
    url = f"/d/{GROUP_UID}?{_SAME_SOURCE}&var-cluster={cluster}&var-group={group}&{_SAME_TIME}"
    return build.DashboardLink("This group's dashboard").url(url)


def source_variable() -> AnyVariable:
    """Return the variable for the Prometheus data source."""
    return build.DatasourceVariable("datasource").label("Data source").type("prometheus")


def page_url_variable() -> AnyVariable:
    """Return the hidden variable for the address of the monitor's pages.

    If the setting `[links] page_url` is empty, the variable is the address that Prometheus scrapes.
    """
    configured, empty = (ONE_CLUSTER.selector(MONITOR_INFO, one) for one in ('page_url!=""', 'page_url=""'))
    address = f'{configured} or label_replace({empty}, "page_url", "http://$1", "instance", "(.+)")'
    variable = single_choice_variable("page_url", "Monitor's pages", f"query_result(max by (page_url) ({address}))")
    variable.regex('/page_url="([^"]*)"/').hide(dashboard.VariableHide.HIDE_VARIABLE)
    variable.build().skip_url_sync = True  # the builder has no method; a link to Grafana must not set this address
    return variable


def top_variable() -> AnyVariable:
    """Return the variable for the maximum number of rows in a table of the worst groups."""
    ten = dashboard.VariableOption(selected=True, text="10", value="10")
    return build.CustomVariable("top").label("Worst").values("10,20,50,100").current(ten)


def single_choice_variable(name: str, label: str, query: str) -> build.QueryVariable:
    """Return a variable for one label value from Prometheus."""
    variable = build.QueryVariable(name).label(label).datasource(SOURCE).query(query)
    in_order = dashboard.VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC
    return variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(in_order)


def multiple_choice_variable(name: str, label: str, query: str) -> AnyVariable:
    """Return a variable for several label values. The default, "All", includes values that appear later."""
    return single_choice_variable(name, label, query).multi(True).include_all(True).all_value(".*").current(_ALL)


class Event(dashboard.AnnotationQuery, Builder[dashboard.AnnotationQuery]):
    """A vertical line at each time at which a Prometheus query has a value.

    The SDK's class for annotations has no fields for titles, so `to_json` adds the title.
    """

    def __init__(self, name: str, expression: str, title: str, color: str) -> None:
        super().__init__(name=name, datasource=SOURCE, expr=expression, icon_color=color)
        self._title = title

    def to_json(self) -> dict[str, object]:
        """Return the JSON object that Grafana's Prometheus plugin needs."""
        return super().to_json() | {"titleFormat": self._title, "step": "15s"}

    def build(self) -> dashboard.AnnotationQuery:
        """Return this object."""
        return self


def _links_to_other_dashboards(uid: str) -> list[build.DashboardLink]:
    others = {"All groups": FLEET_UID, "Topics": TOPIC_UID, "The monitor itself": MONITOR_UID, "Runbook": RUNBOOK_UID}
    return [
        build.DashboardLink(title).url(_url_from(uid, other)).keep_time(True)
        for title, other in others.items()
        if other != uid
    ]


def _url_from(uid: str, other: str) -> str:
    """Return a URL that contains only variables that the dashboard `other` can use."""
    if RUNBOOK_UID in (uid, other):
        return f"/d/{other}"
    if other in _WITH_ONE_CLUSTER and uid not in _WITH_ONE_CLUSTER:
        return f"/d/{other}?{_SAME_SOURCE}"
    return dashboard_url(other)


def create_dashboard(
    uid: str, title: str, about: str, variables: Sequence[AnyVariable], rows: Sequence[Row]
) -> build.Dashboard:
    """Return a dashboard with `rows`, and with links to the other dashboards."""
    result = (
        build.Dashboard(title).uid(uid).description(about).tags([TAG, "kafka"]).time("now-1h", "now").refresh("30s")
    )
    result.timezone("browser").tooltip(dashboard.DashboardCursorSync.CROSSHAIR).readonly()
    result.variables(list(variables)).links(list(_links_to_other_dashboards(uid)))
    for row in rows:
        # In the JSON, a collapsed row contains its panels, but the panels of an open row follow the row.
        header = build.Row(row.title).collapsed(row.is_collapsed)
        for panel in row.panels if row.is_collapsed else ():
            header.with_panel(panel)
        result.with_row(header)
        for panel in () if row.is_collapsed else row.panels:
            result.with_panel(panel)
    return result


def as_json_text(source: build.Dashboard) -> str:
    """Return the dashboard as JSON. If a panel has no id, the position of the panel is its id."""
    model = source.build()
    panels = model.panels or []
    _place(panels, top=0)
    for number, panel in enumerate(_with_panels_of_rows(panels), start=1):
        panel.id_val = panel.id_val or number
    return json.dumps(model, cls=JSONEncoder, indent=2, ensure_ascii=False) + "\n"


def _place(panels: Sequence[AnyPanelModel], top: int) -> None:
    """Place panels from left to right. The positions in a collapsed row are correct if the user opens only this row."""
    left, height = 0, 0
    for panel in panels:
        place = panel.grid_pos = panel.grid_pos or dashboard.GridPos(w=GRID_WIDTH, h=1)
        if left + place.w > GRID_WIDTH:
            left, top, height = 0, top + height, 0
        place.x, place.y = left, top
        left, height = left + place.w, max(height, place.h)
        if isinstance(panel, dashboard.RowPanel):
            _place(panel.panels, top + 1)


def _with_panels_of_rows(panels: Sequence[AnyPanelModel]) -> Iterator[AnyPanelModel]:
    for panel in panels:
        yield panel
        if isinstance(panel, dashboard.RowPanel):
            yield from panel.panels
