"""Tests of the classes of members with equal subscriptions."""

from __future__ import annotations

from assignors.model import GroupSpec, MemberSubscription
from assignors.subscriptions import subscription_classes
from tests.bench.assignors import make_group


def test_members_with_equal_subscriptions_are_one_class():
    """With one class, a thousand members are cheap to evaluate."""
    classes = subscription_classes(make_group(1_000, 10_000, 100, heterogeneous=False))
    assert [len(members) for members in classes.members] == [1_000]
    assert set(classes.subscribers.values()) == {frozenset({0})}


def test_a_topic_that_does_not_exist_makes_no_separate_class():
    """Members with {t, gone} and {t} can get the same partitions. Java's sticky treats them as different."""
    members = (MemberSubscription("b", ("t", "gone")), MemberSubscription("a", ("t",)), MemberSubscription("c", ()))
    classes = subscription_classes(GroupSpec(members, {"t": 1, "empty": 0}))
    assert classes.members == (("a", "b"),)
    assert dict(classes.subscribers) == {"t": frozenset({0})}
