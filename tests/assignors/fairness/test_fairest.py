"""The fairest that any valid assignment can be, held against all of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import BUILT_IN
from assignors.fairness.fairest import (
    TooManySubscriptionsError,
    _shape,
    _smallest_cut,
    excess_partitions,
    fairest_sizes,
    smallest_maximum,
)
from assignors.model import GroupAssignment, GroupSpec, MemberSubscription
from tests.assignors.brute_force import is_no_less_fair, sizes, small_groups, valid_assignments
from tests.assignors.groups import groups
from tests.bench.assignors import make_group


def group(partitions: dict[str, int], *subscriptions: str) -> GroupSpec:
    """Return a group whose members subscribe to the topics given as one word each: "t u"."""
    members = (MemberSubscription(f"c{number}", tuple(topics.split())) for number, topics in enumerate(subscriptions))
    return GroupSpec(tuple(members), partitions)


@pytest.mark.parametrize(
    ("partitions", "subscriptions", "fairest", "why"),
    [
        ({"t": 7}, ["t"] * 5, (1, 1, 1, 2, 2), "7 over 5: the gap of one cannot be closed"),
        ({"t": 3}, ["t"] * 5, (0, 0, 1, 1, 1), "five members on three partitions: two are idle in any assignment"),
        ({"t": 10}, ["t"] * 5, (2, 2, 2, 2, 2), "exactly even"),
        ({"t": 0}, ["t", "t"], (0, 0), "a topic without partitions gives nothing"),
        ({}, ["gone"], (0,), "a topic without metadata gives nothing"),
        ({"t": 4}, [], (), "nobody there"),
        ({"t": 4}, [""], (0,), "a member that subscribes to nothing gets nothing"),
        ({"t": 4}, ["t", "t", ""], (0, 2, 2), "and is no help to the others"),
        ({"t": 6, "u": 2}, ["t", "u"], (2, 6), "each alone with its topic: 6 against 2 is fair"),
        ({"t": 6, "u": 2}, ["t", "t u"], (4, 4), "the second can take from t what u lacks"),
        ({"t": 9, "u": 1}, ["t", "u", "u"], (0, 1, 9), "three levels: 9 alone, 1 shared by two"),
        ({"t": 4, "u": 4, "v": 1}, ["t", "t u", "u v"], (3, 3, 3), "only a chain of moves through the second does it"),
        ({"t": 5, "u": 1}, ["t gone", "t", "u"], (1, 2, 3), "{t, gone} and {t} can be given the same"),
    ],
)
def test_the_fairest_sizes(partitions: dict[str, int], subscriptions: list[str], fairest: tuple[int, ...], why: str):
    found = group(partitions, *subscriptions)
    assert fairest_sizes(found) == fairest, why
    assert smallest_maximum(found) == max(fairest, default=0), why


@given(small_groups())
def test_some_valid_assignment_has_the_fairest_sizes_and_none_is_fairer(spec: GroupSpec):
    """Reached, and majorised by every other: so its largest, idle, Gini and variance are all the least at once."""
    reached = {sizes(assignment) for assignment in valid_assignments(spec)}
    fairest = fairest_sizes(spec)
    assert fairest in reached
    assert all(is_no_less_fair(fairest, than=others) for others in reached)


@settings(max_examples=50)
@given(
    st.dictionaries(st.sampled_from("tuvwxy"), st.integers(0, 60)), st.lists(st.text("tuvwxy", max_size=4), max_size=9)
)
def test_under_every_limit_the_fairest_hands_out_as_much_as_any_flow(counts: dict[str, int], subscriptions: list[str]):
    """The law it is built from, at sizes nobody can try one by one: no straight piece may be cut short or run on."""
    spec = group(counts, *(" ".join(topics) for topics in subscriptions))
    fairest, shape = fairest_sizes(spec), _shape(spec)
    for limit in range(max(fairest, default=0) + 2):
        assert sum(min(size, limit) for size in fairest) == _smallest_cut(shape, limit).at(limit)


@given(small_groups())
def test_the_smallest_maximum_is_the_smallest_of_all_assignments(spec: GroupSpec):
    """Issue: exact, tested by brute force on small groups."""
    assert smallest_maximum(spec) == min(max(sizes(found), default=0) for found in valid_assignments(spec))


@given(groups())
def test_no_strategy_is_fairer_than_the_fairest(spec: GroupSpec):
    """In any group, racks and static members included: no strategy's sizes may beat the bound it is measured by."""
    for assignor in BUILT_IN.values():
        held = sizes(assignor.assign(spec))
        fairest = fairest_sizes(spec)
        if sum(held) == sum(fairest):  # cooperative withholds in its first round
            assert is_no_less_fair(fairest, than=held)


@pytest.mark.parametrize(
    ("held", "excess", "why"),
    [
        ([2, 2, 1, 1, 1], 0, "7 over 5: nobody can do better, no alert"),
        ([3, 1, 1, 1, 1], 1, "one member has one that another could have"),
        ([7, 0, 0, 0, 0], 5, "all on one"),
        ([2, 2, 2, 1, 0], 0, "unfair, yet the busiest has no more than it must: idle members show that"),
        ([1, 1, 0, 0, 0], 0, "between two cooperative rounds: what is withheld counts for nobody, and never below 0"),
    ],
)
def test_the_excess_is_what_the_busiest_has_beyond_what_it_must(held: list[int], excess: int, why: str):
    left = iter(("t", number) for number in range(7))
    assigned = {f"c{number}": tuple(next(left) for _ in range(size)) for number, size in enumerate(held)}
    assert excess_partitions(group({"t": 7}, *["t"] * 5), GroupAssignment(assigned)) == excess, why


def test_a_thousand_different_subscriptions_are_exact_too():
    """Each member with a random half of 100 topics: ten each, as sticky finds as well."""
    spec = make_group(1_000, 10_000, 100, heterogeneous=True)
    assert fairest_sizes(spec) == (10,) * 1_000


def test_a_search_that_would_take_too_long_is_not_begun():
    """Rule of bounds: two subscriptions of three topics in all. Where all subscribe to the same there is no search."""
    with pytest.raises(TooManySubscriptionsError, match=r"too many different subscriptions .*: 2"):
        fairest_sizes(group({"t": 3, "u": 2}, "t", "t u"), max_arcs=2)
    assert fairest_sizes(group({"t": 3, "u": 2}, "t", "t u"), max_arcs=3) == (2, 3)
    assert fairest_sizes(group({"t": 3, "u": 2}, "t u", "t u"), max_arcs=0) == (2, 3)
