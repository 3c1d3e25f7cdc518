"""The order of groups between scrapes: as the page has it, and calm."""

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


def order(ranking: Ranking, view: MonitorView, later_ms: int = 0) -> list[str]:
    """Return all groups by rank."""
    known = sorted(view.alive_groups())
    return [known[at] for at in ranking.worst_first(view.sample, reports_of(view), known, NOW_MS + later_ms)]


def calm(view: MonitorView) -> MonitorView:
    """Return the next sample's present, in which nobody has a condition any more."""
    assert view.sample is not None
    return replace(view, sample=replace(view.sample), conditions={})


def test_the_worst_groups_of_metrics_are_those_of_the_page(monitor_state: MonitorState) -> None:
    """Whoever comes from a dashboard to the page looks for the same group on top."""
    view = monitor_state.view()
    listed = [one.group.group_id for one in overview(WatchedCluster(CLUSTER, view, NOW_MS, 60_000)).groups]
    assert order(Ranking(), view) == listed


def test_between_two_samples_the_order_stays(monitor_state: MonitorState) -> None:
    """Rule 1: a batch in between changes groups, and they are ranked with the next sample."""
    view, ranking = monitor_state.view(), Ranking()
    before = order(ranking, view)
    assert order(ranking, replace(view, conditions={})) == before
    assert order(ranking, calm(view)) != before


def test_a_group_that_was_shown_in_full_keeps_its_place_for_a_while(monitor_state: MonitorState) -> None:
    """Rule 2, and the end of it."""
    view, ranking = monitor_state.view(), Ranking()
    worst = order(ranking, view)[0]
    assert view.conditions[worst], "the scene's worst group has a condition"
    ranking.hold([worst])
    assert order(ranking, calm(view))[0] == worst
    assert order(ranking, calm(view), HELD_MS + 1)[0] != worst


def test_who_is_held_no_more_stands_where_it_belongs(monitor_state: MonitorState) -> None:
    """Rule 2: where nothing is left out there is nothing to keep calm."""
    view, ranking = monitor_state.view(), Ranking()
    worst = order(ranking, view)[0]
    ranking.hold([worst])
    ranking.hold([])
    assert order(ranking, calm(view))[0] != worst


def test_groups_that_nobody_ranked_come_last_by_name(monitor_state: MonitorState) -> None:
    """Rule 3: a group that came after the sample."""
    view, ranking = monitor_state.view(), Ranking()
    known = ["zzz-new", "aaa-new", *sorted(view.alive_groups())]
    ranked = [known[at] for at in ranking.worst_first(view.sample, reports_of(view), known, NOW_MS)]
    assert ranked[-2:] == ["aaa-new", "zzz-new"]


def test_without_a_fresh_sample_groups_are_ranked_by_what_their_records_tell(monitor_state: MonitorState) -> None:
    """Brokers that do not answer are no reason to show all groups or none."""
    view = monitor_state.view()
    known = sorted(view.alive_groups())
    ranked = [known[at] for at in Ranking().worst_first(None, reports_of(view, is_fresh=False), known, NOW_MS)]
    listed = [one.group.group_id for one in overview(WatchedCluster(CLUSTER, view, NOW_MS, -1)).groups]
    assert ranked == listed
