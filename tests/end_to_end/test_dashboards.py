"""Test every query of every dashboard on a real Prometheus that scrapes a monitor of the demo's groups.

`EMPTY` lists the panels that are correctly empty there, with the reason. All others must show data.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.demo.groups import DEMO_GROUPS
from tests.end_to_end.conftest import Demo
from tests.end_to_end.monitor_process import until
from tests.end_to_end.prometheus_process import RealPrometheus
from tests.grafana import Chosen, Dashboard, PanelQuery, Times, dashboards
from tests.promql import result_labels

pytestmark = pytest.mark.slow

CLUSTER = "demo"
GROUPS = sorted(group.group_id for group in DEMO_GROUPS)
TOPICS = sorted({topic.name for group in DEMO_GROUPS for topic in group.topics})
TIMES = Times(range_seconds=300, step_seconds=5, scrape_seconds=1)
SHOWN_SECONDS = 240.0
"""Maximum seconds from a ready monitor until a panel shows data. The flapping member takes longest."""

EMPTY = {
    ("fleet", "Worst drift", "A"): "the demo has no group with drift",
    ("fleet", "Records that retention deletes before the group reads them", "A"): "retention deletes nothing",
    ("fleet", "Records that retention deletes before the group reads them", "B"): "retention deletes nothing",
    ("group", "Moved partitions", "C"): "for all movements of the demo it is known whether they were necessary",
    ("group", "Unowned partitions", "A"): "every partition has an owner",
    ("group", "Partitions per member and unowned partitions", "E"): "every partition has an owner",
    ("group", "Records in partitions without an owner", "A"): "every partition has an owner",
    ("group", "Records lost to retention", "A"): "retention deletes nothing within minutes",
    ("group", "Time until records are lost", "A"): "retention deletes nothing within minutes",
    ("group", "Partitions with unknown lag or status", "A"): "all lag is known",
    ("group", "Partitions with unknown lag or status", "B"): "no transaction is open",
    ("topic", "Groups that read this topic", "B"): "all lag is known",
    ("monitor", "Limitations of the source", "A"): "the log source has no limitations",
    ("monitor", "Decode failures, by reason", "A"): "the broker writes no undecodable record",
    ("monitor", "Gaps in the last listing of the groups", "A"): "the one broker answers",
}
"""Queries that are correctly empty for a healthy demo, and the reason: (dashboard, panel, query)."""

RULES = sorted((Path(__file__).parents[2] / "dashboards" / "rules").glob("*.yaml"))
QUERIES = [query for board in dashboards() for query in board.queries()]


def query_key(query: PanelQuery) -> tuple[str, str, str]:
    """Return the dashboard, panel and letter of a query."""
    return query.dashboard, query.panel, query.ref_id


def query_name(query: PanelQuery) -> str:
    return " ".join(query_key(query))


@dataclass(frozen=True)
class Viewer:
    """Runs the dashboards' queries as Grafana does."""

    prometheus: RealPrometheus

    def choices(self, board: Dashboard) -> list[Chosen]:
        """Return the values of a dashboard's variables: one set for each group, or one set for all groups."""
        if board.name == "group":
            return [{"cluster": CLUSTER, "group": group, "topic": None} for group in GROUPS]
        if board.name == "topic":
            return [{"cluster": CLUSTER, "topic": topic, "top": "10"} for topic in TOPICS]
        everything: Chosen = {"cluster": None, "team": None, "group": None, "top": "10"}
        return [{name: value for name, value in everything.items() if name in board.variables}]

    def first_result(self, query: PanelQuery) -> list[Any] | None:
        """Return the series of a panel for the first choice of variables that has any; None if none has."""
        board = Dashboard(query.dashboard)
        return next(filter(None, (self.series(query, board, chosen) for chosen in self.choices(board))), None)

    def resolve(self, query: PanelQuery, board: Dashboard, chosen: Chosen) -> str:
        """Return the PromQL that Prometheus receives."""
        return board.resolve_query(query.expression, chosen, TIMES)

    def series(self, query: PanelQuery, board: Dashboard, chosen: Chosen) -> list[Any]:
        """Return the series of the answer that have at least one number."""
        promql, now = self.resolve(query, board, chosen), time.time()
        if query.is_instant:
            result = self.prometheus.ask("/api/v1/query", query=promql, time=str(now))["data"]["result"]
            return [one for one in result if _is_number(one["value"])]
        times = {"start": now - TIMES.range_seconds, "end": now, "step": TIMES.step_seconds}
        parameters = {name: str(value) for name, value in times.items()}
        result = self.prometheus.ask("/api/v1/query_range", query=promql, **parameters)["data"]["result"]
        return [one for one in result if any(map(_is_number, one["values"]))]


def _is_number(sample: tuple[float, str]) -> bool:
    return not math.isnan(float(sample[1]))


def rules_without_delay(folder: Path) -> list[Path]:
    """Write the rules so that alerts fire at once instead of after ten minutes, and keep firing for an hour."""
    folder.mkdir()
    written = []
    for file in RULES:
        rules = yaml.safe_load(file.read_text())
        for rule in (rule for group in rules["groups"] for rule in group["rules"]):
            if "alert" in rule:
                rule |= {"for": "0s", "keep_firing_for": "1h"}
        written.append(folder / file.name)
        written[-1].write_text(yaml.safe_dump(rules))
    return written


@pytest.fixture(scope="module")
def viewer(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """Start Prometheus before the monitor has caught up, so that one alert on the monitor itself fires."""
    folder = tmp_path_factory.mktemp("dashboards")
    rules = rules_without_delay(folder / "rules")
    with RealPrometheus(folder / "prometheus", [f"127.0.0.1:{demo.monitor.port}"], rule_files=rules) as prometheus:
        demo.monitor.wait_until_ready()
        yield Viewer(prometheus)


@pytest.mark.parametrize("query", [one for one in QUERIES if query_key(one) not in EMPTY], ids=query_name)
def test_a_panel_shows_the_data_of_the_demo(viewer: Viewer, query: PanelQuery):
    """If Prometheus rejects a query or finds no series, the panel is empty during an incident."""
    until(f"{query.panel} to show data", lambda: viewer.first_result(query), SHOWN_SECONDS)


@pytest.mark.parametrize("query", [one for one in QUERIES if query_key(one) in EMPTY], ids=query_name)
def test_a_panel_without_data_in_the_demo_is_empty(viewer: Viewer, query: PanelQuery):
    """A panel in `EMPTY` that shows data for a healthy demo reports a problem that does not exist."""
    assert viewer.first_result(query) is None, EMPTY[query_key(query)]


TABLES = [(board, panel) for board in dashboards() for panel in board.query_panels if panel["type"] == "table"]


@pytest.mark.parametrize(
    ("board", "panel"), TABLES, ids=lambda one: one.name if isinstance(one, Dashboard) else one["title"]
)
def test_rows_of_a_table_that_belong_together_become_one(viewer: Viewer, board: Dashboard, panel: dict[str, Any]):
    """Grafana merges rows by the labels that all queries share. Two rows of one query with the same labels stay two.

    Then one of the two rows is half empty.
    """
    queries = [one for one in board.queries() if one.panel == panel["title"]]
    for chosen in viewer.choices(board):
        answers = [result_labels(viewer.resolve(one, board, chosen)) for one in queries]
        in_common = frozenset.intersection(*(labels for labels in answers if labels is not None))
        for query in queries:
            rows = Counter(
                tuple(one["metric"].get(label) for label in in_common) for one in viewer.series(query, board, chosen)
            )
            assert not [row for row, times in rows.items() if times > 1], (query, chosen)


def test_prometheus_evaluates_every_rule_without_an_error(viewer: Viewer):
    """Prometheus shows errors of rules only on its own page of rules."""
    groups = viewer.prometheus.ask("/api/v1/rules")["data"]["groups"]
    assert len({group["file"] for group in groups}) == len(RULES)
    assert [rule for group in groups for rule in group["rules"] if rule["health"] == "err"] == []


def test_every_entry_of_the_empty_panels_is_a_query_of_a_panel():
    """After a panel is renamed, its entry must be renamed, too."""
    assert {query_key(query) for query in QUERIES} >= EMPTY.keys()


OFFERED = {"cluster": [CLUSTER], "group": GROUPS, "team": ["payments"]}
"""Values of variables that are the same on each dashboard. The settings of the test name one team."""


@pytest.mark.parametrize("board", [board for board in dashboards() if board.variables], ids=lambda board: board.name)
def test_each_variable_offers_the_demos_values(viewer: Viewer, board: Dashboard):
    """Grafana's Prometheus plugin resolves `label_values(...)` to the label's values in the selected series."""
    topics = {"group": [f"demo-range-{number}" for number in range(8)], "topic": TOPICS}
    expected = OFFERED | {"topic": topics.get(board.name)}
    chosen: Chosen = {"cluster": CLUSTER, "group": "demo-range"}
    known = {name: value for name, value in chosen.items() if name in board.variables}
    for name, variable in board.variables.items():
        if variable["type"] == "query" and name != "page_url":
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
            matching = {"match[]": board.resolve_query(selector, known, TIMES)}
            assert viewer.prometheus.ask(f"/api/v1/label/{label}/values", **matching)["data"] == expected[name]


def test_without_a_setting_the_monitors_pages_have_the_address_that_prometheus_scrapes(viewer: Viewer, demo: Demo):
    """Grafana applies the variable's regular expression to a text for each series of `query_result(...)`."""
    board = Dashboard("group")
    variable = board.variables["page_url"]
    (expression,) = re.fullmatch(r"query_result\((.*)\)", variable["query"]).groups()  # type: ignore[union-attr]
    query = board.resolve_query(expression, {"cluster": CLUSTER}, TIMES)
    (series,) = viewer.prometheus.ask("/api/v1/query", query=query)["data"]["result"]
    labels = ",".join(f'{name}="{value}"' for name, value in series["metric"].items())
    offered = re.search(variable["regex"].strip("/"), f"{{{labels}}} {series['value'][1]} 0")
    assert offered is not None
    assert offered[1] == f"http://127.0.0.1:{demo.monitor.port}"
