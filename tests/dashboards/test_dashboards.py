"""Test that the dashboards follow the rules of `dashboards/__init__.py` and Grafana's requirements.

The tests do not run Grafana. They check the JSON files.
"""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest
import yaml

from streaming.signals import HISTOGRAM, OWN, PARTITION, SIGNALS, exported_names
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
    "ALERTS": frozenset({"alertname", "alertstate", "severity", "cluster", "group", "team"}),
}
"""Metrics that Prometheus adds for every target and for alerts, with their labels."""

LABELS_OF = OF_PROMETHEUS | {
    name: frozenset((*signal.labels, *(("le",) if signal.kind == HISTOGRAM else ()), *OF_A_TARGET))
    for signal in SIGNALS.values()
    for name in exported_names(signal)
}
TIMES = Times(range_seconds=3600, step_seconds=15, scrape_seconds=15)


def resolved(query: PanelQuery) -> str:
    """Return the query with a value for each variable."""
    board = Dashboard(query.dashboard)
    return board.resolve_query(
        query.expression, {name: _some_value(one) for name, one in board.variables.items()}, TIMES
    )


def _some_value(variable: dict[str, Any]) -> str:
    return "10" if variable["name"] == "top" else "a"


def test_each_dashboard_has_its_own_address():
    assert {board.name: board.model["uid"] for board in BOARDS} == {
        "fleet": "rebalance-monitor-fleet",
        "group": "rebalance-monitor-group",
        "monitor": "rebalance-monitor-itself",
        "runbook": "rebalance-monitor-runbook",
        "topic": "rebalance-monitor-topic",
    }


def test_the_files_are_what_the_generator_writes():
    """`python -m dashboards` writes the files. The foundation SDK requires Python 3.11."""
    pytest.importorskip("grafana_foundation_sdk")
    from dashboards.__main__ import generate_files  # noqa: PLC0415 - only if the SDK is installed

    assert {file.name: file.read_text() for file in FOLDER.iterdir()} == generate_files()


@EACH_QUERY
def test_a_query_uses_only_defined_metrics_and_labels(query: PanelQuery):
    """A query for a series that no monitor exports leaves its panel empty, as if there were no problem."""
    in_query = selectors(resolved(query))
    assert in_query
    for selector in in_query:
        assert selector.metric in LABELS_OF
        assert selector.labels <= LABELS_OF[selector.metric]
    assert grouped_by(resolved(query)) <= frozenset().union(*(LABELS_OF[selector.metric] for selector in in_query))


@EACH_QUERY
def test_a_query_uses_only_existing_label_values(query: PanelQuery):
    """`status="STOPPED"` is valid PromQL, but no series has this value."""
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
def test_the_result_of_a_query_has_no_labels_of_the_target(query: PanelQuery):
    """Rule 4. A scrape adds `instance` and, in Kubernetes, `pod`. With these labels a restart would begin new lines."""
    if any(LABELS_OF[selector.metric] == OF_A_TARGET for selector in selectors(resolved(query))):
        return
    labels = result_labels(resolved(query))
    assert labels is not None
    assert not labels & OF_A_TARGET


NOT_SHOWN = {
    "rebalance_monitor_group_generation": "the number has no meaning; dashboards show how often it increases",
    "rebalance_monitor_offsets_topic_last_stable_offset": "only an alert uses it; dashboards show the blocked records",
    "rebalance_monitor_offsets_topic_leaderless_partitions": "only an alert uses it; `/incidents` shows the groups",
    "rebalance_monitor_waiting_for_offsets_topic": "only an alert uses it; the pages and `/-/ready` show the reason",
    "rebalance_monitor_uneven_work_records_per_second": "only an alert uses it; dashboards show its fairness",
}
"""Metrics of the monitor that no dashboard shows, and the reason."""


def test_every_metric_of_the_monitor_is_in_a_dashboard_or_in_the_list_of_exceptions():
    """A metric that is shown nowhere should not be measured."""
    shown = {selector.metric for query in QUERIES for selector in selectors(resolved(query))}
    ours = [signal for signal in SIGNALS.values() if signal.family_set == OWN]
    assert {signal.name for signal in ours if not shown & set(exported_names(signal))} == NOT_SHOWN.keys()


@EACH
def test_panels_have_different_numbers_and_titles_and_a_description(board: Dashboard):
    """Rule 1. Grafana opens a panel by its number, so two panels with one number are not distinguishable."""
    numbers = [panel["id"] for panel in (*board.rows, *board.panels)]
    titles = [panel["title"] for panel in board.panels]
    assert len(set(numbers)) == len(numbers)
    assert len(set(titles)) == len(titles)
    for panel in board.query_panels:
        meaning, _, nothing_shown = panel["description"].partition("\n\n**Nothing shown:** ")
        assert meaning.endswith(".")
        assert nothing_shown.endswith(".")
        assert panel["fieldConfig"]["defaults"]["noValue"]


@EACH
def test_panels_fill_lines_of_the_grid_and_never_overlap(board: Dashboard):
    """The grid is 24 units wide. Each line of panels must fill it. Only one collapsed row is opened at a time."""
    for shown in (board.model["panels"], *([row, *row["panels"]] for row in board.rows)):
        places = [panel["gridPos"] for panel in shown]
        for one, other in combinations(places, 2):
            beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
            below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
            assert beside or below, (one, other)
        for line in {place["y"] for place in places}:
            in_line = [place for place in places if place["y"] == line]
            assert sum(place["w"] for place in in_line) == 24
            assert len({place["h"] for place in in_line}) == 1


FIRST_SCREEN_HEIGHT = 24
"""Grid units that a screen of 1,080 pixels shows: one unit is 30 pixels high, and the gap is 8 pixels."""
FIRST_SCREEN_QUERIES = 25
"""The dashboard of a group had 58 queries in 112 grid units before its details were in collapsed rows."""


def test_the_first_screen_of_a_group_answers_three_questions_with_few_queries():
    """Rule 6. Review for on-call: nobody scrolls at night, and 58 queries every 30 seconds load Prometheus."""
    board = Dashboard("group")
    panels = board.open_panels
    assert max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) <= FIRST_SCREEN_HEIGHT
    assert sum(len(panel["targets"]) for panel in panels) <= FIRST_SCREEN_QUERIES
    questions = [row["title"] for row in board.rows if not row["collapsed"]]
    assert questions == ["Is the group keeping up?", "Is its work shared fairly?", "What just happened?"]


DETAILS = {name for signal in SIGNALS.values() if signal.granularity == PARTITION for name in exported_names(signal)}


@EACH
def test_a_panel_on_details_of_few_groups_describes_why_it_is_empty_for_the_others(board: Dashboard):
    """Rule 7. By default, only the worst groups have details. An engineer must not read this as "no problem"."""
    for panel in board.query_panels:
        needs = [
            any(selector.metric in DETAILS for selector in selectors(resolved(query)))
            for query in board.queries()
            if query.panel == panel["title"]
        ]
        assert ("`metrics.top_k`" in panel["description"]) == any(needs), panel["title"]
        no_value = panel["fieldConfig"]["defaults"]["noValue"]
        assert ("only the worst groups have details" in no_value) == all(needs), panel["title"]


def test_the_first_screen_of_a_group_needs_no_details():
    """The group that an engineer opens is not always one of the worst. The causes of rebalances are an addition."""
    with_details = {
        panel["title"]
        for panel in Dashboard("group").open_panels
        if any(name in target["expr"] for target in panel["targets"] for name in DETAILS)
    }
    assert with_details <= {"Rebalances"}


@EACH
def test_everything_uses_the_selected_data_source(board: Dashboard):
    """The uid of a data source differs in every installation of Grafana."""
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
def test_every_variable_is_used_and_every_used_variable_is_defined(board: Dashboard):
    """`top` limits the rows of tables (rule 5). `page_url` is used only in links.

    Texts contain variables of the shell. Grafana leaves them, because they are no variables of the dashboard.
    """
    without_texts = board.model | {"panels": [*board.rows, *board.query_panels]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(without_texts)))
    assert "monitor" not in used, "nobody knows this address, and nobody can enter it on a dashboard that is read-only"
    assert used == set(board.variables)


@EACH
def test_tables_and_single_values_are_limited(board: Dashboard):
    """Rule 5: tables show the worst groups, not ten thousand."""
    for panel in board.query_panels:
        if board.name == "fleet" and panel["type"] == "table":
            assert all(re.search(r"(top|bottom)k\(", target["expr"]) for target in panel["targets"])
        if panel["type"] in ("table", "stat"):
            assert all(target["instant"] and not target["range"] for target in panel["targets"])


@EACH
def test_a_colour_is_one_of_few_and_has_a_word_or_a_threshold(board: Dashboard):
    """Rule 3. Values without a meaning of good or bad have shades of one colour."""
    for panel in board.query_panels:
        color = panel["fieldConfig"]["defaults"].get("color", {"mode": "thresholds"})
        assert color["mode"] in ("thresholds", "fixed", "shades")


@EACH
def test_a_table_has_a_column_for_each_label_or_hides_it(board: Dashboard):
    """Otherwise Grafana shows the label as a column with the label's name."""
    for panel in board.query_panels:
        if panel["type"] == "table":
            (organized,) = [one["options"] for one in panel["transformations"] if one["id"] == "organize"]
            handled = organized["renameByName"].keys() | organized["excludeByName"].keys()
            for target in panel["targets"]:
                labels = result_labels(resolved(PanelQuery(board.name, panel["title"], "", target["expr"], True)))
                assert labels is not None
                assert labels <= handled, panel["title"]


def links_of(node: Any) -> list[str]:  # noqa: ANN401 - JSON
    """Return all addresses in a dashboard."""
    if isinstance(node, dict):
        own = [node["url"]] if node.get("url") else []
        return own + [url for value in node.values() for url in links_of(value)]
    return [url for value in node for url in links_of(value)] if isinstance(node, list) else []


@EACH
def test_links_lead_to_existing_dashboards_and_set_existing_variables(board: Dashboard):
    """After a dashboard is renamed, links to it must change, too."""
    by_uid = {one.model["uid"]: one for one in BOARDS}
    for uid, arguments in re.findall(r"/d/([\w-]+)\??(\S*)", " ".join(links_of(board.model))):
        assert uid in by_uid
        named = set(re.findall(r"var-(\w+)=|\$\{(\w+):queryparam\}", arguments))
        assert {one or other for one, other in named} <= set(by_uid[uid].variables)
        assert {passed for _, passed in named if passed} <= set(board.variables)
    assert not [link for link in board.model["links"] if link["includeVars"]], (
        "the value for all groups is no group in other dashboards"
    )
    assert "rebalance-monitor" in board.model["tags"]


def firing_alerts_of(board: Dashboard) -> dict[str, Any]:
    """Return the panel of firing alerts."""
    (table,) = [panel for panel in board.panels if panel["title"] == "Firing alerts"]
    return table


@pytest.mark.parametrize("name", ["fleet", "group", "monitor", "topic"])
def test_each_row_of_firing_alerts_links_to_its_section_of_the_runbook(name: str):
    """Review for on-call: links led to the start of a runbook of 229 lines, although each panel has a number."""
    table = firing_alerts_of(Dashboard(name))
    (links,) = [
        override_property["value"]
        for override in table["fieldConfig"]["overrides"]
        for override_property in override["properties"]
        if override["matcher"]["options"] == "Runbook" and override_property["id"] == "links"
    ]
    assert [link["url"] for link in links] == ["/d/rebalance-monitor-runbook?viewPanel=${__value.raw}"]
    numbers = dict(re.findall(r'vector\((\d+)\), "alertname", "(\w+)"', table["targets"][1]["expr"]))
    sections = {str(panel["id"]): panel["title"] for panel in Dashboard("runbook").panels}
    del sections[next(number for number, title in sections.items() if title == "Before you begin")]
    assert numbers == sections


@pytest.mark.parametrize("name", ["fleet", "group", "monitor", "topic"])
def test_only_alerts_of_this_monitor_are_listed(name: str):
    """A pattern such as `Kafka.+` would also list the alerts of Strimzi and of other vendors."""
    listed = re.findall(r'alertname=~"([^"]*)"', firing_alerts_of(Dashboard(name))["targets"][0]["expr"])
    assert {re.sub(r"[\w|]", "", names) for names in listed} == {""}


def test_the_runbook_has_the_order_of_its_file():
    """Critical alerts come first in the file. In alphabetical order, lost records came after idle members."""
    titles = [panel["title"] for panel in Dashboard("runbook").panels]
    in_file = re.findall(r"^## (.+)$", (FOLDER.parent / "RUNBOOK.md").read_text(), re.MULTILINE)
    assert titles == ["Before you begin", *in_file]


def test_the_address_of_the_monitors_pages_comes_from_its_metric():
    """Review for on-call: a text box with localhost on a dashboard that nobody can edit leads nowhere."""
    variable = Dashboard("group").variables["page_url"]
    assert "rebalance_monitor_info" in variable["query"]
    assert variable["skipUrlSync"], "otherwise a link to Grafana could lead to a different site"
    result = '{page_url="https://monitor.example.com"} 1 1700000000000'
    found = re.search(variable["regex"].strip("/"), result)
    assert found is not None
    assert found[1] == "https://monitor.example.com"


RULES = sorted((FOLDER.parent / "rules").glob("*.yaml"))
ALERTS = [
    rule
    for file in RULES
    for group in yaml.safe_load(file.read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: f"{alert['alert']} {alert['labels']['severity']}")
def test_an_alert_links_to_a_dashboard_with_its_group_or_cluster_selected(alert: dict[str, Any]):
    """The dashboard's table of firing alerts shows the alert, and the runbook's dashboard has a panel for it."""
    by_uid = {board.model["uid"]: board for board in BOARDS}
    uid, arguments = re.search(r"/d/([\w-]+)\?(.*)", alert["annotations"]["dashboard_url"], re.DOTALL).groups()  # type: ignore[union-attr]
    chosen = set(re.findall(r"var-(\w+)=", arguments))
    assert chosen
    assert chosen <= set(by_uid[uid].variables)
    assert alert["alert"] in {panel["title"] for panel in Dashboard("runbook").panels}
    table = firing_alerts_of(by_uid[uid])
    matched = re.search(r'alertname=~"([^"]*)"', table["targets"][0]["expr"])
    assert matched is not None
    assert re.fullmatch(matched[1], alert["alert"])
    for severity in re.sub(r"\{\{.*?\}\}", " ", alert["labels"]["severity"]).split():
        assert f'severity="{severity}"' in table["targets"][0]["expr"]
