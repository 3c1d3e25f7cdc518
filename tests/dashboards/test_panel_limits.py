"""Test the dashboards against the limits of Grafana's panels.

The limits come from the schemas that Grafana publishes: `dashboard_kind.cue` and the `panelcfg.cue` of each panel. The
builders of Grafana's foundation SDK check them, but only for values that a program sets. A value that no program sets
can still be outside of its limits: the SDK wrote `"steps": 0`, and Grafana computed an empty palette from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import pytest

from tests.grafana import Dashboard, dashboards

BOARDS = dashboards()
EACH = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)


@dataclass(frozen=True)
class Limit:
    """The smallest and the largest value of an option. `panel_type` is the only type of panel with this option."""

    path: str
    smallest: float
    largest: float
    why: str
    panel_type: str | None = None


LIMITS = (
    Limit("gridPos.w", 1, 24, "the grid has 24 columns"),
    Limit("gridPos.x", 0, 23, "the grid has 24 columns"),
    Limit("gridPos.h", 1, 1_000, "a panel without height is not visible"),
    Limit("gridPos.y", 0, 10_000, "the grid begins at 0"),
    Limit("fieldConfig.defaults.decimals", 0, 20, "JavaScript's toFixed fails for a negative number"),
    Limit("fieldConfig.defaults.custom.fillOpacity", 0, 100, "a percentage"),
    Limit("fieldConfig.defaults.custom.lineWidth", 0, 10, "pixels"),
    Limit("options.rowHeight", 0.01, 1, "a share of the available height; 0 hides the rows", "state-timeline"),
    Limit("options.color.steps", 2, 128, "the number of colours of the palette", "heatmap"),
    Limit("options.color.exponent", 0.01, 10, "with the exponent 0, all cells have one colour", "heatmap"),
    Limit("options.cellGap", 0, 25, "pixels", "heatmap"),
)
REQUIRED = ("options.color.steps", "options.color.exponent", "options.cellGap", "options.rowHeight", "gridPos.w")
"""Options that every panel of their type must have, so that a renamed option does not switch its check off."""

REFRESH_INTERVALS = ("5s", "10s", "30s", "1m", "5m", "15m", "30m", "1h", "2h", "1d")
"""The intervals of Grafana's refresh picker. A server can forbid intervals below its `min_refresh_interval`, 5 s."""

LONGEST_UID = 40


def option(panel: dict[str, Any], path: str) -> Any:  # noqa: ANN401 - JSON
    """Return the value at a path, or None."""
    return reduce(lambda node, name: node.get(name) if isinstance(node, dict) else None, path.split("."), panel)


def wrong_options(panel: dict[str, Any]) -> list[str]:
    """Return the paths of the options that are missing or outside of their limits."""
    wrong = []
    for limit in LIMITS:
        if limit.panel_type not in (None, panel["type"]):
            continue
        value = option(panel, limit.path)
        is_missing = value is None and limit.path in REQUIRED
        if is_missing or (value is not None and not limit.smallest <= value <= limit.largest):
            wrong.append(f"{limit.path} = {value}: {limit.why}")
    return wrong


HEATMAP = {"type": "heatmap", "gridPos": {"w": 12}, "options": {"color": {"steps": 64, "exponent": 0.5}, "cellGap": 1}}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, []),
        ({"options": {"color": {"steps": 0, "exponent": 0.5}, "cellGap": 1}}, ["options.color.steps = 0"]),
        ({"options": {"color": {"steps": 129, "exponent": 0.5}, "cellGap": 1}}, ["options.color.steps = 129"]),
        ({"options": {"color": {"exponent": 0.5}, "cellGap": 1}}, ["options.color.steps = None"]),
        ({"gridPos": {"w": 25}}, ["gridPos.w = 25"]),
        ({"type": "table", "options": {}}, []),
    ],
    ids=["a valid heatmap", "an empty palette", "too many colours", "no palette", "wider than the grid", "a table"],
)
def test_a_value_outside_of_its_limits_is_found(change: dict[str, Any], wrong: list[str]):
    """Incident: the heatmap of commit gaps had 0 colours, and no test compared it with Grafana's schema."""
    assert [found.partition(": ")[0] for found in wrong_options(HEATMAP | change)] == wrong


@EACH
def test_all_options_are_within_the_limits_of_their_panels(board: Dashboard):
    """Grafana does not report an invalid option. It shows an empty panel."""
    for panel in (*board.rows, *board.panels):
        assert wrong_options(panel) == [], panel["title"]
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24


@EACH
def test_a_heatmap_has_a_legend_and_a_tooltip(board: Dashboard):
    """Without them, nobody can read the number of rebalances from a colour."""
    for panel in board.panels:
        if panel["type"] == "heatmap":
            assert option(panel, "options.legend.show")
            assert option(panel, "options.tooltip.show")


@EACH
def test_thresholds_are_sorted_and_the_first_applies_to_all_smaller_values(board: Dashboard):
    """`dashboard_kind.cue`: "Must be sorted by value, first value is always -Infinity". JSON writes it as null."""
    for thresholds in thresholds_of(board.model):
        first, *others = [step["value"] for step in thresholds["steps"]]
        assert first is None
        assert all(smaller < larger for smaller, larger in pairwise(others))


def thresholds_of(node: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
    """Return all thresholds of a dashboard, also those of columns."""
    if isinstance(node, dict):
        own = [node] if "steps" in node and isinstance(node["steps"], list) else []
        return own + [found for value in node.values() for found in thresholds_of(value)]
    return [found for value in node for found in thresholds_of(value)] if isinstance(node, list) else []


@EACH
def test_ranges_of_value_mappings_are_not_empty(board: Dashboard):
    """A range from 5 to 1 matches no value."""
    for panel in board.query_panels:
        for override in panel["fieldConfig"]["overrides"]:
            for mapping in (m for one in override["properties"] if one["id"] == "mappings" for m in one["value"]):
                if mapping["type"] == "range":
                    assert mapping["options"]["from"] < mapping["options"]["to"]


@EACH
def test_every_query_has_a_name_a_legend_and_a_data_source(board: Dashboard):
    """Without a legend, Grafana shows the complete PromQL expression as the name of a line."""
    for panel in board.query_panels:
        assert panel["targets"]
        assert len(panel["targets"]) <= 26, "queries have the names A to Z"
        for target in panel["targets"]:
            assert target["refId"]
            assert target["expr"]
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert target["legendFormat"] or target["format"] == "table"


@EACH
def test_the_refresh_interval_and_the_address_are_valid(board: Dashboard):
    """Grafana rejects an uid of more than 40 characters, and shows an unknown interval as "off"."""
    assert board.model["refresh"] in REFRESH_INTERVALS
    assert 0 < len(board.model["uid"]) <= LONGEST_UID


@EACH
def test_a_collapsed_row_contains_its_panels_and_an_open_row_contains_none(board: Dashboard):
    """Grafana does not show panels inside of an open row, and a collapsed row without panels cannot be opened."""
    for row in board.rows:
        assert bool(row["panels"]) == row["collapsed"], row["title"]
