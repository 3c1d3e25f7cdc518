"""Create the panels of all dashboards. Each panel has a title, a description and queries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Protocol, TypeVar

from grafana_foundation_sdk.builders import common, heatmap, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard
from grafana_foundation_sdk.models import prometheus as query_options
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale

from dashboards.words import NEITHER, Steps, thresholds
from streaming.signals import PARTITION, SIGNALS, exported_names

AUTOMATIC = "__auto"
"""Grafana's legend that consists of the labels in which the series differ."""
SOURCE = dashboard.DataSourceRef("prometheus", "${datasource}")
AnyPanel = Builder[dashboard.Panel]

_DETAILS = frozenset(
    name for signal in SIGNALS.values() if signal.granularity == PARTITION for name in exported_names(signal)
)
_HEATMAP_COLORS = 64
_ONLY_DETAILS = (
    "By default, the monitor exports these series only for the 20 worst groups (setting `metrics.top_k`). With "
    '`metrics.granularity = "partition"`, the monitor exports these series for all groups.'
)


@dataclass(frozen=True)
class PanelSpec:
    """The size of a panel, and the texts that explain how to read the panel."""

    title: str
    how_to_read: str
    if_empty: str
    empty_text: str = "unknown"
    width: int = 12
    height: int = 8


@dataclass(frozen=True)
class Query:
    """One query of a panel with a time axis."""

    expression: str
    legend: str


@dataclass(frozen=True)
class DisplayOptions:
    """How a panel shows values.

    `colors` maps the legend of a line to its colour. A line is dashed if `limits` contains its legend. `maximum` is the
    largest possible value.
    """

    unit: str = "short"
    steps: Steps = ()
    mappings: Sequence[dashboard.ValueMapping] = ()
    colors: Mapping[str, str] = field(default_factory=dict)
    limits: Sequence[str] = ()
    maximum: float | None = None


COUNT = DisplayOptions()


class _PanelBuilder(Protocol):
    """The methods that all panel builders have (the SDK has no common type)."""

    def title(self, title: str) -> object: ...
    def description(self, description: str) -> object: ...
    def datasource(self, datasource: dashboard.DataSourceRef) -> object: ...
    def span(self, w: int) -> object: ...
    def height(self, h: int) -> object: ...
    def no_value(self, no_value: str) -> object: ...
    def targets(self, targets: list[Builder[Dataquery]]) -> object: ...
    def thresholds(self, thresholds: Builder[dashboard.ThresholdsConfig]) -> object: ...


Panel = TypeVar("Panel", bound=_PanelBuilder)


def fill_panel(panel: Panel, spec: PanelSpec, targets: Sequence[prometheus.Dataquery], steps: Steps = ()) -> Panel:
    """Set the texts, the size and the queries of a panel. The queries get the names A, B, ...

    If a query needs detailed metrics, the description explains that only the worst groups have details. If all queries
    need detailed metrics, the text of the empty panel contains a short note.
    """
    need_details = [not _DETAILS.isdisjoint(re.findall(r"\w+", target.build().expr)) for target in targets]
    if_empty = f"{spec.if_empty} {_ONLY_DETAILS}" if any(need_details) else spec.if_empty
    note = "; only the worst groups have details" if need_details and all(need_details) else ""
    panel.title(spec.title)
    panel.description(f"{spec.how_to_read}\n\n**Nothing shown:** {if_empty}")
    panel.datasource(SOURCE)
    panel.span(spec.width)
    panel.height(spec.height)
    panel.no_value(spec.empty_text + note)
    panel.targets([target.ref_id(name) for name, target in zip(ascii_uppercase, targets, strict=False)])
    panel.thresholds(build.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(thresholds(steps)))
    return panel


def instant_query(expression: str) -> prometheus.Dataquery:
    """Return a query for the values at the end of the time range."""
    return _query_now(expression).format(query_options.PromQueryFormat.TABLE)


def _query_now(expression: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().datasource(SOURCE).expr(expression).legend_format(AUTOMATIC).instant()


def range_query(query: Query) -> prometheus.Dataquery:
    """Return a query for the complete time range."""
    return prometheus.Dataquery().datasource(SOURCE).expr(query.expression).legend_format(query.legend).range()


def stat_panel(
    spec: PanelSpec, expression: str, display: DisplayOptions = COUNT, link: build.DashboardLink | None = None
) -> AnyPanel:
    """Return a panel with one current number or word. The colour comes from the mappings or thresholds of `display`."""
    panel = fill_panel(stat.Panel(), spec, [_query_now(expression)], display.steps)
    panel.unit(display.unit).mappings(list(display.mappings)).graph_mode(options.BigValueGraphMode.NONE)
    is_evaluated = display.steps or display.mappings
    mode = dashboard.FieldColorModeId.THRESHOLDS if is_evaluated else dashboard.FieldColorModeId.FIXED
    panel.color_scheme(_color(mode))
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return panel.data_links([link] if link else [])


def line_panel(
    spec: PanelSpec, queries: Sequence[Query], display: DisplayOptions = COUNT, link: build.DashboardLink | None = None
) -> AnyPanel:
    """Return a panel with lines over time. A line without an entry in `colors` has a shade of blue.

    The panel also shows the thresholds as lines.
    """
    panel = _graph(spec, queries, display).line_width(1).show_points(options.VisibilityMode.NEVER)
    if display.steps:
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(options.GraphTresholdsStyleMode.DASHED))
    return panel.data_links([link] if link else [])


def bar_panel(spec: PanelSpec, queries: Sequence[Query], display: DisplayOptions = COUNT) -> AnyPanel:
    """Return a panel with stacked bars. The time of a bar is the end of its time step."""
    panel = _graph(spec, queries, display).draw_style(options.GraphDrawStyle.BARS).fill_opacity(80).line_width(0)
    panel.bar_alignment(options.BarAlignment.BEFORE)
    return panel.stacking(common.StackingConfig().mode(options.StackingMode.NORMAL))


def _graph(spec: PanelSpec, queries: Sequence[Query], display: DisplayOptions) -> timeseries.Panel:
    panel = fill_panel(timeseries.Panel(), spec, [range_query(query) for query in queries], display.steps)
    panel.unit(display.unit).min(0).color_scheme(_color(dashboard.FieldColorModeId.SHADES))
    if display.maximum is not None:
        panel.max(display.maximum)
    for legend, color in display.colors.items():
        fixed = {"mode": dashboard.FieldColorModeId.FIXED, "fixedColor": color}
        properties = [dashboard.DynamicConfigValue("color", fixed)]
        if legend in display.limits:
            properties.append(dashboard.DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 10]}))
        panel.override_by_name(legend, properties)
    panel.legend(common.VizLegendOptions().show_legend(True).display_mode(options.LegendDisplayMode.LIST))
    shown = common.VizTooltipOptions().mode(options.TooltipDisplayMode.MULTI).sort(options.SortOrder.DESCENDING)
    return panel.tooltip(shown)


def timeline_panel(spec: PanelSpec, queries: Sequence[Query], mappings: Sequence[dashboard.ValueMapping]) -> AnyPanel:
    """Return a panel with one row per series. A row shows the word and colour of each value over time."""
    panel = fill_panel(statetimeline.Panel(), spec, [range_query(query) for query in queries]).mappings(list(mappings))
    panel.merge_values(True).show_value(options.VisibilityMode.AUTO).row_height(0.8).fill_opacity(80).line_width(0)
    return panel.legend(common.VizLegendOptions().show_legend(False).display_mode(options.LegendDisplayMode.HIDDEN))


def heatmap_panel(spec: PanelSpec, expression: str, unit: str) -> AnyPanel:
    """Return a heat map of a histogram's buckets over time.

    A darker colour means a larger number. The result of `expression` must have the label `le`.
    """
    target = range_query(Query(expression, "{{le}}")).format(query_options.PromQueryFormat.HEATMAP)
    panel = fill_panel(heatmap.Panel(), spec, [target]).calculate(False).y_axis(heatmap.YAxisConfig().unit(unit))
    colors = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.OPACITY).scale(HeatmapColorScale.EXPONENTIAL)
    panel.color(colors.fill(NEITHER).exponent(0.5).steps(_HEATMAP_COLORS)).show_legend().show_tooltip()
    return panel.filter_values(heatmap.FilterValueRange().le(1e-9)).cell_gap(1)


def _color(mode: dashboard.FieldColorModeId) -> build.FieldColor:
    return build.FieldColor().mode(mode).fixed_color(NEITHER)
