"""The order of groups between scrapes: as the page has it, and calm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.evaluation.severity.standing import HELD_MS
from streaming.page.overview import overview
from streaming.page.watched import Watched
from streaming.state.present import Present
from streaming.state.ranking import Ranking
from streaming.state.registry import Registry
from streaming.state.reports import ReportBook, Reports
from tests.streaming.page.scene import CLUSTER, NOW_MS, scene


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return scene(tmp_path_factory.mktemp("tables")).registry


def reports_of(present: Present, *, is_fresh: bool = True) -> Reports:
    return ReportBook().reports(present, is_fresh=is_fresh)


def order(ranking: Ranking, present: Present, later_ms: int = 0) -> list[str]:
    """Return all groups by rank."""
    known = sorted(present.alive_groups())
    return [known[at] for at in ranking.worst_first(present.sample, reports_of(present), known, NOW_MS + later_ms)]


def calm(present: Present) -> Present:
    """Return the next sample's present, in which nobody has a condition any more."""
    assert present.sample is not None
    return replace(present, sample=replace(present.sample), conditions={})


def test_the_worst_groups_of_metrics_are_those_of_the_page(registry: Registry) -> None:
    """Whoever comes from a dashboard to the page looks for the same group on top."""
    present = registry.present()
    listed = [one.group.group_id for one in overview(Watched(CLUSTER, present, NOW_MS, 60_000)).groups]
    assert order(Ranking(), present) == listed


def test_between_two_samples_the_order_stays(registry: Registry) -> None:
    """Rule 1: a batch in between changes groups, and they are ranked with the next sample."""
    present, ranking = registry.present(), Ranking()
    before = order(ranking, present)
    assert order(ranking, replace(present, conditions={})) == before
    assert order(ranking, calm(present)) != before


def test_a_group_that_was_shown_in_full_keeps_its_place_for_a_while(registry: Registry) -> None:
    """Rule 2, and the end of it."""
    present, ranking = registry.present(), Ranking()
    worst = order(ranking, present)[0]
    assert present.conditions[worst], "the scene's worst group has a condition"
    ranking.hold([worst])
    assert order(ranking, calm(present))[0] == worst
    assert order(ranking, calm(present), HELD_MS + 1)[0] != worst


def test_who_is_held_no_more_stands_where_it_belongs(registry: Registry) -> None:
    """Rule 2: where nothing is left out there is nothing to keep calm."""
    present, ranking = registry.present(), Ranking()
    worst = order(ranking, present)[0]
    ranking.hold([worst])
    ranking.hold([])
    assert order(ranking, calm(present))[0] != worst


def test_groups_that_nobody_ranked_come_last_by_name(registry: Registry) -> None:
    """Rule 3: a group that came after the sample."""
    present, ranking = registry.present(), Ranking()
    known = ["zzz-new", "aaa-new", *sorted(present.alive_groups())]
    ranked = [known[at] for at in ranking.worst_first(present.sample, reports_of(present), known, NOW_MS)]
    assert ranked[-2:] == ["aaa-new", "zzz-new"]


def test_without_a_fresh_sample_groups_are_ranked_by_what_their_records_tell(registry: Registry) -> None:
    """Brokers that do not answer are no reason to show all groups or none."""
    present = registry.present()
    known = sorted(present.alive_groups())
    ranked = [known[at] for at in Ranking().worst_first(None, reports_of(present, is_fresh=False), known, NOW_MS)]
    listed = [one.group.group_id for one in overview(Watched(CLUSTER, present, NOW_MS, -1)).groups]
    assert ranked == listed
