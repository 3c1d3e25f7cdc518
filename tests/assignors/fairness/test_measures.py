"""Tests of the measures of an assignment. The golden vectors check the others (test_golden.py)."""

from __future__ import annotations

from assignors import assignor_named
from assignors.fairness.measures import effective_owners, measure
from assignors.model import GroupAssignment, GroupSpec, MemberSubscription
from assignors.what_if.comparison import compare, current_assignment

T0, T1 = ("t", 0), ("t", 1)


def test_an_empty_group_measures_nothing():
    """Without members there are no sizes and no imbalance. No partition counts as unassigned."""
    measures = measure(GroupSpec((), {"t": 3}), GroupAssignment({}))
    assert (measures.sizes, measures.max_minus_min, measures.balance_score, measures.unassigned) == ((), 0, 0, 0)


def test_a_member_without_an_entry_is_idle():
    """An assignment from the log can lack members. They have no partitions."""
    group = GroupSpec((MemberSubscription("a", ("t",)), MemberSubscription("b", ("t",))), {"t": 2})
    measures = measure(group, GroupAssignment({"a": (T0, T1)}))
    assert measures.idle_members == ("b",)
    assert measures.topic_spread == {"t": 2}


def test_a_claim_without_a_subscription_or_a_partition_does_not_count():
    """The loss of such a partition is no move, because no member could keep it."""
    member = MemberSubscription("a", ("t",), owned=(T0, ("t", 9), ("u", 0)), generation_id=1)
    assert effective_owners(GroupSpec((member,), {"t": 1, "u": 1})) == {T0: "a"}


def test_the_current_assignment_can_be_measured():
    """The current assignment is the first row of a comparison."""
    member = MemberSubscription("a", ("t",), owned=(T1,), generation_id=1)
    assert current_assignment(GroupSpec((member,), {"t": 2})).members == {"a": (T1,)}


def test_a_cooperative_strategy_is_compared_by_its_last_round():
    """The first round withholds partitions, so it is not the final assignment."""
    owner = MemberSubscription("a", ("t",), owned=(T0, T1), generation_id=1)
    group = GroupSpec((owner, MemberSubscription("b", ("t",))), {"t": 2})
    compared = compare(group, assignor_named("cooperative-sticky"))
    assert (compared.rounds, compared.measures.sizes, compared.measures.unassigned) == (2, (1, 1), 0)
