"""Tests of sticky in cases that Kafka or this package once got wrong."""

from __future__ import annotations

import pytest

from assignors.fairness.invariants import violations
from assignors.model import GroupSpec, MemberSubscription, TopicPartition
from assignors.sticky.sticky import StickyAssignor
from tests.assignors.needless import needless_moves


def member(member_id: str, topics: str, owned: str = "", generation_id: int = 1) -> MemberSubscription:
    """Return a member. Topics and owned partitions are separated by blanks."""
    return MemberSubscription(
        member_id, tuple(topics.split()), owned=tuple(map(_partition, owned.split())), generation_id=generation_id
    )


def _partition(text: str) -> TopicPartition:
    topic, number = text.split("-")
    return topic, int(number)


def test_a_group_in_which_java_never_ends_is_assigned():
    """AbstractStickyAssignor of Kafka 4.2.0 loops forever on this group, so its rebalance never ends.

    The group has no conflicting claims, no racks and one generation. Two members each got a partition of one topic from
    a third member. Sending one of them back takes it from a member with few partitions. In the next pass it moves
    again. After many passes, our algorithm sends a partition back only if this also improves the balance.
    """
    members = (
        member("c0", "t3"),
        member("c1", "t0 t1 t3", "t0-1 t0-7 t1-0 t1-1 t1-4 t1-5 t1-6 t1-7 t1-8 t3-2 t3-5"),
        member("c2", "t1"),
        member("c3", "t0 t2"),
        member("c4", "t0 t3 t4", "t0-0 t0-2 t0-4 t0-5 t0-6 t3-0 t3-1 t3-4 t4-0"),
        member("c5", "t1 t4"),
        member("c6", "t4"),
    )
    group = GroupSpec(members, {"t0": 8, "t1": 9, "t2": 6, "t3": 6, "t4": 1})
    answer = StickyAssignor().assign(group)
    assert violations(group, answer, "sticky") == []
    assert needless_moves(group, answer, "sticky") == 0


def test_a_member_without_subscriptions_does_not_make_a_group_equal():
    """Java skips leading empty subscriptions when it compares them. Then it assigns partitions to this member."""
    group = GroupSpec((member("a", ""), member("b", "t"), member("c", "t")), {"t": 4})
    answer = StickyAssignor().assign(group)
    assert answer.members["a"] == ()
    assert violations(group, answer, "sticky") == []


def test_a_topic_with_fewer_partitions_than_claimed_is_assigned():
    """Java throws IllegalStateException here, or keeps a deleted partition."""
    owners = (member("a", "t", "t-0 t-1 t-2 t-3"), member("b", "t", "t-4 t-5 t-6 t-7"))
    group = GroupSpec(owners, {"t": 3})
    answer = StickyAssignor().assign(group)
    assert violations(group, answer, "sticky") == []
    assert needless_moves(group, answer, "sticky") == 0
    assert answer.members["a"] == (("t", 0), ("t", 1))


def test_an_earlier_owner_that_is_no_longer_subscribed_gets_nothing_back():
    """Java moves a partition to its owner of the previous generation without checking the subscription, or throws."""
    members = (
        member("old", "u", "t-0 t-1 t-2 t-3", generation_id=3),
        member("new", "t", "t-0 t-1 t-2 t-3", generation_id=4),
        member("other", "t u", "", generation_id=4),
    )
    group = GroupSpec(members, {"t": 4, "u": 1})
    assert violations(group, StickyAssignor().assign(group), "sticky") == []


def test_an_earlier_owner_that_is_subscribed_gets_its_partition_back():
    """KIP-341: two members have room. The member that had the partition before gets it."""
    members = (
        member("a", "t", "", generation_id=4),
        member("z", "t", "t-3", generation_id=3),
        member("o", "t u", "t-0 t-1 t-2 t-3 u-0 u-1", generation_id=4),
    )
    group = GroupSpec(members, {"t": 4, "u": 2})
    assert ("t", 3) in StickyAssignor().assign(group).members["z"]


@pytest.mark.parametrize(
    ("owned_by_a", "kept", "why"),
    [
        ("t-0 t-1 t-2", "t-0 t-1", "only this member is in the rack of t-0 and t-1: both stay"),
        ("t-2 t-3", "t-0 t-1", "its own partitions have no near replica: it gets t-0 and t-1"),
    ],
)
def test_racks_decide_which_partitions_stay(owned_by_a: str, kept: str, why: str):
    """KIP-881: balance has the highest priority, then racks, then stickiness."""
    owner = MemberSubscription("a", ("t",), rack="A", owned=tuple(map(_partition, owned_by_a.split())), generation_id=1)
    other = MemberSubscription("b", ("t",), rack="B")
    racks = {"t": (("A",), ("A",), ("B",), ("B",))}
    answer = StickyAssignor().assign(GroupSpec((owner, other), {"t": 4}, racks))
    assert answer.members["a"] == tuple(map(_partition, kept.split())), why
