"""The dashboards hold to the rules of `dashboards/__init__.py`, and to what Grafana wants of a dashboard.

There is no Grafana here to look at them in: what can be checked of the JSON is checked.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest
import yaml

from streaming.signals import HISTOGRAM, SIGNALS, exported_names
from tests.grafana import FOLDER, Dashboard, PanelQuery, Times, dashboards
from tests.promql import grouped_by, selectors

BOARDS = dashboards()
EACH = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
QUERIES = [query for board in BOARDS for query in board.queries()]
EACH_QUERY = pytest.mark.parametrize(
    "query", QUERIES, ids=lambda query: f"{query.dashboard}: {query.panel} {query.ref_id}".strip()
)

OF_PROMETHEUS = {name: frozenset({"job", "instance"}) for name in ("scrape_duration_seconds", "scrape_samples_scraped")}
"""Metrics that Prometheus has of every target, with their labels."""

LABELS_OF = OF_PROMETHEUS | {
    name: frozenset((*signal.labels, *(("le",) if signal.kind == HISTOGRAM else ()), "job", "instance"))
    for signal in SIGNALS.values()
    for name in exported_names(signal)
}
TIMES = Times(range_seconds=3600, step_seconds=15, scrape_seconds=15)


def asked(query: PanelQuery) -> str:
    """The query with a value for each variable."""
    board = Dashboard(query.dashboard)
    return board.asked(query.expression, {name: _some_value(one) for name, one in board.variables.items()}, TIMES)


def _some_value(variable: dict[str, Any]) -> str:
    return "10" if variable["name"] == "top" else "a"


def test_there_are_three_and_each_has_an_address_of_its_own():
    assert {board.name: board.model["uid"] for board in BOARDS} == {
        "fleet": "rebalance-monitor-fleet",
        "group": "rebalance-monitor-group",
        "monitor": "rebalance-monitor-itself",
    }


def test_the_files_are_what_the_generator_writes():
    """Write them anew with `python -m dashboards`. The foundation SDK wants Python 3.11."""
    pytest.importorskip("grafana_foundation_sdk")
    from dashboards.__main__ import texts  # noqa: PLC0415 - only where the SDK is

    assert {file.name: file.read_text() for file in FOLDER.iterdir()} == texts()


@EACH_QUERY
def test_a_query_asks_for_metrics_and_labels_that_are_defined(query: PanelQuery):
    """A panel that asks for what nobody exports is empty for ever, and looks as if all were well."""
    found = selectors(asked(query))
    assert found
    for selector in found:
        assert selector.metric in LABELS_OF
        assert selector.labels <= LABELS_OF[selector.metric]
    assert grouped_by(asked(query)) <= frozenset().union(*(LABELS_OF[selector.metric] for selector in found))


@EACH_QUERY
def test_a_query_asks_for_label_values_that_there_are(query: PanelQuery):
    """`status="STOPPED"` is valid, and never there."""
    of_labels = {
        (label, value) for signal in SIGNALS.values() for label, values in signal.label_values.items() for value in values
    }
    known = {label for label, _ in of_labels}
    for label, value in re.findall(r'(\w+)(?:=|!=|=~|!~)"([^"$]*)"', query.expression):
        if label in known:
            assert {(label, one) for one in value.split("|")} <= of_labels


@EACH_QUERY
def test_a_query_takes_all_labels_but_a_groups_own_away(query: PanelQuery):
    """Rule 4. A scrape adds `instance` and, in Kubernetes, `pod`: with them a restart would begin new lines."""
    if any(selector.metric in OF_PROMETHEUS for selector in selectors(asked(query))):
        return
    assert re.match(r"(topk\(\$top, |sort\(|clamp_min\(|\(|\d+ \+ |label_replace\()*(max|sum|count|histogram_quantile)\b",
                    query.expression)


def test_every_metric_of_ours_is_in_a_dashboard_or_said_not_to_be():
    """What nobody can see anywhere need not be measured."""
    shown = {selector.metric for query in QUERIES for selector in selectors(asked(query))}
    unseen = {
        signal.name for signal in SIGNALS.values() if signal.family_set == "own" and not shown & set(exported_names(signal))
    }
    assert unseen == set()


@EACH
def test_panels_are_numbered_and_titled_apart_and_described(board: Dashboard):
    """Rule 1. Grafana opens a panel by its number; two of one number are one."""
    numbers = [panel["id"] for panel in board.model["panels"]]
    titles = [panel["title"] for panel in board.panels]
    assert len(set(numbers)) == len(numbers)
    assert len(set(titles)) == len(titles)
    for panel in board.panels:
        reads, _, absent = panel["description"].partition("\n\n**Nothing shown:** ")
        assert reads.endswith(".") and absent.endswith(".")
        assert panel["fieldConfig"]["defaults"]["noValue"]


@EACH
def test_panels_fill_lines_of_the_grid_and_never_overlap(board: Dashboard):
    """The grid is 24 wide; a hole in a line is a panel of the wrong size."""
    places = [panel["gridPos"] for panel in board.model["panels"]]
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)
    for line in {place["y"] for place in places}:
        on_it = [place for place in places if place["y"] == line]
        assert sum(place["w"] for place in on_it) == 24
        assert len({place["h"] for place in on_it}) == 1


@EACH
def test_everything_is_asked_of_the_data_source_that_is_chosen(board: Dashboard):
    """An uid of a data source is another one at everybody's."""
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert "datasource" in board.variables
    for panel in board.panels:
        assert panel["datasource"] == chosen
        assert all(target["datasource"] == chosen for target in panel["targets"])
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    events = board.model["annotations"].get("list", ())
    of_queries = [one for one in board.variables.values() if one["type"] == "query"]
    assert all(one["datasource"] == chosen for one in (*of_queries, *events))


@EACH
def test_every_variable_is_used_and_every_used_one_is_there(board: Dashboard):
    """`top` bounds tables (rule 5); `monitor` is for links only."""
    text = (FOLDER / f"{board.name}.json").read_text()
    used = set(re.findall(r"\$\{?([a-z]\w*)", text))
    assert used == set(board.variables)


@EACH
def test_tables_and_figures_are_bounded(board: Dashboard):
    """Rule 5: a table of ten thousand groups is no table of the worst."""
    for panel in board.panels:
        if board.name == "fleet" and panel["type"] == "table":
            assert all("topk($top, " in target["expr"] for target in panel["targets"])
        if panel["type"] in ("table", "stat", "bargauge"):
            assert all(target["instant"] and not target["range"] for target in panel["targets"])


@EACH
def test_a_colour_is_one_of_few_and_has_a_word_or_a_threshold(board: Dashboard):
    """Rule 3, and no rainbow: what has no meaning of its own has shades of one colour."""
    for panel in board.panels:
        color = panel["fieldConfig"]["defaults"].get("color", {"mode": "thresholds"})
        assert color["mode"] in ("thresholds", "fixed", "shades")


def links_of(node: Any) -> list[str]:  # noqa: ANN401 - JSON
    """Addresses in a dashboard, wherever they are."""
    if isinstance(node, dict):
        own = [node["url"]] if node.get("url") else []
        return own + [url for value in node.values() for url in links_of(value)]
    return [url for value in node for url in links_of(value)] if isinstance(node, list) else []


@EACH
def test_links_lead_to_dashboards_that_are_there_with_variables_they_have(board: Dashboard):
    """A link to a dashboard that was renamed is a dead end at 3 a.m."""
    by_uid = {one.model["uid"]: one for one in BOARDS}
    for uid, arguments in re.findall(r"/d/([\w-]+)\?(\S*)", " ".join(links_of(board.model))):
        assert uid in by_uid
        named = set(re.findall(r"var-(\w+)=|\$\{(\w+):queryparam\}", arguments))
        assert {one or other for one, other in named} <= set(by_uid[uid].variables)
    assert "rebalance-monitor" in board.model["tags"]


def test_the_compose_file_has_grafana_read_the_folder_of_the_dashboards():
    """Ten minutes and nothing imported by hand."""
    root = FOLDER.parents[1]
    compose = yaml.safe_load((root / "deploy" / "compose" / "compose.yaml").read_text())
    provider = root / "deploy" / "compose" / "grafana" / "dashboards" / "rebalance-monitor.yaml"
    (path,) = [one["options"]["path"] for one in yaml.safe_load(provider.read_text())["providers"]]
    mounts = dict(reversed(volume.split(":")[:2]) for volume in compose["services"]["grafana"]["volumes"])
    assert (root / "deploy" / "compose" / mounts[path]).resolve() == FOLDER
