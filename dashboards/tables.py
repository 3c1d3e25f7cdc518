"""Create tables of current values. Each column shows a label or the values of a query.

A label is *shared* if all queries of a table return it. Grafana merges rows with equal values of all shared labels. So
each query must return exactly one row for each combination of shared labels. In a table with one row per condition,
each query must return a value for every condition (`promql.repeat_for_rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from grafana_foundation_sdk.builders import common, table
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard

from dashboards.panels import AnyPanel, PanelSpec, fill_panel, instant_query
from dashboards.promql import Scope
from dashboards.words import SECONDS_BEHIND, STATUSES, Steps, label_mappings, thresholds
from streaming.signals import Signal
from streaming.signals.partitions import PARTITION_LAG_SECONDS, PARTITION_STATUS


@dataclass(frozen=True)
class Label:
    """A column that shows one label."""

    title: str
    label: str
    mappings: Sequence[dashboard.ValueMapping] = ()
    links: Sequence[build.DashboardLink] = ()
    width: int | None = None


@dataclass(frozen=True)
class Measure:
    """A column that shows the values of a query. If `title` is empty, the column is hidden."""

    title: str
    expression: str
    unit: str = "short"
    steps: Steps = ()
    mappings: Sequence[dashboard.ValueMapping] = ()
    links: Sequence[build.DashboardLink] = ()


Column = Label | Measure
_HIDDEN_FIELDS = ("Time", "cluster", "group", "topic", "group_instance_id")
"""Fields of query results that are hidden if the table has no column for them."""


def ranked_table(spec: PanelSpec, columns: Sequence[Column], *, sort_by: str, largest_first: bool = True) -> AnyPanel:
    """Return a table that is sorted by the column with the title `sort_by`."""
    measures = [column for column in columns if isinstance(column, Measure)]
    panel = fill_panel(table.Panel(), spec, [instant_query(measure.expression) for measure in measures])
    panel.with_transformation(dashboard.DataTransformerConfig("merge", options={}))
    panel.with_transformation(dashboard.DataTransformerConfig("organize", options=_column_order(columns)))
    panel.sort_by([common.TableSortByFieldState().display_name(sort_by).desc(largest_first)]).cell_height(
        options.TableCellHeight.SM
    )
    for column in columns:
        panel.override_by_name(column.title, _properties(column))
    return panel


def _column_order(columns: Sequence[Column]) -> dict[str, object]:
    fields = dict(zip(_fields(columns), columns, strict=True))
    return {
        "renameByName": {field: column.title for field, column in fields.items() if column.title},
        "indexByName": {field: position for position, field in enumerate(fields)},
        "excludeByName": dict.fromkeys((field for field in _HIDDEN_FIELDS if field not in fields), True)
        | {field: True for field, column in fields.items() if not column.title},
    }


def _fields(columns: Sequence[Column]) -> list[str]:
    """Return Grafana's field name of each column. With several queries, the field name contains the query's name."""
    measures = [column for column in columns if isinstance(column, Measure)]
    names = {id(one): f"Value #{name}" for name, one in zip(ascii_uppercase, measures, strict=False)}
    if len(measures) == 1:
        names = {id(measures[0]): "Value"}
    return [column.label if isinstance(column, Label) else names[id(column)] for column in columns]


def _properties(column: Column) -> list[dashboard.DynamicConfigValue]:
    properties: dict[str, object] = {}
    if column.mappings:
        properties |= {"mappings": list(column.mappings), "custom.cellOptions": options.TableColorTextCellOptions()}
    if column.links:
        properties["links"] = [link.build() for link in column.links]
    if isinstance(column, Label):
        if column.width is not None:
            properties["custom.width"] = column.width
    else:
        properties["unit"] = column.unit
        if column.steps:
            limits = dashboard.ThresholdsConfig(dashboard.ThresholdsMode.ABSOLUTE, thresholds(column.steps))
            coloured = options.TableColorTextCellOptions()
            properties |= {"thresholds": limits, "color": {"mode": "thresholds"}, "custom.cellOptions": coloured}
    return [dashboard.DynamicConfigValue(name, value) for name, value in properties.items()]


def lagging_partitions_table(spec: PanelSpec, scope: Scope, key: Label, selected: str) -> AnyPanel:
    """Return a table of partitions with their lag and status, the largest lag first.

    `selected` is a query for the lag of the shown partitions. The column `key` and the partition number together
    identify a row. `key` is the topic on a group's dashboard, and the group on a topic's dashboard.
    """

    def of_selected(signal: Signal) -> str:
        return f"{scope.series(signal)} and on ({key.label}, partition) {selected}"

    columns: list[Column] = [
        *(key, Label("Partition", "partition")),
        Measure("Lag in records", selected),
        Measure("Lag in seconds", of_selected(PARTITION_LAG_SECONDS), unit="s", steps=SECONDS_BEHIND),
        Label("Status", "status", label_mappings(STATUSES)),
        Measure("", of_selected(PARTITION_STATUS)),
    ]
    return ranked_table(spec, columns, sort_by="Lag in records")
