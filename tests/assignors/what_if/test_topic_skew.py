"""Skew over several topics: when it is named, when not, and that the strategy advised removes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import BUILT_IN
from assignors.fairness.evenness import surplus
from assignors.fairness.fairest import fairest_sizes
from assignors.model import GroupAssignment, GroupSpec
from assignors.what_if.topic_skew import TopicSkew, choose_remedy, topic_skew
from assignors.what_if.what_if import FailedOutcome, what_if
from tests.assignors.brute_force import sizes
from tests.assignors.groups import groups
from tests.assignors.spelled import group, held, owners

TWO_BY_THREE = group({"t": 3, "u": 3}, A="tu", B="tu")
RANGED = "t0 t1 u0 u1"


@pytest.mark.parametrize(
    ("spec", "now", "expected", "why"),
    [
        (TWO_BY_THREE, held(A=RANGED, B="t2 u2"), TopicSkew(("A",), 2, 1), "RangeAssignor's own example: 4 against 2"),
        (TWO_BY_THREE, held(A="t0 t1 u0", B="t2 u1 u2"), None, "each has the one more of one topic: rule 3"),
        (TWO_BY_THREE, held(A="t0 t1 u0 u1 u2", B="t2"), None, "u is uneven by itself: rule 2"),
        (TWO_BY_THREE, held(A=RANGED, B="t2"), None, "u2 has no owner: that comes first, rule 1"),
        (
            group({"t": 1, "u": 1, "v": 1}, A="tuv", B="tuv", C="tuv"),
            held(A="t0 u0 v0", B="", C=""),
            TopicSkew(("A",), 3, 2),
            "topics of one partition: the first member has them all, the others are idle",
        ),
        (
            group({"t": 2, "u": 2, "v": 2}, A="tuv", B="tuv", C="tuv"),
            held(A="t0 u0 v0", B="t1 u1 v1", C=""),
            TopicSkew(("A", "B"), 3, 2),
            "two members share the one more of every topic",
        ),
        (
            group({"t": 3, "u": 3}, A="tu", B="tu", C="tu", D="tu"),
            held(A="t0 u0", B="t1 u1", C="t2 u2", D=""),
            TopicSkew(("A", "B", "C"), 2, 1),
            "nobody has more than two, which is the smallest maximum; D is idle all the same",
        ),
        (
            group({"t": 4, "u": 4}, A="tu", B="t"),
            held(A="t0 t1 u0 u1 u2 u3", B="t2 t3"),
            None,
            "uneven by unequal subscriptions: nobody has the one more of anything, rule 4",
        ),
        (
            group({"t": 3, "u": 2}, A="tu", B="t"),
            held(A="t0 t1 u0 u1", B="t2"),
            None,
            "A has the one more of t only; what makes it busy is that nobody else subscribes to u: rule 4",
        ),
        (
            group({"t": 1, "u": 1}, A="tu", B="tv", C="uv"),
            held(A="t0", B="", C="u0"),
            None,
            "as fair as can be, rule 3",
        ),
        (group({}, A="t"), held(A=""), None, "nothing to assign"),
        (group({}), GroupAssignment({}), None, "nobody there"),
    ],
)
def test_the_skew(spec: GroupSpec, now: GroupAssignment, expected: TopicSkew | None, why: str):
    assert topic_skew(spec, now) == expected, why


def test_the_strategy_that_removes_it_is_the_one_that_moves_least():
    """Roundrobin and sticky are both fair here; sticky moves one partition, roundrobin more."""
    outcomes = what_if(TWO_BY_THREE, owners(A=RANGED, B="t2 u2"), BUILT_IN.values()).outcomes
    advised = choose_remedy(outcomes)
    assert (advised.strategy, advised.moved_partitions, advised.excess_partitions) == ("sticky", 1, 0)
    assert {one.strategy for one in outcomes if one.score == 100} == set(BUILT_IN) - {"range", "server-range"}


def test_nothing_is_advised_that_does_not_remove_it():
    """Neither range, which made it, nor a strategy that failed."""
    outcomes = what_if(TWO_BY_THREE, {}, [BUILT_IN["range"]]).outcomes
    assert choose_remedy([*outcomes, FailedOutcome("mine", "raised", "KeyError")]) is None


@given(groups(claims=False))
def test_no_skew_is_named_in_a_fair_group_and_none_by_an_even_strategy(spec: GroupSpec):
    """A false name would send people to change a strategy that is right. Sticky's total is even, so rule 3 holds."""
    plain = GroupSpec(spec.members, spec.partitions)
    for assignor in BUILT_IN.values():
        answer = assignor.assign(plain)
        found = topic_skew(plain, answer)
        unfair = surplus(sizes(answer), fairest_sizes(plain))
        assert found is None or (found.surplus_partitions == unfair > 0 and len(found.members) > 0)


@given(st.integers(1, 6), st.lists(st.integers(0, 8), min_size=1, max_size=5))
def test_where_all_subscribe_to_the_same_ranges_unfairness_is_always_named(members: int, counts: list[int]):
    """Then range has no other way to be unfair, so a skew not named would be one missed."""
    names, topics = "ABCDEF"[:members], "tuvwx"[: len(counts)]
    spec = group(dict(zip(topics, counts, strict=True)), **dict.fromkeys(names, topics))
    ranged = BUILT_IN["range"].assign(spec)
    found = topic_skew(spec, ranged)
    assert (found is not None) == (sizes(ranged) != fairest_sizes(spec))
    held_now = {partition: name for name, of in ranged.members.items() for partition in of}
    assert found is None or choose_remedy(what_if(spec, held_now, BUILT_IN.values()).outcomes) is not None
