"""Every query of every dashboard, asked of a real Prometheus that scrapes a monitor of the demo's groups.

Which panels are rightly empty there is written down with the reason; all others must have data.
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
TIMES = Times(range_seconds=300, step_seconds=5, scrape_seconds=1)
SHOWN_SECONDS = 240.0
"""The longest that a panel may take to show something, from when the monitor is ready: the flapping member flaps."""

EMPTY = {
    ("fleet", "Worst drift", "A"): "the demo has no group whose assignment is not what its strategy promises",
    ("group", "Moved partitions", "C"): "of every demo group's moves it is known whether they had to be",
    ("group", "Records in partitions without an owner", "A"): "every partition has an owner",
    ("group", "Time until records are lost", "A"): "retention takes nothing within minutes",
    ("group", "Partitions with unknown lag or status", "A"): "all lag is known",
    ("group", "Partitions with unknown lag or status", "B"): "no transaction is open",
    ("monitor", "Limitations of the source", "A"): "the log tells everything",
    ("monitor", "Decode failures, by reason", "A"): "Kafka writes no record that cannot be read",
    ("monitor", "Brokers that did not list their groups", "A"): "the one broker answers",
}
"""Queries without an answer on a healthy demo, and why that is right."""

RULES = sorted((Path(__file__).parents[2] / "dashboards" / "rules").glob("*.yaml"))
QUERIES = [query for board in dashboards() for query in board.queries()]


def place(query: PanelQuery) -> tuple[str, str, str]:
    """What tells a query from the others."""
    return query.dashboard, query.panel, query.ref_id


def named(query: PanelQuery) -> str:
    return " ".join(place(query))


@dataclass(frozen=True)
class Viewer:
    """Somebody who looks at the dashboards."""

    prometheus: RealPrometheus

    def choices(self, board: Dashboard) -> list[Chosen]:
        """What is chosen on a dashboard: everything, or one group after the other."""
        if board.name == "group":
            return [{"cluster": CLUSTER, "group": group, "topic": None} for group in GROUPS]
        everything: Chosen = {"cluster": None, "group": None, "top": "10"}
        return [{name: value for name, value in everything.items() if name in board.variables}]

    def sees(self, query: PanelQuery) -> list[Any] | None:
        """What a panel shows: of one group's dashboard, for the first group that has anything to show."""
        board = Dashboard(query.dashboard)
        return next(filter(None, (self.shown(query, board, chosen) for chosen in self.choices(board))), None)

    def asked(self, query: PanelQuery, board: Dashboard, chosen: Chosen) -> str:
        """What Prometheus is asked."""
        return board.resolve_query(query.expression, chosen, TIMES)

    def shown(self, query: PanelQuery, board: Dashboard, chosen: Chosen) -> list[Any]:
        """Series of the answer that have a number in them."""
        asked, now = self.asked(query, board, chosen), time.time()
        if query.is_instant:
            found = self.prometheus.ask("/api/v1/query", query=asked, time=str(now))["data"]["result"]
            return [one for one in found if _is_number(one["value"])]
        times = {"start": now - TIMES.range_seconds, "end": now, "step": TIMES.step_seconds}
        words = {name: str(value) for name, value in times.items()}
        found = self.prometheus.ask("/api/v1/query_range", query=asked, **words)["data"]["result"]
        return [one for one in found if any(map(_is_number, one["values"]))]


def _is_number(sample: tuple[float, str]) -> bool:
    return not math.isnan(float(sample[1]))


def without_patience(folder: Path) -> list[Path]:
    """Our rules, but that alerts wait for nothing, as most do for ten minutes, and stay for those who look."""
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
    """Prometheus sees the monitor catch up, so that one alert on the monitor itself fires."""
    folder = tmp_path_factory.mktemp("dashboards")
    rules = without_patience(folder / "rules")
    with RealPrometheus(folder / "prometheus", [f"127.0.0.1:{demo.monitor.port}"], rule_files=rules) as prometheus:
        demo.monitor.wait_until_ready()
        yield Viewer(prometheus)


@pytest.mark.parametrize("query", [one for one in QUERIES if place(one) not in EMPTY], ids=named)
def test_a_panel_shows_something_where_the_demo_has_it(viewer: Viewer, query: PanelQuery):
    """A query that a real Prometheus refuses, or has no answer to, is an empty panel at 3 a.m."""
    until(f"{query.panel} to show something", lambda: viewer.sees(query), SHOWN_SECONDS)


@pytest.mark.parametrize("query", [one for one in QUERIES if place(one) in EMPTY], ids=named)
def test_a_panel_is_empty_where_there_is_nothing_to_show(viewer: Viewer, query: PanelQuery):
    """What is said to be empty on a healthy demo, and is not, warns of nothing."""
    assert viewer.sees(query) is None, EMPTY[place(query)]


TABLES = [(board, panel) for board in dashboards() for panel in board.query_panels if panel["type"] == "table"]


@pytest.mark.parametrize(
    ("board", "panel"), TABLES, ids=lambda one: one.name if isinstance(one, Dashboard) else one["title"]
)
def test_rows_of_a_table_that_belong_together_become_one(viewer: Viewer, board: Dashboard, panel: dict[str, Any]):
    """Grafana merges rows that agree in what all queries have: two of one query stay two, and one is half empty."""
    queries = [one for one in board.queries() if one.panel == panel["title"]]
    for chosen in viewer.choices(board):
        answers = [result_labels(viewer.asked(one, board, chosen)) for one in queries]
        in_common = frozenset.intersection(*(labels for labels in answers if labels is not None))
        for query in queries:
            rows = Counter(
                tuple(one["metric"].get(label) for label in in_common) for one in viewer.shown(query, board, chosen)
            )
            assert not [row for row, times in rows.items() if times > 1], (query, chosen)


def test_no_rule_of_ours_fails(viewer: Viewer):
    """A rule that Prometheus cannot evaluate says so on a page nobody opens."""
    groups = viewer.prometheus.ask("/api/v1/rules")["data"]["groups"]
    assert len({group["file"] for group in groups}) == len(RULES)
    assert [rule for group in groups for rule in group["rules"] if rule["health"] == "err"] == []


def test_what_is_said_to_be_empty_is_a_query_of_a_panel():
    """A panel that was renamed would be looked for in vain."""
    assert {place(query) for query in QUERIES} >= EMPTY.keys()


@pytest.mark.parametrize("board", [board for board in dashboards() if board.variables], ids=lambda board: board.name)
def test_each_variable_offers_the_demos_values(viewer: Viewer, board: Dashboard):
    """`label_values(...)` as Grafana's Prometheus plugin asks for it: the label's values among the selected series."""
    offered = {}
    for name, variable in board.variables.items():
        if variable["type"] == "query":
            selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
            chosen: Chosen = {"cluster": CLUSTER, "group": "demo-range"}
            known = {name: value for name, value in chosen.items() if name in board.variables}
            matching = {"match[]": board.resolve_query(selector, known, TIMES)}
            offered[name] = viewer.prometheus.ask(f"/api/v1/label/{label}/values", **matching)["data"]
    assert offered.pop("cluster") == [CLUSTER]
    if "group" in offered:
        assert offered.pop("group") == GROUPS
    if "topic" in offered:
        assert offered.pop("topic") == [f"demo-range-{number}" for number in range(8)]
    assert not offered
