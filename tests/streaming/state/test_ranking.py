"""Tests of the order of groups in scrapes: it equals the order on the page and changes rarely."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.evaluation.severity.rank import HELD_MS
from streaming.page.overview import overview
from streaming.page.watched import WatchedCluster
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import MonitorView
from streaming.state.ranking import Ranking
from streaming.state.reports import ReportCache, Reports
from tests.streaming.page.scene import CLUSTER, NOW_MS, scene


@pytest.fixture(scope="module")
def monitor_state(tmp_path_factory: pytest.TempPathFactory) -> MonitorState:
    return scene(tmp_path_factory.mktemp("tables")).monitor_state


def reports_of(view: MonitorView, *, is_fresh: bool = True) -> Reports:
    return ReportCache().reports(view, is_fresh=is_fresh)


def ranked_groups(ranking: Ranking, view: MonitorView, later_ms: int = 0) -> list[str]:
    """Return all groups in order of rank."""
    group_ids = sorted(view.alive_groups())
    return [group_ids[at] for at in ranking.worst_first(view.sample, reports_of(view), group_ids, NOW_MS + later_ms)]


def without_conditions(view: MonitorView) -> MonitorView:
    """Return the view of the next sample, in which no group has a condition."""
    assert view.sample is not None
    return replace(view, sample=replace(view.sample), conditions={})


def test_metrics_and_page_rank_groups_in_the_same_order(monitor_state: MonitorState) -> None:
    """A user who opens the page from a dashboard expects the same group at the top."""
    view = monitor_state.view()
    listed = [one.group.group_id for one in overview(WatchedCluster(CLUSTER, view, NOW_MS, 60_000)).groups]
    assert ranked_groups(Ranking(), view) == listed


def test_the_order_stays_the_same_between_two_samples(monitor_state: MonitorState) -> None:
    """Rule 1: a batch between two samples changes groups, but they are ranked again only with the next sample."""
    view, ranking = monitor_state.view(), Ranking()
    before = ranked_groups(ranking, view)
    assert ranked_groups(ranking, replace(view, conditions={})) == before
    assert ranked_groups(ranking, without_conditions(view)) != before


def test_a_group_that_was_shown_in_full_keeps_its_place_for_a_while(monitor_state: MonitorState) -> None:
    """Rule 2: the group keeps its place for a limited time."""
    view, ranking = monitor_state.view(), Ranking()
    worst = ranked_groups(ranking, view)[0]
    assert view.conditions[worst], "the worst group of the scene has a condition"
    ranking.hold([worst])
    assert ranked_groups(ranking, without_conditions(view))[0] == worst
    assert ranked_groups(ranking, without_conditions(view), HELD_MS + 1)[0] != worst


def test_a_group_that_is_no_longer_held_gets_its_normal_rank(monitor_state: MonitorState) -> None:
    """Rule 2: if no group is left out, no group needs to keep its place."""
    view, ranking = monitor_state.view(), Ranking()
    worst = ranked_groups(ranking, view)[0]
    ranking.hold([worst])
    ranking.hold([])
    assert ranked_groups(ranking, without_conditions(view))[0] != worst


def test_groups_without_a_rank_come_last_by_name(monitor_state: MonitorState) -> None:
    """Rule 3: these groups appeared after the sample."""
    view, ranking = monitor_state.view(), Ranking()
    group_ids = ["zzz-new", "aaa-new", *sorted(view.alive_groups())]
    ranked = [group_ids[at] for at in ranking.worst_first(view.sample, reports_of(view), group_ids, NOW_MS)]
    assert ranked[-2:] == ["aaa-new", "zzz-new"]


def test_without_a_fresh_sample_groups_are_ranked_by_their_records(monitor_state: MonitorState) -> None:
    """If brokers do not answer, the monitor still shows neither all groups nor none."""
    view = monitor_state.view()
    group_ids = sorted(view.alive_groups())
    ranked = [group_ids[at] for at in Ranking().worst_first(None, reports_of(view, is_fresh=False), group_ids, NOW_MS)]
    listed = [one.group.group_id for one in overview(WatchedCluster(CLUSTER, view, NOW_MS, -1)).groups]
    assert ranked == listed
