"""A scrape is bounded: by what was asked for, by the worst groups, by a number of series. Never half a sum."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.prometheus.series_limit
from streaming.prometheus.series_limit import (
    MAX_SERIES,
    TOP_K,
    UNBOUNDED,
    Bounds,
    LimitDecision,
    LimitEdge,
    RequestedSeries,
    decide_limit,
)
from streaming.signals.signal import GRANULARITIES

NO_TOPICS = (0, 0)
Rows = list[tuple[int, int, int, int]]
"""Series of groups, the worst first: of the group, its topics, partitions and members."""


def asked(groups: Rows, topics: tuple[int, int] = NO_TOPICS, own: int = 0) -> RequestedSeries:
    """Return counts as arrays; topics have series of topics and of partitions."""
    rows = np.array([(0, *row) for row in groups], dtype=np.int64).reshape(len(groups), 5)
    return RequestedSeries(own, np.array([0, 0, *topics, 0], dtype=np.int64), rows)


def reported(found: LimitDecision) -> tuple[list[str], str]:
    """Return the finest granularity of each group and of topics, by name."""
    return [GRANULARITIES[place] for place in found.groups], GRANULARITIES[found.topics]


def decided(counts: RequestedSeries, bounds: Bounds) -> LimitDecision:
    """Return what is shown of groups that are given with the worst first."""
    return decide_limit(counts, bounds, lambda: range(len(counts.groups)))


ALL = "member"
CASES: list[tuple[Rows, tuple[int, int], int, Bounds, list[str], str, dict[str, int], str]] = [
    ([(1, 1, 1, 1)], NO_TOPICS, 9, Bounds(0, 13), [ALL], ALL, {}, "rule 3: exactly the limit is within it"),
    ([(1, 1, 1, 1)], NO_TOPICS, 9, Bounds(0, 12), ["partition"], "partition", {MAX_SERIES: 1}, "rule 3: finest first"),
    (
        [(1, 1, 5, 2), (1, 1, 1, 1)],
        NO_TOPICS,
        0,
        Bounds(0, 12),
        [ALL, "partition"],
        "partition",
        {MAX_SERIES: 1},
        "rule 3: of the least troubled group first, though the other one is larger",
    ),
    (
        [(1, 1, 5, 2), (1, 1, 1, 1)],
        NO_TOPICS,
        0,
        Bounds(0, 8),
        ["topic", "topic"],
        "topic",
        {MAX_SERIES: 9},
        "rule 3: no gap is filled with what ranks after what did not fit; the worst group's partitions were 5",
    ),
    ([(3, 1, 1, 1), (3, 0, 0, 0)], NO_TOPICS, 0, Bounds(0, 5), ["group", "cluster"], "cluster", {MAX_SERIES: 6}, "3"),
    (
        [(2, 2, 2, 2), (2, 2, 2, 2), (2, 2, 2, 2)],
        NO_TOPICS,
        0,
        Bounds(1, 500),
        [ALL, "group", "group"],
        ALL,
        {TOP_K: 12},
        "rule 2",
    ),
    ([(2, 2, 2, 2)] * 2, NO_TOPICS, 0, Bounds(2, 500), [ALL, ALL], ALL, {}, "rule 2: there are no others"),
    (
        [(2, 2, 2, 2)],
        (7, 7),
        0,
        Bounds(1, 500),
        [ALL],
        ALL,
        {},
        "rule 4: topics are nobody's, and top_k not their affair",
    ),
    (
        [(1, 1, 1, 0)],
        (1, 1),
        0,
        Bounds(0, 4),
        ["partition"],
        "topic",
        {MAX_SERIES: 1},
        "rule 4: topics are the first to go of a granularity",
    ),
    (
        [(1, 1, 1, 1), (1, 1, 1, 1)],
        NO_TOPICS,
        0,
        Bounds(1, 3),
        ["topic", "group"],
        "topic",
        {TOP_K: 3, MAX_SERIES: 2},
        "rule 6: what top_k left out anyway, the limit did not",
    ),
    ([(1, 1, 1, 1)], NO_TOPICS, 100, Bounds(0, 10), ["cluster"], "cluster", {MAX_SERIES: 4}, "rule 5: health stays"),
    ([], NO_TOPICS, 5, Bounds(3, 1), [], ALL, {}, "a cluster without groups"),
]


@pytest.mark.parametrize(("groups", "topics", "own", "bounds", "finest", "of_topics", "dropped", "why"), CASES)
def test_what_is_left_out_follows_the_rules(  # noqa: PLR0913, PLR0917 - a table's columns
    groups: Rows,
    topics: tuple[int, int],
    own: int,
    bounds: Bounds,
    finest: list[str],
    of_topics: str,
    dropped: dict[str, int],
    why: str,
) -> None:
    found = decided(asked(groups, topics, own), bounds)
    names, topics_finest = reported(found)
    assert names == finest, why
    assert found.dropped == {TOP_K: 0, MAX_SERIES: 0, **dropped}, why
    if any(topics):
        assert topics_finest == of_topics, why


def test_nobody_is_ranked_as_long_as_there_is_room() -> None:
    """Ranking 10,000 groups costs more than showing them."""
    found = decide_limit(asked([(1, 1, 1, 1)] * 3), UNBOUNDED, lambda: pytest.fail("nothing is left out"))
    assert reported(found)[0] == [ALL] * 3


numbers = st.integers(0, 9)
rows = st.lists(st.tuples(numbers, numbers, numbers, numbers), max_size=8)
counts = st.builds(asked, rows, st.tuples(numbers, numbers), st.integers(0, 20))
bounds = st.builds(Bounds, st.integers(0, 9), st.integers(0, 250))


def shown(counts: RequestedSeries, found: LimitDecision) -> int:
    """Count, the plain way, what is shown of groups and topics."""
    of_groups = sum(int(row[: place + 1].sum()) for row, place in zip(counts.groups, found.groups, strict=True))
    return of_groups + int(counts.topics[: found.topics + 1].sum())


@given(counts, bounds)
def test_never_more_than_the_limit_but_for_the_monitors_own(counts: RequestedSeries, bounds: Bounds) -> None:
    """Rule 5: bounded; rule 5."""
    assert shown(counts, decided(counts, bounds)) <= max(0, bounds.max_series - counts.own)


@given(counts, bounds)
def test_what_is_shown_and_what_is_left_out_are_everything(counts: RequestedSeries, bounds: Bounds) -> None:
    """Rule 5: visible."""
    found = decided(counts, bounds)
    assert counts.own + shown(counts, found) + sum(found.dropped.values()) == counts.total()
    assert min(found.dropped.values()) >= 0


@given(counts, bounds)
def test_a_worse_group_is_shown_at_least_as_finely(counts: RequestedSeries, bounds: Bounds) -> None:
    levels = decided(counts, bounds).groups.tolist()
    assert levels == sorted(levels, reverse=True)


@given(counts, bounds, st.randoms(use_true_random=False))
def test_the_order_in_which_groups_are_kept_changes_nothing(
    counts: RequestedSeries,
    bounds: Bounds,
    random: st.randoms,  # type: ignore[valid-type]
) -> None:
    """Dictionaries and batches have orders of their own; a scrape must not show them."""
    places = list(range(len(counts.groups)))
    random.shuffle(places)  # type: ignore[attr-defined]
    shuffled = RequestedSeries(counts.own, counts.topics, counts.groups[places])
    rank = sorted(range(len(places)), key=lambda place: places[place])
    found, again = decided(counts, bounds), decide_limit(shuffled, bounds, lambda: rank)
    assert again.groups.tolist() == found.groups[places].tolist()
    assert (again.topics, again.dropped) == (found.topics, found.dropped)


@given(counts, bounds, st.integers(1, 50))
def test_more_room_hides_nothing_that_was_shown(counts: RequestedSeries, bounds: Bounds, more: int) -> None:
    roomier = Bounds(bounds.top_k, bounds.max_series + more)
    found, again = decided(counts, bounds), decided(counts, roomier)
    assert (again.groups >= found.groups).all()
    assert again.topics >= found.topics


EDGES = [
    (1_000, 10, "nothing was left out before"),
    (1_001, 9, "one series too many: the last group loses its partitions"),
    (1_000, 9, "rule 8: it would fit, and nothing would stay free"),
    (991, 9, "rule 8: no more than nine"),
    (990, 10, "rule 8: a hundredth is free again"),
    (1_000, 10, "now it is shown, it stays as long as there is room"),
]


def test_series_that_come_and_go_do_not_show_and_hide_the_group_at_the_edge() -> None:
    """Rule 8: ten groups with ten partitions each, and what else there is at six scrapes, one after the other."""
    edge = None
    for total, in_full, why in EDGES:
        found = decide_limit(asked([(0, 0, 10, 0)] * 10, own=total - 100), Bounds(0, 1_000), lambda: range(10), edge)
        assert sum(place >= 3 for place in found.groups.tolist()) == in_full, why
        assert found.dropped[MAX_SERIES] == 100 - 10 * in_full, why
        edge = found.edge


edges = st.none() | st.builds(LimitEdge, st.integers(0, 4), st.integers(0, 9))


@given(counts, bounds, edges)
def test_whatever_was_shown_before_the_limit_holds_and_nothing_is_lost_count_of(
    counts: RequestedSeries, bounds: Bounds, last: LimitEdge | None
) -> None:
    """Rule 8 takes away only: groups may have gone since, and others come."""
    found = decide_limit(counts, bounds, lambda: range(len(counts.groups)), last)
    assert shown(counts, found) <= max(0, bounds.max_series - counts.own)
    assert counts.own + shown(counts, found) + sum(found.dropped.values()) == counts.total()
    assert (found.groups <= decided(counts, bounds).groups).all()


@given(counts, bounds, edges)
def test_asked_again_of_the_same_the_answer_is_the_same(
    counts: RequestedSeries, bounds: Bounds, last: LimitEdge | None
) -> None:
    """Two Prometheus servers that scrape side by side see the same series."""
    first = decide_limit(counts, bounds, lambda: range(len(counts.groups)), last)
    again = decide_limit(counts, bounds, lambda: range(len(counts.groups)), first.edge)
    assert (again.groups.tolist(), again.topics, again.dropped) == (first.groups.tolist(), first.topics, first.dropped)


def test_what_the_docstrings_show_is_true() -> None:
    assert doctest.testmod(streaming.prometheus.series_limit).failed == 0
