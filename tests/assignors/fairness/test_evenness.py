"""Each measure against its definition, and what it must never say."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean, pstdev

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assignors.fairness.evenness import evenness, score, surplus
from assignors.fairness.fairest import fairest_sizes
from assignors.model import GroupSpec
from tests.assignors.brute_force import is_no_less_fair, sizes, small_groups, valid_assignments

LOADS = st.lists(st.integers(0, 50) | st.floats(0, 1e6), min_size=1, max_size=8)
SEVEN_OVER_FIVE = (1, 1, 1, 2, 2)


@pytest.mark.parametrize(
    ("loads", "ratio", "variation", "gini", "idle", "why"),
    [
        ([2, 2, 2], 1.0, 0.0, 0.0, 0, "even: every measure says so"),
        ([4], 1.0, 0.0, 0.0, 0, "one alone cannot be uneven"),
        ([4, 0], 2.0, 1.0, 0.5, 1, "all on one of two: ratio n, Gini (n - 1) / n"),
        ([8, 0, 0, 0], 4.0, math.sqrt(3), 0.75, 3, "all on one of four"),
        ([3, 1], 1.5, 0.5, 0.25, 0, "mean 2, both one away from it"),
        ([0, 0, 0], None, None, None, 3, "nothing to share: no ratio, neither 0 nor infinite"),
        ([0.5, 1.5], 1.5, 0.5, 0.25, 0, "the unit does not matter: a quarter of [2, 6]"),
    ],
)
def test_the_measures(  # noqa: PLR0913, PLR0917 - a row of the table
    loads: list[float], ratio: float | None, variation: float | None, gini: float | None, idle: int, why: str
):
    found = evenness(loads)
    assert (found.max_to_mean_ratio, found.idle) == (ratio, idle), why
    assert found.coefficient_of_variation == (None if variation is None else pytest.approx(variation)), why
    assert found.gini == (None if gini is None else pytest.approx(gini)), why


@given(LOADS)
@example([0, 5e-324])  # half of it is no number any more
def test_the_measures_are_their_definitions(loads: list[float]):
    """Gini as the mean difference of all pairs, the variation as population deviation by mean."""
    found = evenness(loads)
    if not sum(loads) > 1e-3:  # fractions too small to be divided
        return
    pairs = fmean(abs(one - other) for one in loads for other in loads)
    assert found.gini == pytest.approx(pairs / (2 * fmean(loads)), abs=1e-9)
    assert found.coefficient_of_variation == pytest.approx(pstdev(loads) / fmean(loads), abs=1e-9)
    assert (found.largest, found.smallest, found.shares) == (max(loads), min(loads), len(loads))


@pytest.mark.parametrize("loads", [[], [-1, 2], [math.nan], [1, math.inf]])
def test_what_is_no_load_is_refused(loads: list[float]):
    """An unknown amount must not come in as a number: everything behind it would be one, too."""
    with pytest.raises(ValueError, match="finite"):
        evenness(loads)


@pytest.mark.parametrize(
    ("loads", "fairest", "too_much", "points", "why"),
    [
        ([2, 1, 2, 1, 1], SEVEN_OVER_FIVE, 0, 100, "as fair as 7 over 5 can be: the gap of one never counts"),
        ([3, 1, 1, 1, 1], SEVEN_OVER_FIVE, 1, 80, "one partition of the five that could be misplaced"),
        ([3, 3, 1, 0, 0], SEVEN_OVER_FIVE, 2, 60, "the two busiest have two too many"),
        ([2, 2, 2, 1, 0], SEVEN_OVER_FIVE, 1, 80, "the busiest has no more than it must; three have one too many"),
        ([7, 0, 0, 0, 0], SEVEN_OVER_FIVE, 5, 0, "all on one: 0 points"),
        ([1, 1, 1, 0, 0], (0, 0, 1, 1, 1), 0, 100, "idle members whom nothing could employ cost nothing"),
        ([9, 1, 0], (0, 1, 9), 0, 100, "nobody else subscribes to the nine: fair"),
        ([0, 0], (0, 0), 0, 100, "nothing to be shared"),
        ([12, 8, 0, 0], (0, 0, 10, 10), 2, 80, "Gini hardly sees two busy ones that differ; the surplus does"),
        ([0.3, 0.1], [0.1, 0.1 + 0.2], 0, 100, "a rounding error is no unfairness"),
        ([0.1 + 0.2], [0.3], 0, 100, "nor does it divide by nothing"),
    ],
)
def test_the_score(loads: list[float], fairest: list[float], too_much: float, points: float, why: str):
    assert surplus(loads, fairest) == too_much, why
    assert score(loads, fairest) == pytest.approx(points), why


def test_loads_of_different_totals_are_not_compared():
    """While a partition is unassigned the others look better than they are: no score is right then."""
    with pytest.raises(ValueError, match="the totals of the loads differ: 1 and 2"):
        score([1, 0], fairest=[1, 1])
    with pytest.raises(ValueError, match="1 loads cannot be compared with 2"):
        surplus([2], fairest=[1, 1])


@given(small_groups())
def test_the_score_is_100_for_the_fairest_and_for_nothing_else(spec: GroupSpec):
    """The promise: 100 is as fair as any valid assignment can be, so there always is one that has it."""
    fairest = fairest_sizes(spec)
    if not fairest:
        return
    scores = {held: score(held, fairest) for held in map(sizes, valid_assignments(spec))}
    assert all(0 <= points <= 100 for points in scores.values())
    assert [held for held, points in scores.items() if points == 100] == [fairest]


@given(st.lists(st.integers(0, 9), min_size=2, max_size=6), st.data())
def test_taking_from_the_rich_never_costs_points(loads: list[int], data: st.DataObject):
    """Pigou and Dalton: moving one from a member to one that has at least two fewer makes nothing worse."""
    loads.sort()
    giver, taker = data.draw(st.integers(1, len(loads) - 1)), 0
    quota, rest = divmod(sum(loads), len(loads))
    fairest = [quota + (position < rest) for position in range(len(loads))]
    if loads[giver] < loads[taker] + 2:
        return
    after = [load - (place == giver) + (place == taker) for place, load in enumerate(loads)]
    before = evenness(loads)
    assert is_no_less_fair(after, than=loads)
    assert score(after, fairest) >= score(loads, fairest)
    assert evenness(after).gini <= before.gini
    assert evenness(after).coefficient_of_variation <= before.coefficient_of_variation


@given(st.integers(1, 30), st.integers(1, 30))
def test_each_partition_more_on_one_member_costs_points(members: int, partitions: int):
    """The scale has no flat stretch: from even to all on one it falls at each step."""
    quota, rest = divmod(partitions, members)
    loads = [quota + (position < rest) for position in range(members)]
    fairest, points = tuple(loads), [100.0]
    for giver in range(1, members):
        for _ in range(fairest[giver]):
            loads[0], loads[giver] = loads[0] + 1, loads[giver] - 1
            points.append(score(loads, fairest))
    assert all(later < earlier for earlier, later in pairwise(points))
    assert points[-1] == (0 if len(points) > 1 else 100)
