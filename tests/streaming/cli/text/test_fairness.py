"""Test the sentences that describe the fairness of an assignment."""

from __future__ import annotations

import doctest

import pytest

import streaming.cli.text.fairness
from assignors import GroupAssignment, GroupSpec
from streaming.cli.text.fairness import evaluate_fairness, fairness_summary
from tests.assignors.spelled import group, held

SKEWED = group({"t": 2, "u": 2, "v": 2}, A="tuv", B="tuv", C="tuv")


ONE_TOO_MANY = "the busiest member has 1 partition too many"
ONE_IDLE = "1 member is idle without need"
SKEW = "topic skew: some members have one extra partition in each of 3 topics"
THREE, SIX, EIGHT, NINE = (
    group({"t": 3}, A="t", B="t"),
    group({"t": 6}, A="t", B="t", C="t", D="t"),
    group({"t": 8}, A="t", B="t", C="t", D="t", E="t"),
    group({"t": 9}, A="t", B="t", C="t", D="t"),
)


@pytest.mark.parametrize(
    ("spec", "now", "message", "why"),
    [
        (THREE, held(A="t0 t1", B="t2"), ["fair"], "an unavoidable difference"),
        (THREE, held(A="t0 t1 t2", B=""), [ONE_TOO_MANY, ONE_IDLE], "all on one"),
        (SIX, held(A="t0 t1", B="t2 t3", C="t4 t5", D=""), [ONE_IDLE], "the busiest member has no excess"),
        (EIGHT, held(A="t0 t1", B="t2 t3", C="t4 t5", D="t6", E="t7"), ["fair"], "8 over 5"),
        (NINE, held(A="t0 t1 t2", B="t3 t4 t5", C="t6 t7", D="t8"), ["uneven"], "3 3 2 1 instead of 3 2 2 2"),
        (SKEWED, held(A="t0 u0 v0", B="t1 u1 v1", C=""), [ONE_TOO_MANY, ONE_IDLE, SKEW], "what range does by design"),
        (THREE, held(A="t0", B="t1"), None, "unknown because t2 has no owner"),
        (group({"t": 2}), GroupAssignment({}), None, "no members"),
    ],
)
def test_only_avoidable_unfairness_is_described(
    spec: GroupSpec, now: GroupAssignment, message: list[str] | None, why: str
) -> None:
    assert fairness_summary(*evaluate_fairness(spec, now)) == (None if message is None else "; ".join(message)), why


def test_the_example_in_the_docstring_is_true() -> None:
    assert doctest.testmod(streaming.cli.text.fairness).failed == 0
