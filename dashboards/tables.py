"""Tables of now: each column is a label or a query of its own.

Rows become one if they agree in the labels that all queries of the table have. So each query must have one row for
those: what is told of less (a group) than the rows (its conditions) is repeated for each of them (`promql.repeated`).
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
from dashboards.words import Steps, thresholds


@dataclass(frozen=True)
class Label:
    """A column that holds a label of the rows."""

    title: str
    label: str
    mappings: Sequence[dashboard.ValueMapping] = ()
    links: Sequence[build.DashboardLink] = ()
    width: int | None = None


@dataclass(frozen=True)
class Measure:
    """A column that holds a query's values; `title` empty where only its labels are wanted."""

    title: str
    expression: str
    unit: str = "short"
    steps: Steps = ()
    mappings: Sequence[dashboard.ValueMapping] = ()


Column = Label | Measure
_HIDDEN_FIELDS = ("Time", "cluster", "group", "group_instance_id")
"""What answers have, and a table shows only if it has a column for it."""


def ranked_table(spec: PanelSpec, columns: Sequence[Column], *, sort_by: str, largest_first: bool = True) -> AnyPanel:
    """A table, rows in the order of the column titled `by`."""
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
    """Name the columns, put them in order, and leave out time and values that nobody wants to read."""
    fields = dict(zip(_fields(columns), columns, strict=True))
    return {
        "renameByName": {field: column.title for field, column in fields.items() if column.title},
        "indexByName": {field: position for position, field in enumerate(fields)},
        "excludeByName": dict.fromkeys((field for field in _HIDDEN_FIELDS if field not in fields), True)
        | {field: True for field, column in fields.items() if not column.title},
    }


def _fields(columns: Sequence[Column]) -> list[str]:
    """What Grafana calls each column: values are told apart by their query if there is more than one."""
    measures = [column for column in columns if isinstance(column, Measure)]
    names = {id(one): f"Value #{name}" for name, one in zip(ascii_uppercase, measures, strict=False)}
    if len(measures) == 1:
        names = {id(measures[0]): "Value"}
    return [column.label if isinstance(column, Label) else names[id(column)] for column in columns]


def _properties(column: Column) -> list[dashboard.DynamicConfigValue]:
    properties: dict[str, object] = {}
    if column.mappings:
        properties |= {"mappings": list(column.mappings), "custom.cellOptions": options.TableColorTextCellOptions()}
    if isinstance(column, Label):
        if column.links:
            properties["links"] = [link.build() for link in column.links]
        if column.width is not None:
            properties["custom.width"] = column.width
    else:
        properties["unit"] = column.unit
        if column.steps:
            limits = dashboard.ThresholdsConfig(dashboard.ThresholdsMode.ABSOLUTE, thresholds(column.steps))
            coloured = options.TableColorTextCellOptions()
            properties |= {"thresholds": limits, "color": {"mode": "thresholds"}, "custom.cellOptions": coloured}
    return [dashboard.DynamicConfigValue(name, value) for name, value in properties.items()]
