"""Tests of the two rounds of a cooperative rebalance (KIP-429)."""

from __future__ import annotations

from assignors.model import GroupSpec, MemberSubscription
from assignors.sticky.cooperative import CooperativeStickyAssignor, group_after_rejoin, rebalance_needed

T0, T1, T2 = (("t", number) for number in range(3))


def test_partitions_without_an_owner_are_assigned_in_the_first_round():
    """Only partitions that change their owner wait. New partitions and those of a member that left do not wait."""
    group = GroupSpec((MemberSubscription("a", ("t",), owned=(T0,), generation_id=1),), {"t": 3})
    first = CooperativeStickyAssignor().assign(group)
    assert first.members == {"a": (T0, T1, T2)}
    assert not rebalance_needed(group, first)


def test_a_contested_partition_is_withheld():
    """Two members of one generation claim t-0. If one of them gets it, the other may still consume it."""
    members = (
        MemberSubscription("a", ("t",), owned=(T0, T1), generation_id=1),
        MemberSubscription("b", ("t",), owned=(T0, T2), generation_id=1),
    )
    first = CooperativeStickyAssignor().assign(GroupSpec(members, {"t": 3}))
    assert first.members == {"a": (T1,), "b": (T2,)}


def test_losing_a_deleted_topic_is_a_reason_to_rejoin():
    """A member revokes a partition that is no longer assigned, and rejoins, even if no other member gets it."""
    member = MemberSubscription("a", ("t",), owned=(T0, ("gone", 0)), generation_id=1)
    group = GroupSpec((member,), {"t": 1})
    first = CooperativeStickyAssignor().assign(group)
    assert first.members == {"a": (T0,)}
    assert rebalance_needed(group, first)


def test_in_the_second_round_members_own_the_assignment_of_the_first():
    """Racks and instance ids stay. Generations of mixed versions are replaced by one generation."""
    members = (
        MemberSubscription("a", ("t",), "i", "r", (T0, T1), 7, user_data_version=0, subscription_generation=-1),
        MemberSubscription("b", ("t",)),
    )
    group = GroupSpec(members, {"t": 2})
    again = group_after_rejoin(group, CooperativeStickyAssignor().assign(group))
    assert again.members[0] == MemberSubscription("a", ("t",), "i", "r", (T0,), 8)
    assert again.members[1] == MemberSubscription("b", ("t",), generation_id=8)
