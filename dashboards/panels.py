"""Panels of few kinds, each with a title, a description and queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Protocol, TypeVar

from grafana_foundation_sdk.builders import bargauge, common, heatmap, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard
from grafana_foundation_sdk.models import prometheus as query_options
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode

from dashboards.words import NEITHER, Steps, thresholds

SOURCE = dashboard.DataSourceRef("prometheus", "${datasource}")
AnyPanel = Builder[dashboard.Panel]


@dataclass(frozen=True)
class Card:
    """What a panel says of itself: how it is read, what it means that it is empty, and the words in its place."""

    title: str
    reads: str
    absent: str
    empty: str = "not known"
    width: int = 12
    height: int = 8

    @property
    def description(self) -> str:
        """Grafana shows it as Markdown."""
        return f"{self.reads}\n\n**Nothing shown:** {self.absent}"


@dataclass(frozen=True)
class Query:
    """One query of a panel over time."""

    expression: str
    legend: str = "__auto"


@dataclass(frozen=True)
class Look:
    """How values are shown. `colors` are by legend; `top` is the largest value there can be."""

    unit: str = "short"
    steps: Steps = ()
    mappings: Sequence[dashboard.ValueMapping] = ()
    colors: Mapping[str, str] = field(default_factory=dict)
    top: float | None = None


COUNT = Look()


class _Fillable(Protocol):
    """What the builders of all panels have in common; the SDK has no name for it."""

    def title(self, title: str) -> object: ...
    def description(self, description: str) -> object: ...
    def datasource(self, datasource: dashboard.DataSourceRef) -> object: ...
    def span(self, w: int) -> object: ...
    def height(self, h: int) -> object: ...
    def no_value(self, no_value: str) -> object: ...
    def targets(self, targets: list[Builder[Dataquery]]) -> object: ...
    def thresholds(self, thresholds: Builder[dashboard.ThresholdsConfig]) -> object: ...


Panel = TypeVar("Panel", bound=_Fillable)


def filled(panel: Panel, card: Card, targets: Sequence[prometheus.Dataquery], steps: Steps = ()) -> Panel:
    """Give a panel its card and its queries, which are called A, B and so on."""
    panel.title(card.title)
    panel.description(card.description)
    panel.datasource(SOURCE)
    panel.span(card.width)
    panel.height(card.height)
    panel.no_value(card.empty)
    panel.targets([target.ref_id(name) for name, target in zip(ascii_uppercase, targets, strict=False)])
    panel.thresholds(build.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(thresholds(steps)))
    return panel


def now(expression: str) -> prometheus.Dataquery:
    """A query for the end of the time range only, as a table."""
    target = prometheus.Dataquery().datasource(SOURCE).expr(expression).instant()
    return target.format(query_options.PromQueryFormat.TABLE)


def over_time(query: Query) -> prometheus.Dataquery:
    """A query for the whole time range."""
    return prometheus.Dataquery().datasource(SOURCE).expr(query.expression).legend_format(query.legend).range()


def figure(card: Card, expression: str, look: Look = COUNT, link: build.DashboardLink | None = None) -> AnyPanel:
    """One number or word of now, coloured by its mapping or its threshold."""
    target = prometheus.Dataquery().datasource(SOURCE).expr(expression).instant()
    panel = filled(stat.Panel(), card, [target], look.steps).unit(look.unit).mappings(list(look.mappings))
    panel.color_scheme(_color_of_now(look)).graph_mode(options.BigValueGraphMode.NONE)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return panel.data_links([link] if link else [])


def lines(card: Card, queries: Sequence[Query], look: Look = COUNT) -> AnyPanel:
    """Lines over time, all shades of one colour but those that have their own. Thresholds are drawn."""
    panel = _graph(card, queries, look).line_width(1).show_points(options.VisibilityMode.NEVER)
    if look.steps:
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(options.GraphTresholdsStyleMode.DASHED))
    return panel


def bars(card: Card, queries: Sequence[Query], look: Look = COUNT) -> AnyPanel:
    """Stacked bars, each for the step of time that ends with it."""
    panel = _graph(card, queries, look).draw_style(options.GraphDrawStyle.BARS).fill_opacity(80).line_width(0)
    panel.bar_alignment(options.BarAlignment.BEFORE)
    return panel.stacking(common.StackingConfig().mode(options.StackingMode.NORMAL))


def _graph(card: Card, queries: Sequence[Query], look: Look) -> timeseries.Panel:
    panel = filled(timeseries.Panel(), card, [over_time(query) for query in queries], look.steps)
    panel.unit(look.unit).min(0).color_scheme(_color(dashboard.FieldColorModeId.SHADES, NEITHER))
    if look.top is not None:
        panel.max(look.top)
    for legend, color in look.colors.items():
        fixed = {"mode": dashboard.FieldColorModeId.FIXED, "fixedColor": color}
        panel.override_by_name(legend, [dashboard.DynamicConfigValue("color", fixed)])
    panel.legend(common.VizLegendOptions().show_legend(True).display_mode(options.LegendDisplayMode.LIST))
    shown = common.VizTooltipOptions().mode(options.TooltipDisplayMode.MULTI).sort(options.SortOrder.DESCENDING)
    return panel.tooltip(shown)


def words_over_time(card: Card, queries: Sequence[Query], mappings: Sequence[dashboard.ValueMapping]) -> AnyPanel:
    """One row for each series, in it the word and colour that its value stands for."""
    panel = filled(statetimeline.Panel(), card, [over_time(query) for query in queries]).mappings(list(mappings))
    panel.merge_values(True).show_value(options.VisibilityMode.AUTO).row_height(0.8).fill_opacity(80).line_width(0)
    return panel.legend(common.VizLegendOptions().show_legend(False).display_mode(options.LegendDisplayMode.HIDDEN))


def buckets_over_time(card: Card, expression: str, unit: str) -> AnyPanel:
    """How much of a histogram fell into each bucket, the darker the more. `expression` has the label `le`."""
    target = over_time(Query(expression, "{{le}}")).format(query_options.PromQueryFormat.HEATMAP)
    panel = filled(heatmap.Panel(), card, [target]).calculate(False).y_axis(heatmap.YAxisConfig().unit(unit))
    panel.color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.OPACITY).fill(NEITHER).exponent(0.5))
    return panel.hide_legend().filter_values(heatmap.FilterValueRange().le(1e-9)).cell_gap(1)


def bars_of_now(card: Card, queries: Sequence[Query], look: Look = COUNT) -> AnyPanel:
    """One bar for each series; the longest first if the query sorts."""
    targets = [over_time(query).instant() for query in queries]
    panel = filled(bargauge.Panel(), card, targets, look.steps).unit(look.unit).min(0)
    if look.top is not None:
        panel.max(look.top)
    panel.color_scheme(_color_of_now(look)).display_mode(options.BarGaugeDisplayMode.BASIC)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    return panel.orientation(options.VizOrientation.HORIZONTAL)


def _color_of_now(look: Look) -> build.FieldColor:
    is_evaluated = look.steps or look.mappings
    mode = dashboard.FieldColorModeId.THRESHOLDS if is_evaluated else dashboard.FieldColorModeId.FIXED
    return _color(mode, NEITHER)


def _color(mode: dashboard.FieldColorModeId, color: str) -> build.FieldColor:
    return build.FieldColor().mode(mode).fixed_color(color)
