"""Tests of the list of all groups."""

from __future__ import annotations

import doctest
import time
from pathlib import Path

import pytest

import streaming.page.overview
from streaming.evaluation.facts import Membership
from streaming.evaluation.limits import DEFAULT_LIMITS, GroupLimits
from streaming.evaluation.report import GroupReport
from streaming.page.application import Pages
from streaming.page.clusters import ClusterView
from streaming.page.overview import merge_overviews, sorted_overview
from streaming.page.page_input import WatchedCluster
from streaming.page.rebalances import RebalanceReader
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import CLUSTER, NOW_MS, PARTITIONS, Member, generation, record_of, scene, simulate
from tests.streaming.page.test_application import Seen, ask, pages_of


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.page.overview).failed == 0


def test_the_choices_of_several_clusters_have_the_groups_of_all_clusters() -> None:
    def of_team(group_id: str, team: str) -> GroupReport:
        return GroupReport(group_id, Membership("classic", "Stable"), limits=GroupLimits(team=team))

    clusters = {"eu": [of_team("a", "payments"), of_team("b", "")], "us": [of_team("a", "payments"), of_team("c", "x")]}
    merged = merge_overviews([sorted_overview(each, name, is_lag_known=True) for name, each in clusters.items()])
    assert merged.choices["team"] == {"payments": 2, "x": 1}
    assert merged.choices["state"] == {"Stable": 4}


def test_only_the_form_counts_the_values_of_the_filters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 10,000 groups, the count needs 50 ms. Most requests do not show the form."""

    def fail(*_: object) -> None:
        raise AssertionError("the values are counted")

    monkeypatch.setattr(streaming.page.overview, "count_values", fail)
    pages = pages_of(scene(tmp_path).monitor_state, tmp_path)
    assert ask(pages, "/").status == ask(pages, "/api/v1/groups").status == "200 OK"
    with pytest.raises(AssertionError, match="are counted"):
        ask(pages, "/?find=1")


def test_the_list_has_a_column_for_teams_if_a_shown_group_has_a_team(tmp_path: Path) -> None:
    limits = {"billing": GroupLimits(team="payments")}
    state = MonitorState(lambda ids: {group_id: limits.get(group_id, DEFAULT_LIMITS) for group_id in ids})
    events = [generation(1, 10, "range", [Member("app", ["orders"])])]
    state.put_batch([record_of(group_id, events, tmp_path) for group_id in ("billing", "other")], [])
    state.put_health(positions=dict.fromkeys(range(PARTITIONS), 1_000), ready=True, was_ready=True)
    state.put_sample(*simulate({})[:2])
    watched = WatchedCluster(CLUSTER, state.view(), NOW_MS, 30_000, state.reports)
    pages = Pages([ClusterView(CLUSTER, lambda: watched, RebalanceReader(str(tmp_path), CLUSTER, time.monotonic))], ())
    for query, has_teams in (("", True), ("q=billing", True), ("q=other", False)):
        assert (">team</a></th>" in ask(pages, f"/?{query}").text) == has_teams, query


@pytest.mark.parametrize(("query", "line"), [("limit=0", "0 of 20 shown"), ("limit=0&state=Empty", "0 of 1 shown")])
def test_a_list_without_rows_does_not_claim_that_no_group_exists(tmp_path: Path, query: str, line: str) -> None:
    """With `limit=0`, the page reported that the cluster has no group, below a line with the number of groups."""
    seen = Seen(ask(pages_of(scene(tmp_path).monitor_state, tmp_path), f"/?{query}").text)
    assert line in seen.text
    assert "no consumer group" not in seen.text
    assert "No group matches" not in seen.text
