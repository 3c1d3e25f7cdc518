"""The fewest moves against every valid assignment there is, and what counts as a move."""

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
            "two members swapped: as balanced before as after, all for nothing",
        ),
        (
            owners(A="t0 t1 t2 t3"),
            group({"t": 4}, A="t", B="t"),
            held(A="t0 t1", B="t2 t3"),
            Moves(2, 0, 2, is_exact=True),
            "a member joined and takes half",
        ),
        (
            owners(A="t0 t1", B="t2", C="t3"),
            group({"t": 4}, A="t", B="t"),
            held(A="t0 t1", B="t2 t3"),
            Moves(1, 1, 1, is_exact=True),
            "a member is gone: what it had moves whatever is done",
        ),
        (
            owners(A="t0 t1", B="t2 t3"),
            group({"t": 4, "u": 4}, A="u", B="t"),
            held(A="u0 u1 u2 u3", B="t0 t1 t2 t3"),
            Moves(2, 2, 2, is_exact=True),
            "a member subscribes to something else: what it had moves; what nobody had is no move",
        ),
        (
            {},
            group({"t": 4}, A="t", B="t"),
            held(A="t0 t1", B="t2 t3"),
            Moves(0, 0, 0, is_exact=True),
            "a new group: from nobody to somebody is no move",
        ),
        (
            owners(A="t0 t1 t2 t3"),
            group({"t": 2}, A="t", B="t"),
            held(A="t0", B="t1"),
            Moves(1, 0, 1, is_exact=True),
            "the topic was made anew, smaller: t2 and t3 have no owner now, which is no move",
        ),
        (
            owners(A="t0 t1 t2 t3 t4 t5"),
            group({"t": 6}, A="t", B="t"),
            held(A="t0 t1 t2 t3", B="t4 t5"),
            Moves(2, 0, 2, is_exact=True),
            "held to the balance it has, not to the best: to be fair a third would have moved",
        ),
        (
            owners(A="t0 t1 t2", B="t3", C="t4", D="t5"),
            group({"t": 6}, A="t", B="t", C="t", D="t"),
            held(A="t3 t4 t5", B="t0", C="t1", D="t2"),
            Moves(6, 0, 0, is_exact=True),
            "sizes 3 1 1 1 before and after: none had to",
        ),
        (
            owners(A="t0 t1 t2 t3", B="u0 u1"),
            group({"t": 4, "u": 2}, A="t", B="tu", C="u"),
            held(A="t0 t1", B="t2 t3", C="u0 u1"),
            Moves(4, 0, 4, is_exact=True),
            "a chain: t goes from A to B and therefore u from B to C. The bound says 2, the flow 4",
        ),
        (
            owners(A="t0 t1 t2 t3 t4"),
            group({"t": 5, "u": 1}, A="t", B="t", C="tu"),
            held(A="t0 t1 t2", B="t3", C="t4 u0"),
            Moves(2, 0, 2, is_exact=True),
            "sizes 3 2 1: A may keep three, as its busiest has three now, and no more",
        ),
        (
            owners(A="t0 t1 t2", B="t3 t4 t5"),
            group({"t": 6, "u": 1}, A="t", B="t", C="tu"),
            held(A="t0 t1 t3", B="t2 t4", C="t5 u0"),
            Moves(3, 0, 1, is_exact=True),
            "sizes 3 2 2: A could have kept its three, or B, but not both; A and B swapped one for nothing",
        ),
        (
            owners(A="t0 t1 t2", B="t3 t4 t5"),
            group({"t": 6, "u": 1}, A="t", B="t", C="tu"),
            held(A="t0 t1 t2", B="t3", C="t4 t5 u0"),
            Moves(2, 0, 0, is_exact=True),
            "sizes 3 3 1, as if A and B had kept theirs: C need not have become one of the busiest",
        ),
        (
            owners(A="t0 t1", B="t2 t3"),
            group({"t": 4}, A="t", B="t", C="t"),
            held(A="t0", B="t2 t3", C=""),
            Moves(0, 0, None, is_exact=False),
            "withheld between two cooperative rounds: not all is assigned, so nothing is said of the fewest",
        ),
        (
            owners(A="t0 t1"),
            group({"t": 2}, A="t", B="t"),
            held(A="t0 t1", B="t1"),
            Moves(1, 0, None, is_exact=False),
            "assigned twice: a law is broken",
        ),
    ],
)
def test_the_moves(before: Owners, spec: GroupSpec, now: GroupAssignment, expected: Moves, why: str):
    assert count_moves(before, spec, now) == expected, why


@st.composite
def rebalances(draw: st.DrawFn) -> tuple[Owners, GroupSpec, GroupAssignment, list[GroupAssignment]]:
    """Draw a rebalance that has reasons to move: from few owners to many members, some gone, some unsubscribed.

    Returns the owners before, the group, its actual assignment, and all valid ones.
    """
    spec = draw(small_groups())
    valid = list(valid_assignments(spec))
    earlier = min(draw(st.lists(st.sampled_from(valid), min_size=1, max_size=3)), key=lambda found: -max_size(found))
    before = {partition: name for name, of in earlier.members.items() for partition in of}
    partitions = [(topic, number) for topic, count in spec.partitions.items() for number in range(count + 1)]
    everybody = [None, "gone", *(member.member_id for member in spec.members)]
    for partition in draw(st.lists(st.sampled_from(partitions), max_size=3)):
        owner = draw(st.sampled_from(everybody))
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
    """The definition, by trying all: members that left, claims to what is gone, and unequal subscriptions included."""
    before, spec, actual, valid = rebalance
    found = count_moves(before, spec, actual)
    counted = [(_moved(before, other), is_no_less_fair(sizes(other), than=sizes(actual))) for other in valid]
    assert found.moved == _moved(before, actual)
    assert found.fewest == min(moved for moved, is_no_less_balanced in counted if is_no_less_balanced)
    assert found.is_exact
    assert found.unavoidable == min(moved for moved, _ in counted)
    bound = count_moves(before, spec, actual, max_arcs=0)
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
    """From each strategy's answer to each other's: no counted figure may lie below its own minimum."""
    plain = GroupSpec(spec.members, spec.partitions)
    answers = [assignor.assign(plain) for assignor in BUILT_IN.values()]
    for earlier in answers:
        before = {partition: member_id for member_id, of in earlier.members.items() for partition in of}
        for later in answers:
            found = count_moves(before, plain, later)
            assert found.is_exact
            assert 0 <= found.unavoidable <= found.fewest <= found.moved


def test_a_bound_says_that_it_is_one():
    """The chain of the table above, with no network allowed: at least 2 of the 4 had to move, perhaps more."""
    spec = group({"t": 4, "u": 2}, A="t", B="tu", C="u")
    found = count_moves(owners(A="t0 t1 t2 t3", B="u0 u1"), spec, held(A="t0 t1", B="t2 t3", C="u0 u1"), max_arcs=0)
    assert found == Moves(4, 0, 2, is_exact=False)


def test_a_thousand_members_of_different_subscriptions_are_exact():
    """One of a thousand leaves: only its ten had to move. Range deals anew and moves most, 99 in 100 for nothing."""
    spec = make_group(1_000, 10_000, 100, heterogeneous=True)
    before = {partition: name for name, of in StickyAssignor().assign(spec).members.items() for partition in of}
    left = GroupSpec(spec.members[1:], spec.partitions)
    ranged = count_moves(before, left, BUILT_IN["range"].assign(left))
    assert (ranged.is_exact, ranged.fewest, ranged.unavoidable) == (True, 10, 10)
    assert ranged.moved > 9_000
