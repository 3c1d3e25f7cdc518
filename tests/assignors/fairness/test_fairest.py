"""Tests the fairest sizes against all valid assignments of small groups."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignors import BUILT_IN
from assignors.fairness.fairest import TooManySubscriptionsError, _shape, _sizes_of, _smallest_cut, fairest_sizes
from assignors.model import GroupSpec, MemberSubscription
from tests.assignors.brute_force import is_no_less_fair, sizes, small_groups, valid_assignments
from tests.assignors.groups import groups
from tests.bench.assignors import make_group


def group(partitions: dict[str, int], *subscriptions: str) -> GroupSpec:
    """Return a group. Each subscription has topics separated by blanks, for example "t u"."""
    members = (MemberSubscription(f"c{number}", tuple(topics.split())) for number, topics in enumerate(subscriptions))
    return GroupSpec(tuple(members), partitions)


@pytest.mark.parametrize(
    ("partitions", "subscriptions", "fairest", "why"),
    [
        ({"t": 7}, ["t"] * 5, (1, 1, 1, 2, 2), "a difference of one between 5 members with 7 partitions"),
        ({"t": 3}, ["t"] * 5, (0, 0, 1, 1, 1), "with three partitions, two of five members are always idle"),
        ({"t": 10}, ["t"] * 5, (2, 2, 2, 2, 2), "equal sizes"),
        ({"t": 0}, ["t", "t"], (0, 0), "the topic has no partitions"),
        ({}, ["gone"], (0,), "the topic has no metadata"),
        ({"t": 4}, [], (), "no members"),
        ({"t": 4}, [""], (0,), "no subscription"),
        ({"t": 4}, ["t", "t", ""], (0, 2, 2), "one member without a subscription"),
        ({"t": 6, "u": 2}, ["t", "u"], (2, 6), "each topic has only one subscriber"),
        ({"t": 6, "u": 2}, ["t", "t u"], (4, 4), "the second member can also take partitions of t"),
        ({"t": 9, "u": 1}, ["t", "u", "u"], (0, 1, 9), "three different sizes"),
        ({"t": 4, "u": 4, "v": 1}, ["t", "t u", "u v"], (3, 3, 3), "needs a chain of moves through the second member"),
        ({"t": 5, "u": 1}, ["t gone", "t", "u"], (1, 2, 3), "{t, gone} and {t} can get the same partitions"),
    ],
)
def test_the_fairest_sizes(partitions: dict[str, int], subscriptions: list[str], fairest: tuple[int, ...], why: str):
    assert fairest_sizes(group(partitions, *subscriptions)) == fairest, why


@given(small_groups())
def test_a_valid_assignment_has_the_fairest_sizes_and_none_is_fairer(spec: GroupSpec):
    """All other assignments majorise it. So largest member, idle members, Gini and variance are all minimal."""
    reached = {sizes(assignment) for assignment in valid_assignments(spec)}
    fairest = fairest_sizes(spec)
    assert fairest in reached
    assert all(is_no_less_fair(fairest, than=others) for others in reached)


@settings(max_examples=50)
@given(
    st.dictionaries(st.sampled_from("tuvwxy"), st.integers(0, 60)), st.lists(st.text("tuvwxy", max_size=4), max_size=9)
)
def test_under_every_limit_the_fairest_sizes_reach_the_maximum_flow(counts: dict[str, int], subscriptions: list[str]):
    """Checks f(m) of the module docstring for groups that are too large for all assignments."""
    spec = group(counts, *(" ".join(topics) for topics in subscriptions))
    fairest, shape = fairest_sizes(spec), _shape(spec)
    for limit in range(max(fairest, default=0) + 2):
        assert sum(min(size, limit) for size in fairest) == _smallest_cut(shape, limit).at(limit)


@given(small_groups())
def test_the_largest_size_is_the_smallest_of_all_assignments(spec: GroupSpec):
    """Checks all assignments of small groups."""
    smallest_maximum = min(max(sizes(found), default=0) for found in valid_assignments(spec))
    assert max(fairest_sizes(spec), default=0) == smallest_maximum


@given(groups())
def test_no_strategy_is_fairer_than_the_fairest(spec: GroupSpec):
    """Applies to any group, also with racks and static members."""
    for assignor in BUILT_IN.values():
        held = sizes(assignor.assign(spec))
        fairest = fairest_sizes(spec)
        if sum(held) == sum(fairest):  # cooperative withholds in its first round
            assert is_no_less_fair(fairest, than=held)


def test_a_thousand_different_subscriptions_are_exact():
    """Each member subscribes to a random half of 100 topics. All can get ten partitions, as with sticky."""
    spec = make_group(1_000, 10_000, 100, heterogeneous=True)
    assert fairest_sizes(spec) == (10,) * 1_000


def test_the_sizes_of_the_same_group_are_computed_once(monkeypatch: pytest.MonkeyPatch):
    """An evaluation needs them for the score, for what-if and for today's assignment. Each took 2.8 s."""
    _sizes_of.cache_clear()
    counted = Mock(wraps=_smallest_cut)
    monkeypatch.setattr("assignors.fairness.fairest._smallest_cut", counted)
    of_members, of_hosts = ["t", "t u", "u v", "v"], ["t u v", "u v"]
    counts = []
    for subscriptions in (of_members, of_hosts, of_members, of_members):
        assert sum(fairest_sizes(group({"t": 7, "u": 31, "v": 2}, *subscriptions))) == 40
        counts.append(counted.call_count)
    assert 0 < counts[0] < counts[1] == counts[2] == counts[3]


def test_a_search_that_would_take_too_long_does_not_start(monkeypatch: pytest.MonkeyPatch):
    """Two subscriptions name three topics in total. With equal subscriptions no search is necessary."""
    monkeypatch.setattr("assignors.fairness.fairest.MAX_ARCS", 2)
    with pytest.raises(TooManySubscriptionsError, match=r"too many different subscriptions .*: 2"):
        fairest_sizes(group({"t": 3, "u": 2}, "t", "t u"))
    monkeypatch.setattr("assignors.fairness.fairest.MAX_ARCS", 3)
    assert fairest_sizes(group({"t": 3, "u": 2}, "t", "t u")) == (2, 3)
    monkeypatch.setattr("assignors.fairness.fairest.MAX_ARCS", 0)
    assert fairest_sizes(group({"t": 3, "u": 2}, "t u", "t u")) == (2, 3)
