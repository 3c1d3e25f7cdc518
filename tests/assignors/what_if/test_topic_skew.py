"""Tests when topic skew is reported, and that the recommended strategy removes it."""

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
        (
            TWO_BY_THREE,
            held(A=RANGED, B="t2 u2"),
            TopicSkew(("A",), 2, 1),
            "the example of RangeAssignor: sizes 4 and 2",
        ),
        (TWO_BY_THREE, held(A="t0 t1 u0", B="t2 u1 u2"), None, "rule 3: each has the extra partition of one topic"),
        (TWO_BY_THREE, held(A="t0 t1 u0 u1 u2", B="t2"), None, "rule 2: u is not shared evenly"),
        (TWO_BY_THREE, held(A=RANGED, B="t2"), None, "rule 1: u2 has no owner"),
        (
            group({"t": 1, "u": 1, "v": 1}, A="tuv", B="tuv", C="tuv"),
            held(A="t0 u0 v0", B="", C=""),
            TopicSkew(("A",), 3, 2),
            "topics with one partition: the first member has all of them, the others are idle",
        ),
        (
            group({"t": 2, "u": 2, "v": 2}, A="tuv", B="tuv", C="tuv"),
            held(A="t0 u0 v0", B="t1 u1 v1", C=""),
            TopicSkew(("A", "B"), 3, 2),
            "the same two members have the extra partition of every topic",
        ),
        (
            group({"t": 3, "u": 3}, A="tu", B="tu", C="tu", D="tu"),
            held(A="t0 u0", B="t1 u1", C="t2 u2", D=""),
            TopicSkew(("A", "B", "C"), 2, 1),
            "the largest size is the smallest maximum, but D is idle",
        ),
        (
            group({"t": 4, "u": 4}, A="tu", B="t"),
            held(A="t0 t1 u0 u1 u2 u3", B="t2 t3"),
            None,
            "rule 4: sizes differ because subscriptions differ; no topic has an extra partition",
        ),
        (
            group({"t": 3, "u": 2}, A="tu", B="t"),
            held(A="t0 t1 u0 u1", B="t2"),
            None,
            "rule 4: A has the extra partition of t only; it is busy because only A subscribes to u",
        ),
        (
            group({"t": 1, "u": 1}, A="tu", B="tv", C="uv"),
            held(A="t0", B="", C="u0"),
            None,
            "rule 3: no assignment is fairer",
        ),
        (group({}, A="t"), held(A=""), None, "nothing to assign"),
        (group({}), GroupAssignment({}), None, "no members"),
    ],
)
def test_the_skew(spec: GroupSpec, now: GroupAssignment, expected: TopicSkew | None, why: str):
    assert topic_skew(spec, now) == expected, why


def test_the_recommended_strategy_is_the_fair_one_with_the_fewest_moves():
    """Roundrobin and sticky are both fair here. Sticky moves one partition, and roundrobin moves more."""
    outcomes = what_if(TWO_BY_THREE, owners(A=RANGED, B="t2 u2"), BUILT_IN.values()).outcomes
    remedy = choose_remedy(outcomes)
    assert (remedy.strategy, remedy.moved_partitions, remedy.excess_partitions) == ("sticky", 1, 0)
    assert {one.strategy for one in outcomes if one.score == 100} == set(BUILT_IN) - {"range", "server-range"}


def test_a_strategy_that_does_not_remove_the_skew_is_not_recommended():
    """Neither range, which caused the skew, nor a failed strategy is recommended."""
    outcomes = what_if(TWO_BY_THREE, {}, [BUILT_IN["range"]]).outcomes
    assert choose_remedy([*outcomes, FailedOutcome("mine", "raised", "KeyError")]) is None


@given(groups(claims=False))
def test_no_skew_is_reported_for_a_fair_assignment(spec: GroupSpec):
    """A false report would make users change a correct strategy."""
    plain = GroupSpec(spec.members, spec.partitions)
    for assignor in BUILT_IN.values():
        answer = assignor.assign(plain)
        found = topic_skew(plain, answer)
        unfair = surplus(sizes(answer), fairest_sizes(plain))
        assert found is None or (found.surplus_partitions == unfair > 0 and len(found.members) > 0)


@given(st.integers(1, 6), st.lists(st.integers(0, 8), min_size=1, max_size=5))
def test_with_equal_subscriptions_the_unfairness_of_range_is_always_reported(members: int, counts: list[int]):
    """With equal subscriptions, topic skew is the only way in which range is unfair."""
    names, topics = "ABCDEF"[:members], "tuvwx"[: len(counts)]
    spec = group(dict(zip(topics, counts, strict=True)), **dict.fromkeys(names, topics))
    ranged = BUILT_IN["range"].assign(spec)
    found = topic_skew(spec, ranged)
    assert (found is not None) == (sizes(ranged) != fairest_sizes(spec))
    held_now = {partition: name for name, of in ranged.members.items() for partition in of}
    assert found is None or choose_remedy(what_if(spec, held_now, BUILT_IN.values()).outcomes) is not None
