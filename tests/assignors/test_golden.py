"""Compares our assignments with those of Kafka 4.2.0 (see tests/golden/README.md), and checks the rules."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from assignors import AS_JAVA_LEADER, BUILT_IN
from assignors.fairness.invariants import violations
from assignors.fairness.measures import measure
from assignors.racks import member_rack, racks_of
from assignors.sticky.cooperative import group_after_rejoin, rebalance_needed
from assignors.what_if.scenario import parse_scenario
from tests.assignors.golden import VECTORS, as_assignment, golden_vectors
from tests.assignors.needless import needless_moves

if TYPE_CHECKING:
    from assignors.model import GroupAssignment, GroupSpec

COOPERATIVE = "cooperative-sticky"
EVERY_VECTOR = pytest.mark.parametrize("vector", golden_vectors(), ids=lambda vector: vector["id"])
JAVA_IS_VALID = pytest.mark.parametrize(
    "vector",
    [vector for vector in golden_vectors() if vector["expected"].get("metrics", {}).get("valid")],
    ids=lambda vector: vector["id"],
)


def test_the_vectors_are_unchanged():
    """The vectors must not be edited to make a test pass. A new file from Kafka needs a new digest here."""
    digest = hashlib.sha256(VECTORS.read_bytes()).hexdigest()
    assert digest == "637e12c44bf07c91f162b02b810a6fc77082bf41fd4a6fe2bf7160583f095dc3"


@EVERY_VECTOR
def test_our_assignment_keeps_the_rules(vector: dict[str, Any]):
    """In some scenarios Java throws, keeps a deleted partition, or ignores a subscription."""
    group, strategy = parse_scenario(vector).group, vector["strategy"]
    answer = BUILT_IN[strategy].assign(group)
    assert violations(group, answer, strategy) == []
    assert needless_moves(group, answer, strategy) == 0


@JAVA_IS_VALID
def test_our_assignment_is_equal_to_javas(vector: dict[str, Any]):
    """Applies if Java's result depends only on the scenario, or does so with members in sorted order."""
    group, strategy = parse_scenario(vector).group, vector["strategy"]
    expected = _expected_when_members_are_sorted(vector)
    if expected is None:
        pytest.skip("Java's result depends on hash codes; see test_our_assignment_is_no_worse_than_javas")
    answer = BUILT_IN[strategy].assign(group)
    assert answer == as_assignment(expected["assignment"])
    if strategy == COOPERATIVE:
        second = BUILT_IN[strategy].assign(group_after_rejoin(group, answer))
        assert second == as_assignment(expected["assignment_after_second_round"])
        assert rebalance_needed(group, answer) == vector["expected"]["rebalance_needed"]


@JAVA_IS_VALID
def test_our_java_leader_assigns_as_java(vector: dict[str, Any]):
    """With members in the order of Java's hash maps, the result is always equal. So it can be replayed."""
    group, assignor = parse_scenario(vector).group, AS_JAVA_LEADER[vector["strategy"]]
    answer = assignor.assign(group)
    assert answer == as_assignment(vector["expected"]["assignment"])
    if vector["strategy"] == COOPERATIVE:
        second = assignor.assign(group_after_rejoin(group, answer))
        assert second == as_assignment(vector["expected"]["assignment_after_second_round"])


@JAVA_IS_VALID
def test_our_assignment_is_no_worse_than_javas(vector: dict[str, Any]):
    """Balance and moves are within the range of Java's results over all orders of its hash maps."""
    group, final = _final_answer(vector)
    measures, metrics = measure(group, final), vector["expected"]["metrics"]
    study = vector["expected"].get("order_study", {}).get("ranges")
    if study:
        assert measures.balance_score <= study["balance_score"][1]
        assert measures.moves <= study["moves"][1]
    else:
        assert measures.balance_score == metrics["balance_score"]
        assert measures.moves == metrics["moves"]


@JAVA_IS_VALID
def test_our_measures_of_javas_assignment_are_its_metrics(vector: dict[str, Any]):
    """The numbers in reports have the same definition as those of the vectors."""
    expected = vector["expected"]
    javas = as_assignment(expected.get("assignment_after_second_round", expected["assignment"]))
    group = parse_scenario(vector).group
    measures = measure(group, javas)
    metrics = expected["metrics"]
    assert list(measures.sizes) == metrics["sizes"]
    names = ["balance_score", "max_minus_min", "moves", "kept", "unassigned"]
    assert {name: getattr(measures, name) for name in names} == {name: metrics[name] for name in names}
    assert _rack_mismatches(group, javas) == metrics.get("rack_mismatches", 0)


@JAVA_IS_VALID
def test_javas_valid_assignments_break_none_of_our_rules(vector: dict[str, Any]):
    """Otherwise the monitor would report violations of a healthy group."""
    group, strategy = parse_scenario(vector).group, vector["strategy"]
    javas = as_assignment(vector["expected"]["assignment"])
    assert violations(group, javas, strategy) == []
    assert needless_moves(group, javas, strategy) == 0


def _rack_mismatches(group: GroupSpec, assignment: GroupAssignment) -> int:
    """Count the partitions that have no replica in the rack of their member. A member without a rack does not count."""
    if not group.racks:
        return 0
    return sum(
        rack not in racks_of(group, topic)[number]
        for member in group.members
        if (rack := member_rack(member))
        for topic, number in assignment.members[member.member_id]
        if group.exists((topic, number))
    )


def _expected_when_members_are_sorted(vector: dict[str, Any]) -> dict[str, Any] | None:
    expected: dict[str, Any] = vector["expected"]
    if not expected["order_sensitive"] or vector["strategy"] == "uniform":
        return expected
    in_order: dict[str, Any] = expected["sorted_order"]
    return in_order if in_order["exact"] and in_order["metrics"]["valid"] else None


def _final_answer(vector: dict[str, Any]) -> tuple[GroupSpec, GroupAssignment]:
    """Return the final assignment, and the first group, because moves are counted from its claims.

    For cooperative-sticky it assigns twice.
    """
    group, assignor = parse_scenario(vector).group, BUILT_IN[vector["strategy"]]
    answer = assignor.assign(group)
    if vector["strategy"] == COOPERATIVE:
        answer = assignor.assign(group_after_rejoin(group, answer))
    return group, answer
