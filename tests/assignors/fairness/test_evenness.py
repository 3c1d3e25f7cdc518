"""Tests each measure of evenness against its definition."""

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
        ([2, 2, 2], 1.0, 0.0, 0.0, 0, "equal loads"),
        ([4], 1.0, 0.0, 0.0, 0, "a single load is always even"),
        ([4, 0], 2.0, 1.0, 0.5, 1, "one of two has everything: ratio n, Gini (n - 1) / n"),
        ([8, 0, 0, 0], 4.0, math.sqrt(3), 0.75, 3, "one of four has everything"),
        ([3, 1], 1.5, 0.5, 0.25, 0, "mean 2, each load differs by 1"),
        ([0, 0, 0], None, None, None, 3, "nothing to share: the ratios have no value"),
        ([0.5, 1.5], 1.5, 0.5, 0.25, 0, "the unit has no effect: a quarter of [2, 6]"),
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
@example([0, 5e-324])  # half of the smallest positive number is 0
def test_the_measures_are_their_definitions(loads: list[float]):
    """Gini is the mean difference of all pairs. The variation is the population deviation divided by the mean."""
    found = evenness(loads)
    if not sum(loads) > 1e-3:  # too small for a division
        return
    pairs = fmean(abs(one - other) for one in loads for other in loads)
    assert found.gini == pytest.approx(pairs / (2 * fmean(loads)), abs=1e-9)
    assert found.coefficient_of_variation == pytest.approx(pstdev(loads) / fmean(loads), abs=1e-9)
    assert (found.largest, found.smallest, found.shares) == (max(loads), min(loads), len(loads))


@pytest.mark.parametrize("loads", [[], [-1, 2], [math.nan], [1, math.inf]])
def test_invalid_loads_are_rejected(loads: list[float]):
    """An unknown amount must not count as a number, because all measures would then be wrong numbers."""
    with pytest.raises(ValueError, match="finite"):
        evenness(loads)


@pytest.mark.parametrize(
    ("loads", "fairest", "excess", "points", "why"),
    [
        ([2, 1, 2, 1, 1], SEVEN_OVER_FIVE, 0, 100, "7 partitions over 5 members cannot be fairer"),
        ([3, 1, 1, 1, 1], SEVEN_OVER_FIVE, 1, 80, "one of five partitions that can be misplaced"),
        ([3, 3, 1, 0, 0], SEVEN_OVER_FIVE, 2, 60, "the two busiest members have two too many"),
        ([2, 2, 2, 1, 0], SEVEN_OVER_FIVE, 1, 80, "the three busiest members together have one too many"),
        ([7, 0, 0, 0, 0], SEVEN_OVER_FIVE, 5, 0, "one member has everything"),
        ([1, 1, 1, 0, 0], (0, 0, 1, 1, 1), 0, 100, "unavoidable idle members do not count"),
        ([9, 1, 0], (0, 1, 9), 0, 100, "only one member subscribes to the nine partitions"),
        ([0, 0], (0, 0), 0, 100, "nothing to share"),
        ([12, 8, 0, 0], (0, 0, 10, 10), 2, 80, "Gini hardly changes if two busy members differ; the surplus does"),
        ([0.3, 0.1], [0.1, 0.1 + 0.2], 0, 100, "a rounding error does not count"),
        ([0.1 + 0.2], [0.3], 0, 100, "a rounding error causes no division by 0"),
    ],
)
def test_the_score(loads: list[float], fairest: list[float], excess: float, points: float, why: str):
    assert surplus(loads, fairest) == excess, why
    assert score(loads, fairest) == pytest.approx(points), why


def test_loads_of_different_totals_are_not_compared():
    """If a partition is unassigned, the other loads look better than they are. So there is no score."""
    with pytest.raises(ValueError, match="the totals of the loads differ: 1 and 2"):
        score([1, 0], fairest=[1, 1])
    with pytest.raises(ValueError, match="1 loads cannot be compared with 2"):
        surplus([2], fairest=[1, 1])


@given(small_groups())
def test_the_score_is_100_only_for_the_fairest_sizes(spec: GroupSpec):
    """A valid assignment with the score 100 always exists."""
    fairest = fairest_sizes(spec)
    if not fairest:
        return
    scores = {held: score(held, fairest) for held in map(sizes, valid_assignments(spec))}
    assert all(0 <= points <= 100 for points in scores.values())
    assert [held for held, points in scores.items() if points == 100] == [fairest]


@given(st.lists(st.integers(0, 9), min_size=2, max_size=6), st.data())
def test_moving_from_a_busier_member_never_lowers_the_score(loads: list[int], data: st.DataObject):
    """Pigou-Dalton principle: a move to a member with at least two fewer makes no measure worse."""
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
def test_each_additional_partition_on_one_member_lowers_the_score(members: int, partitions: int):
    """From equal sizes until one member has everything, each move lowers the score."""
    quota, rest = divmod(partitions, members)
    loads = [quota + (position < rest) for position in range(members)]
    fairest, points = tuple(loads), [100.0]
    for giver in range(1, members):
        for _ in range(fairest[giver]):
            loads[0], loads[giver] = loads[0] + 1, loads[giver] - 1
            points.append(score(loads, fairest))
    assert all(later < earlier for earlier, later in pairwise(points))
    assert points[-1] == (0 if len(points) > 1 else 100)
