"""Tests the fewest moves against all valid assignments, and which changes count as a move."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import BUILT_IN
from assignors.fairness.fewest_moves import Moves, count_moves
from assignors.model import GroupAssignment, GroupSpec, TopicPartition
from assignors.sticky.sticky import StickyAssignor
from tests.assignors.brute_force import is_no_less_fair, sizes, small_groups, valid_assignments
from tests.assignors.groups import groups
from tests.assignors.spelled import group, held, owners
from tests.bench.assignors import make_group

Owners = dict[TopicPartition, str]


@pytest.mark.parametrize(
    ("before", "spec", "now", "expected", "why"),
    [
        (
            owners(A="t0 t1", B="t2 t3"),
            group({"t": 4}, A="t", B="t"),
            held(A="t0 t1", B="t2 t3"),
            Moves(0, 0, 0, is_exact=True),
            "nothing changed",
        ),
        (
            owners(A="t0 t1", B="t2 t3"),
            group({"t": 4}, A="t", B="t"),
            held(A="t2 t3", B="t0 t1"),
            Moves(4, 0, 0, is_exact=True),
            "two members swapped: the balance is the same, so all moves were needless",
        ),
        (
            owners(A="t0 t1 t2 t3"),
            group({"t": 4}, A="t", B="t"),
            held(A="t0 t1", B="t2 t3"),
            Moves(2, 0, 2, is_exact=True),
            "a member joined and takes half",
        ),
        (
            owners(A="t0 t1"),
            group({"t": 2}, A="t", B="t", C="t"),
            held(A="", B="t0", C="t1"),
            Moves(2, 0, 1, is_exact=True),
            "two members joined: A could have kept one of its partitions",
        ),
        (
            owners(A="t0 t1", B="t2", C="t3"),
            group({"t": 4}, A="t", B="t"),
            held(A="t0 t1", B="t2 t3"),
            Moves(1, 1, 1, is_exact=True),
            "a member left: its partitions move in any assignment",
        ),
        (
            owners(A="t0 t1", B="t2 t3"),
            group({"t": 4, "u": 4}, A="u", B="t"),
            held(A="u0 u1 u2 u3", B="t0 t1 t2 t3"),
            Moves(2, 2, 2, is_exact=True),
            "A subscribes to a different topic: its partitions move; partitions without an owner do not count",
        ),
        (
            {},
            group({"t": 4}, A="t", B="t"),
            held(A="t0 t1", B="t2 t3"),
            Moves(0, 0, 0, is_exact=True),
            "a new group: no partition had an owner, so none moved",
        ),
        (
            owners(A="t0 t1 t2 t3"),
            group({"t": 2}, A="t", B="t"),
            held(A="t0", B="t1"),
            Moves(1, 0, 1, is_exact=True),
            "the topic was created again with fewer partitions: t2 and t3 have no owner now, which is no move",
        ),
        (
            owners(A="t0 t1 t2 t3 t4 t5"),
            group({"t": 6}, A="t", B="t"),
            held(A="t0 t1 t2 t3", B="t4 t5"),
            Moves(2, 0, 2, is_exact=True),
            "compared with the actual balance, not with the best one, which would need a third move",
        ),
        (
            owners(A="t0 t1 t2", B="t3", C="t4", D="t5"),
            group({"t": 6}, A="t", B="t", C="t", D="t"),
            held(A="t3 t4 t5", B="t0", C="t1", D="t2"),
            Moves(6, 0, 0, is_exact=True),
            "sizes 3 1 1 1 before and after: no move was necessary",
        ),
        (
            owners(A="t0 t1 t2 t3", B="u0 u1"),
            group({"t": 4, "u": 2}, A="t", B="tu", C="u"),
            held(A="t0 t1", B="t2 t3", C="u0 u1"),
            Moves(4, 0, 4, is_exact=True),
            "a chain: t moves from A to B, and therefore u from B to C; the bound is 2, the flow is 4",
        ),
        (
            owners(A="t0 t1 t2 t3 t4"),
            group({"t": 5, "u": 1}, A="t", B="t", C="tu"),
            held(A="t0 t1 t2", B="t3", C="t4 u0"),
            Moves(2, 0, 2, is_exact=True),
            "sizes 3 2 1: A could keep three, because the busiest member has three now",
        ),
        (
            owners(A="t0 t1 t2", B="t3 t4 t5"),
            group({"t": 6, "u": 1}, A="t", B="t", C="tu"),
            held(A="t0 t1 t3", B="t2 t4", C="t5 u0"),
            Moves(3, 0, 1, is_exact=True),
            "sizes 3 2 2: either A or B could have kept three; the swap of A and B was needless",
        ),
        (
            owners(A="t0 t1 t2", B="t3 t4 t5"),
            group({"t": 6, "u": 1}, A="t", B="t", C="tu"),
            held(A="t0 t1 t2", B="t3", C="t4 t5 u0"),
            Moves(2, 0, 0, is_exact=True),
            "sizes 3 3 1: A and B could have kept their partitions",
        ),
        (
            owners(A="t0 t1", B="t2 t3"),
            group({"t": 4}, A="t", B="t", C="t"),
            held(A="t0", B="t2 t3", C=""),
            Moves(0, 0, None, is_exact=False),
            "between two cooperative rounds: t1 is withheld, so the fewest moves are unknown",
        ),
        (
            owners(A="t0 t1"),
            group({"t": 2}, A="t", B="t"),
            held(A="t0 t1", B="t1"),
            Moves(1, 0, None, is_exact=False),
            "t1 is assigned twice, which breaks a rule",
        ),
    ],
)
def test_the_moves(before: Owners, spec: GroupSpec, now: GroupAssignment, expected: Moves, why: str):
    assert count_moves(before, spec, now) == expected, why


@st.composite
def rebalances(draw: st.DrawFn) -> tuple[Owners, GroupSpec, GroupAssignment, list[GroupAssignment]]:
    """Draw a rebalance with reasons to move: members join, leave or change their subscription.

    Returns the previous owners, the group, its actual assignment, and all valid assignments.
    """
    spec = draw(small_groups())
    valid = list(valid_assignments(spec))
    earlier = min(draw(st.lists(st.sampled_from(valid), min_size=1, max_size=3)), key=lambda found: -max_size(found))
    before = {partition: name for name, of in earlier.members.items() for partition in of}
    partitions = [(topic, number) for topic, count in spec.partitions.items() for number in range(count + 1)]
    possible_owners = [None, "gone", *(member.member_id for member in spec.members)]
    for partition in draw(st.lists(st.sampled_from(partitions), max_size=3)):
        owner = draw(st.sampled_from(possible_owners))
        before.pop(partition, None)
        before.update({} if owner is None else {partition: owner})
    actual = min(draw(st.lists(st.sampled_from(valid), min_size=1, max_size=3)), key=max_size)
    return before, spec, actual, valid


def max_size(assignment: GroupAssignment) -> int:
    return max(sizes(assignment), default=0)


@settings(max_examples=200)
@given(rebalances())
def test_no_valid_assignment_that_is_no_less_balanced_moves_fewer(
    rebalance: tuple[Owners, GroupSpec, GroupAssignment, list[GroupAssignment]],
):
    """Checks the definition with all assignments. Members can have left, and topics can have been deleted."""
    before, spec, actual, valid = rebalance
    found = count_moves(before, spec, actual)
    counted = [(_moved(before, other), is_no_less_fair(sizes(other), than=sizes(actual))) for other in valid]
    assert found.moved == _moved(before, actual)
    assert found.fewest == min(moved for moved, is_no_less_balanced in counted if is_no_less_balanced)
    assert found.is_exact
    assert found.unavoidable == min(moved for moved, _ in counted)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("assignors.fairness.fewest_moves.MAX_ARCS", 0)
        bound = count_moves(before, spec, actual)
    assert bound.fewest <= found.fewest
    assert not bound.is_exact or bound.fewest == found.fewest


def _moved(before: Owners, now: GroupAssignment) -> int:
    return sum(
        partition in before and before[partition] != member_id
        for member_id, partitions in now.members.items()
        for partition in partitions
    )


@settings(max_examples=50)
@given(groups(claims=False))
def test_no_strategy_moves_fewer_than_the_fewest(spec: GroupSpec):
    """Counts the moves from the assignment of each strategy to that of every other strategy."""
    plain = GroupSpec(spec.members, spec.partitions)
    answers = [assignor.assign(plain) for assignor in BUILT_IN.values()]
    for earlier in answers:
        before = {partition: member_id for member_id, of in earlier.members.items() for partition in of}
        for later in answers:
            found = count_moves(before, plain, later)
            assert found.is_exact
            assert 0 <= found.unavoidable <= found.fewest <= found.moved


def test_a_lower_bound_is_marked_as_such(monkeypatch: pytest.MonkeyPatch):
    """The chain of the table above without the flow network: at least 2 of the 4 moves were necessary."""
    spec = group({"t": 4, "u": 2}, A="t", B="tu", C="u")
    monkeypatch.setattr("assignors.fairness.fewest_moves.MAX_ARCS", 0)
    found = count_moves(owners(A="t0 t1 t2 t3", B="u0 u1"), spec, held(A="t0 t1", B="t2 t3", C="u0 u1"))
    assert found == Moves(4, 0, 2, is_exact=False)


def test_a_thousand_members_of_different_subscriptions_are_exact():
    """One of a thousand members leaves. Only its ten partitions must move. Range moves more than 9,000."""
    spec = make_group(1_000, 10_000, 100, heterogeneous=True)
    before = {partition: name for name, of in StickyAssignor().assign(spec).members.items() for partition in of}
    left = GroupSpec(spec.members[1:], spec.partitions)
    ranged = count_moves(before, left, BUILT_IN["range"].assign(left))
    assert (ranged.is_exact, ranged.fewest, ranged.unavoidable) == (True, 10, 10)
    assert ranged.moved > 9_000
