"""Tests of the order of groups in scrapes: it equals the order on the page and changes rarely."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.severity.trouble import Place
from streaming.page.overview import overview
from streaming.page.page_input import WatchedCluster
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import MonitorView
from streaming.state.reports import ReportCache, Reports
from streaming.state.worst_groups import HELD_MS, RankEntry, Ranking, rank_entries
from tests.streaming.page.scene import CLUSTER, NOW_MS, scene

SCRAPE_MS = 15_000


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
    """Rule 4: a batch between two samples changes groups, but they are ranked again only with the next sample."""
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
    """Rule 5: these groups appeared after the sample."""
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


def place_of(group_id: str, rule: int, lag_seconds: float = 0.0) -> Place:
    """Return the rank entry of a group with one trouble. Rule 10 means no trouble."""
    return (rule, -1 if rule < 10 else 0, -lag_seconds, 0, group_id)


def places(**troubles: int | tuple[int, float]) -> Mapping[str, Place]:
    """Return rank entries of groups by rule, or by rule and lag in seconds."""
    return {name: place_of(name, *((one,) if isinstance(one, int) else one)) for name, one in troubles.items()}


def selected_groups(
    samples: Iterable[Mapping[str, Place]], most: int = 1, every_ms: int = SCRAPE_MS
) -> list[list[str]]:
    """Return the groups with full detail at each sample."""
    held: Mapping[str, RankEntry] = {}
    found = []
    for number, sample in enumerate(samples):
        ranked = rank_entries(sample, held, number * every_ms)
        held = {group_id: ranked[group_id] for group_id in list(ranked)[:most]}
        found.append(sorted(held))
    return found


@pytest.mark.parametrize(
    ("samples", "expected", "why"),
    [
        ([places(a=2, b=5)], [["a"]], "rule 1"),
        ([places(a=5, b=10), places(a=5, b=2)], [["a"], ["b"]], "rule 1: a worse trouble is shown at once"),
        ([places(a=8, b=10), places(a=10, b=9)], [["a"], ["a"]], "rule 2: minutes ago, a was worse than b is now"),
        ([places(a=8, b=10), places(b=10)], [["a"], ["b"]], "rule 2: a deleted group does not keep its place"),
        (
            [places(a=(8, 40), b=(8, 39)), places(a=(8, 38), b=(8, 39)), places(a=(8, 40), b=(8, 39))],
            [["a"], ["a"], ["a"]],
            "rule 2: the lag goes up and down",
        ),
        (
            [places(a=(8, 40), b=(8, 39)), places(a=(8, 40), b=(8, 41))],
            [["a"], ["b"]],
            "a was never as bad as b is now",
        ),
    ],
)
def test_groups_with_full_detail(samples: Sequence[Mapping[str, Place]], expected: list[list[str]], why: str) -> None:
    assert selected_groups(samples) == expected, why


@pytest.mark.parametrize(
    ("later_ms", "expected", "why"),
    [
        (HELD_MS, "a", "rule 2: the ten minutes are not over"),
        (HELD_MS + 1, "b", "rule 2: the ten minutes are over"),
        (-1, "b", "rule 3: a clock was set back"),
    ],
)
def test_a_group_keeps_its_place_for_a_limited_time(later_ms: int, expected: str, why: str) -> None:
    before = {"a": RankEntry(place_of("a", 2), 0)}
    assert next(iter(rank_entries(places(a=10, b=9), before, later_ms))) == expected, why


def test_a_long_trouble_keeps_its_place_from_its_last_moment() -> None:
    """Rule 2: the time starts at the last moment. Otherwise, a group would lose its place when a long storm ends."""
    before = {"a": RankEntry(place_of("a", 2), 0)}
    again = rank_entries(places(a=2, b=9), before, HELD_MS)
    assert again["a"].since_ms == HELD_MS


def test_a_status_that_changes_at_every_sample_changes_the_view_once() -> None:
    """Burrow 738: one lower lag clears WARN, and the next sample has WARN again."""
    samples = [places(a=8 if number % 2 else 10, b=8 if number % 2 == 0 else 10) for number in range(20)]
    found = selected_groups(samples)
    assert sum(one != other for one, other in pairwise(found)) <= 1


troubled = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, 10), st.floats(0, 100)))


@given(st.lists(troubled, max_size=12), st.integers(1, 4))
def test_the_same_request_twice_gives_the_same_result(samples: list[dict[str, tuple[int, float]]], most: int) -> None:
    """Two Prometheus servers that scrape at the same time see the same groups."""
    as_places = [places(**sample) for sample in samples]
    once = selected_groups(as_places, most, every_ms=0)
    twice = selected_groups([sample for sample in as_places for _ in range(2)], most, every_ms=0)
    assert twice == [one for one in once for _ in range(2)]


@given(troubled, troubled, st.integers(0, HELD_MS))
def test_every_group_has_a_rank_and_none_is_better_than_its_present_trouble(
    before: dict[str, tuple[int, float]], now: dict[str, tuple[int, float]], later_ms: int
) -> None:
    """Keeping a place hides no trouble: it only ranks groups by their worse past."""
    held = {name: RankEntry(place_of(name, *one), 0) for name, one in before.items()}
    found = rank_entries(places(**now), held, later_ms)
    assert found.keys() == now.keys()
    assert [one.place for one in found.values()] == sorted(one.place for one in found.values())
    assert all(found[name].place <= place for name, place in places(**now).items())
