"""The numbers reports show; the golden vectors check the rest of them (test_golden.py)."""

from __future__ import annotations

from assignors import assignor_named
from assignors.fairness.measures import effective_owners, measure
from assignors.model import GroupAssignment, GroupSpec, MemberSubscription
from assignors.what_if.comparison import compare, current_assignment

T0, T1 = ("t", 0), ("t", 1)


def test_an_empty_group_measures_nothing():
    """No members: no sizes, no imbalance, nothing unassigned, as nobody subscribes."""
    measures = measure(GroupSpec((), {"t": 3}), GroupAssignment({}))
    assert (measures.sizes, measures.max_minus_min, measures.balance_score, measures.unassigned) == ((), 0, 0, 0)


def test_a_member_without_an_entry_is_idle_not_an_error():
    """An assignment read from a log may lack members; they have nothing."""
    group = GroupSpec((MemberSubscription("a", ("t",)), MemberSubscription("b", ("t",))), {"t": 2})
    measures = measure(group, GroupAssignment({"a": (T0, T1)}))
    assert measures.idle_members == ("b",)
    assert measures.topic_spread == {"t": 2}


def test_a_claim_to_what_is_no_longer_subscribed_or_there_is_no_ownership():
    """To lose that is no move: nobody could have kept it."""
    member = MemberSubscription("a", ("t",), owned=(T0, ("t", 9), ("u", 0)), generation_id=1)
    assert effective_owners(GroupSpec((member,), {"t": 1, "u": 1})) == {T0: "a"}


def test_what_is_owned_now_can_be_measured_like_an_answer():
    """The first row of a comparison."""
    member = MemberSubscription("a", ("t",), owned=(T1,), generation_id=1)
    assert current_assignment(GroupSpec((member,), {"t": 2})).members == {"a": (T1,)}


def test_a_cooperative_strategy_is_compared_where_it_ends():
    """Its first round withholds partitions: that is a step, not a result."""
    owner = MemberSubscription("a", ("t",), owned=(T0, T1), generation_id=1)
    group = GroupSpec((owner, MemberSubscription("b", ("t",))), {"t": 2})
    compared = compare(group, assignor_named("cooperative-sticky"))
    assert (compared.rounds, compared.measures.sizes, compared.measures.unassigned) == (2, (1, 1), 0)
