"""The dashboards hold to the rules of `dashboards/__init__.py`, and to what Grafana wants of a dashboard.

There is no Grafana here to look at them in: what can be checked of the JSON is checked.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest
import yaml

from streaming.signals import HISTOGRAM, OWN, SIGNALS, exported_names
from tests.grafana import FOLDER, Dashboard, PanelQuery, Times, dashboards
from tests.promql import grouped_by, result_labels, selectors

BOARDS = dashboards()
EACH = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
QUERIES = [query for board in BOARDS for query in board.queries()]
EACH_QUERY = pytest.mark.parametrize(
    "query", QUERIES, ids=lambda query: f"{query.dashboard}: {query.panel} {query.ref_id}".strip()
)

OF_A_TARGET = frozenset({"job", "instance"})
OF_PROMETHEUS = {
    "scrape_duration_seconds": OF_A_TARGET,
    "scrape_samples_scraped": OF_A_TARGET,
    "ALERTS": frozenset({"alertname", "alertstate", "severity", "cluster", "group"}),
}
"""Metrics that Prometheus has of every target, and of the alerts of its rules, with their labels."""

LABELS_OF = OF_PROMETHEUS | {
    name: frozenset((*signal.labels, *(("le",) if signal.kind == HISTOGRAM else ()), *OF_A_TARGET))
    for signal in SIGNALS.values()
    for name in exported_names(signal)
}
TIMES = Times(range_seconds=3600, step_seconds=15, scrape_seconds=15)


def asked(query: PanelQuery) -> str:
    """The query with a value for each variable."""
    board = Dashboard(query.dashboard)
    return board.resolve_query(
        query.expression, {name: _some_value(one) for name, one in board.variables.items()}, TIMES
    )


def _some_value(variable: dict[str, Any]) -> str:
    return "10" if variable["name"] == "top" else "a"


def test_each_has_an_address_of_its_own():
    assert {board.name: board.model["uid"] for board in BOARDS} == {
        "fleet": "rebalance-monitor-fleet",
        "group": "rebalance-monitor-group",
        "monitor": "rebalance-monitor-itself",
        "runbook": "rebalance-monitor-runbook",
    }


def test_the_files_are_what_the_generator_writes():
    """Write them anew with `python -m dashboards`. The foundation SDK wants Python 3.11."""
    pytest.importorskip("grafana_foundation_sdk")
    from dashboards.__main__ import generate_files  # noqa: PLC0415 - only where the SDK is

    assert {file.name: file.read_text() for file in FOLDER.iterdir()} == generate_files()


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
        (label, value)
        for signal in SIGNALS.values()
        for label, values in signal.label_values.items()
        for value in values
    }
    known = {label for label, _ in of_labels}
    for label, value in re.findall(r'(\w+)(?:=|!=|=~|!~)"([^"$]*)"', query.expression):
        if label in known:
            assert {(label, one) for one in value.split("|")} <= of_labels


@EACH_QUERY
def test_a_query_answers_with_labels_of_its_metrics_only(query: PanelQuery):
    """Rule 4. A scrape adds `instance` and, in Kubernetes, `pod`: with them a restart would begin new lines."""
    if any(LABELS_OF[selector.metric] == OF_A_TARGET for selector in selectors(asked(query))):
        return
    answered = result_labels(asked(query))
    assert answered is not None
    assert not answered & OF_A_TARGET


UNSEEN = {
    "rebalance_monitor_group_generation": "a number that says nothing by itself: what counts is how often it grows",
    "rebalance_monitor_offsets_topic_last_stable_offset": "an alert asks whether it stands still; blocked is shown",
}
"""Metrics of ours that are in no dashboard, and why."""


def test_every_metric_of_ours_is_in_a_dashboard_or_said_not_to_be():
    """What nobody can see anywhere need not be measured."""
    shown = {selector.metric for query in QUERIES for selector in selectors(asked(query))}
    ours = [signal for signal in SIGNALS.values() if signal.family_set == OWN]
    assert {signal.name for signal in ours if not shown & set(exported_names(signal))} == UNSEEN.keys()


@EACH
def test_panels_are_numbered_and_titled_apart_and_described(board: Dashboard):
    """Rule 1. Grafana opens a panel by its number; two of one number are one."""
    numbers = [panel["id"] for panel in board.model["panels"]]
    titles = [panel["title"] for panel in board.panels]
    assert len(set(numbers)) == len(numbers)
    assert len(set(titles)) == len(titles)
    for panel in board.query_panels:
        reads, _, absent = panel["description"].partition("\n\n**Nothing shown:** ")
        assert reads.endswith(".")
        assert absent.endswith(".")
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
    assert ("datasource" in board.variables) == bool(board.query_panels)
    for panel in board.query_panels:
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
    for panel in board.query_panels:
        if board.name == "fleet" and panel["type"] == "table":
            assert all("topk(" in target["expr"] for target in panel["targets"])
        if panel["type"] in ("table", "stat", "bargauge"):
            assert all(target["instant"] and not target["range"] for target in panel["targets"])


@EACH
def test_a_colour_is_one_of_few_and_has_a_word_or_a_threshold(board: Dashboard):
    """Rule 3, and no rainbow: what has no meaning of its own has shades of one colour."""
    for panel in board.query_panels:
        color = panel["fieldConfig"]["defaults"].get("color", {"mode": "thresholds"})
        assert color["mode"] in ("thresholds", "fixed", "shades")


@EACH
def test_a_table_has_a_column_for_each_label_or_hides_it(board: Dashboard):
    """Grafana shows a label that nobody thought of as a column under its own name."""
    for panel in board.query_panels:
        if panel["type"] == "table":
            (arranged,) = [one["options"] for one in panel["transformations"] if one["id"] == "organize"]
            thought_of = arranged["renameByName"].keys() | arranged["excludeByName"].keys()
            for target in panel["targets"]:
                labels = result_labels(asked(PanelQuery(board.name, panel["title"], "", target["expr"], True)))
                assert labels is not None
                assert labels <= thought_of, panel["title"]


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
    for uid, arguments in re.findall(r"/d/([\w-]+)\??(\S*)", " ".join(links_of(board.model))):
        assert uid in by_uid
        named = set(re.findall(r"var-(\w+)=|\$\{(\w+):queryparam\}", arguments))
        assert {one or other for one, other in named} <= set(by_uid[uid].variables)
        assert {passed for _, passed in named if passed} <= set(board.variables)
    assert not [link for link in board.model["links"] if link["includeVars"]], "all groups are no group elsewhere"
    assert "rebalance-monitor" in board.model["tags"]


RULES = sorted((FOLDER.parent / "rules").glob("*.yaml"))
ALERTS = [
    rule
    for file in RULES
    for group in yaml.safe_load(file.read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: f"{alert['alert']} {alert['labels']['severity']}")
def test_an_alert_leads_to_a_dashboard_with_what_it_is_told_of_chosen(alert: dict[str, Any]):
    """From the page to the panel in one step, and from there to what to do."""
    by_uid = {board.model["uid"]: board for board in BOARDS}
    uid, arguments = re.search(r"/d/([\w-]+)\?(.*)", alert["annotations"]["dashboard_url"], re.DOTALL).groups()  # type: ignore[union-attr]
    chosen = set(re.findall(r"var-(\w+)=", arguments))
    assert chosen
    assert chosen <= set(by_uid[uid].variables)
    assert alert["alert"] in {panel["title"] for panel in Dashboard("runbook").panels}
    (table,) = [panel for panel in by_uid[uid].panels if panel["title"] == "Firing alerts"]
    matched = re.search(r'alertname=~"([^"]*)"', table["targets"][0]["expr"])
    assert matched is not None
    assert re.fullmatch(matched[1], alert["alert"])
    assert f'severity="{alert["labels"]["severity"]}"' in table["targets"][0]["expr"]
