"""Tests of the limits of a scrape: granularity, order of the groups and number of series. A sum is never incomplete."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.prometheus.series_limit
from streaming.prometheus.series_limit import (
    UNLIMITED,
    LimitDecision,
    LimitEdge,
    RequestedSeries,
    decide_limit,
)
from streaming.signals.signal import GRANULARITIES

NO_TOPICS = (0, 0)
Rows = list[tuple[int, int, int, int]]
"""One row per group, the worst first: number of series of the group, its topics, partitions and members."""


def requested_series(groups: Rows, topics: tuple[int, int] = NO_TOPICS, own: int = 0) -> RequestedSeries:
    """Return the counts as arrays. `topics` are the series of topics and of their partitions."""
    rows = np.array([(0, *row) for row in groups], dtype=np.int64).reshape(len(groups), 5)
    return RequestedSeries(own, np.array([0, 0, *topics, 0], dtype=np.int64), rows)


def finest_granularities(decision: LimitDecision) -> tuple[list[str], str]:
    """Return the finest granularity of each group and of topics, by name."""
    return [GRANULARITIES[place] for place in decision.groups], GRANULARITIES[decision.topics]


def decide(counts: RequestedSeries, max_series: int) -> LimitDecision:
    """Return the decision for groups whose rows are sorted with the worst first."""
    return decide_limit(counts, max_series, lambda: range(len(counts.groups)))


ALL = "member"
CASES: list[tuple[Rows, tuple[int, int], int, int, list[str], str, int, str]] = [
    ([(1, 1, 1, 1)], NO_TOPICS, 9, 13, [ALL], ALL, 0, "rule 2: a number of series equal to the limit is allowed"),
    ([(1, 1, 1, 1)], NO_TOPICS, 9, 12, ["partition"], "partition", 1, "rule 2: the finest level is dropped first"),
    (
        [(1, 1, 5, 2), (1, 1, 1, 1)],
        NO_TOPICS,
        0,
        12,
        [ALL, "partition"],
        "partition",
        1,
        "rule 2: the group with the least trouble loses series first, although the other group is larger",
    ),
    (
        [(1, 1, 5, 2), (1, 1, 1, 1)],
        NO_TOPICS,
        0,
        8,
        ["topic", "topic"],
        "topic",
        9,
        "rule 2: the worst group's 5 partitions do not fit, so no group after it shows partitions",
    ),
    (
        [(3, 1, 1, 1), (3, 0, 0, 0)],
        NO_TOPICS,
        0,
        5,
        ["group", "cluster"],
        "cluster",
        6,
        "rule 2: a group's own series are dropped last",
    ),
    (
        [(2, 2, 9, 0), (2, 2, 0, 0)],
        NO_TOPICS,
        0,
        8,
        ["topic", "topic"],
        "topic",
        9,
        "rule 2: only the worst group has full detail, and it is dropped before any group loses its topics",
    ),
    ([(1, 1, 1, 0)], (1, 1), 0, 4, ["partition"], "topic", 1, "rule 3: topics lose a level before all groups"),
    ([(1, 1, 1, 1)], NO_TOPICS, 100, 10, ["cluster"], "cluster", 4, "rule 4: the monitor's own series stay"),
    ([], NO_TOPICS, 5, 1, [], ALL, 0, "a cluster without groups"),
]


@pytest.mark.parametrize(("groups", "topics", "own", "max_series", "finest", "of_topics", "dropped", "why"), CASES)
def test_series_are_dropped_by_the_rules(  # noqa: PLR0913, PLR0917 - a table's columns
    groups: Rows,
    topics: tuple[int, int],
    own: int,
    max_series: int,
    finest: list[str],
    of_topics: str,
    dropped: int,
    why: str,
) -> None:
    decision = decide(requested_series(groups, topics, own), max_series)
    names, topics_finest = finest_granularities(decision)
    assert names == finest, why
    assert decision.dropped == dropped, why
    if any(topics):
        assert topics_finest == of_topics, why


def test_groups_are_not_ranked_if_all_series_fit() -> None:
    """To rank 10,000 groups costs more than to show them."""
    decision = decide_limit(
        requested_series([(1, 1, 1, 1)] * 3), UNLIMITED, lambda: pytest.fail("no series is dropped")
    )
    assert finest_granularities(decision)[0] == [ALL] * 3


numbers = st.integers(0, 9)
rows = st.lists(st.tuples(numbers, numbers, numbers, numbers), max_size=8)
counts = st.builds(requested_series, rows, st.tuples(numbers, numbers), st.integers(0, 20))
limits = st.integers(0, 250)


def count_shown(counts: RequestedSeries, decision: LimitDecision) -> int:
    """Count the shown series of groups and topics in the simplest way."""
    of_groups = sum(int(row[: place + 1].sum()) for row, place in zip(counts.groups, decision.groups, strict=True))
    return of_groups + int(counts.topics[: decision.topics + 1].sum())


@given(counts, limits)
def test_the_limit_is_never_exceeded_except_by_the_monitors_own_series(
    counts: RequestedSeries, max_series: int
) -> None:
    """Tests rules 2 and 4."""
    assert count_shown(counts, decide(counts, max_series)) <= max(0, max_series - counts.own)


@given(counts, limits)
def test_shown_and_dropped_series_add_up_to_all_series(counts: RequestedSeries, max_series: int) -> None:
    """Tests rule 5."""
    decision = decide(counts, max_series)
    assert counts.own + count_shown(counts, decision) + decision.dropped == counts.total()
    assert decision.dropped >= 0


@given(counts, limits)
def test_a_worse_group_is_shown_in_at_least_the_same_detail(counts: RequestedSeries, max_series: int) -> None:
    levels = decide(counts, max_series).groups.tolist()
    assert levels == sorted(levels, reverse=True)


@given(counts, limits, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(
    counts: RequestedSeries,
    max_series: int,
    random: st.randoms,  # type: ignore[valid-type]
) -> None:
    """A scrape must not depend on the order of groups in dictionaries and batches."""
    places = list(range(len(counts.groups)))
    random.shuffle(places)  # type: ignore[attr-defined]
    shuffled = RequestedSeries(counts.own, counts.topics, counts.groups[places])
    rank = sorted(range(len(places)), key=lambda place: places[place])
    decision, again = decide(counts, max_series), decide_limit(shuffled, max_series, lambda: rank)
    assert again.groups.tolist() == decision.groups[places].tolist()
    assert (again.topics, again.dropped) == (decision.topics, decision.dropped)


@given(counts, limits, st.integers(1, 50))
def test_a_higher_limit_hides_no_series(counts: RequestedSeries, max_series: int, more: int) -> None:
    decision, again = decide(counts, max_series), decide(counts, max_series + more)
    assert (again.groups >= decision.groups).all()
    assert again.topics >= decision.topics


EDGES = [
    (1_000, 10, "no series was dropped before"),
    (1_001, 9, "one series is too many, so the last group loses its partitions"),
    (1_000, 9, "rule 7: the series would fit, but no series would stay free"),
    (991, 9, "rule 7: only nine series would stay free"),
    (990, 10, "rule 7: one percent stays free"),
    (1_000, 10, "a shown group stays shown while its series fit"),
]


def test_small_changes_do_not_show_and_hide_the_same_group_again_and_again() -> None:
    """Rule 7: six scrapes in order, with ten groups of ten partitions and a changing number of other series."""
    edge = None
    for total, in_full, why in EDGES:
        decision = decide_limit(requested_series([(0, 0, 10, 0)] * 10, own=total - 100), 1_000, lambda: range(10), edge)
        assert sum(place >= 3 for place in decision.groups.tolist()) == in_full, why
        assert decision.dropped == 100 - 10 * in_full, why
        edge = decision.edge


edges = st.none() | st.builds(LimitEdge, st.integers(0, 4), st.integers(0, 9))


@given(counts, limits, edges)
def test_after_any_earlier_decision_the_limit_is_respected_and_all_series_are_counted(
    counts: RequestedSeries, max_series: int, last: LimitEdge | None
) -> None:
    """Rule 7 only removes series. Groups may have changed since the earlier decision."""
    decision = decide_limit(counts, max_series, lambda: range(len(counts.groups)), last)
    assert count_shown(counts, decision) <= max(0, max_series - counts.own)
    assert counts.own + count_shown(counts, decision) + decision.dropped == counts.total()
    assert (decision.groups <= decide(counts, max_series).groups).all()


@given(counts, limits, edges)
def test_the_same_counts_give_the_same_decision_again(
    counts: RequestedSeries, max_series: int, last: LimitEdge | None
) -> None:
    """Two Prometheus servers that scrape at the same time get the same series."""
    first = decide_limit(counts, max_series, lambda: range(len(counts.groups)), last)
    again = decide_limit(counts, max_series, lambda: range(len(counts.groups)), first.edge)
    assert (again.groups.tolist(), again.topics, again.dropped) == (first.groups.tolist(), first.topics, first.dropped)


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.prometheus.series_limit).failed == 0
