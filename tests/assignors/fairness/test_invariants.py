"""Tests that each broken rule is reported, and that valid assignments are not."""

from __future__ import annotations

import pytest

from assignors.fairness.invariants import Rule, violations
from assignors.model import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition

T0, T1, T2, T3 = (("t", number) for number in range(4))
EQUAL = GroupSpec((MemberSubscription("a", ("t",)), MemberSubscription("b", ("t",))), {"t": 4})
HELD = GroupSpec(
    (MemberSubscription("a", ("t",), owned=(T0, T1), generation_id=1), MemberSubscription("b", ("t",))), {"t": 2}
)
UNEQUAL = GroupSpec((MemberSubscription("a", ("t", "u")), MemberSubscription("b", ("t",))), {"t": 2, "u": 2})
NOWHERE = GroupSpec((MemberSubscription("a", ("u",)),), {})


def assigned(**members: tuple[TopicPartition, ...]) -> GroupAssignment:
    return GroupAssignment(members)


@pytest.mark.parametrize(
    ("group", "assignment", "strategy", "rule", "detail"),
    [
        (EQUAL, assigned(a=(T0, T1, T2, T3)), None, Rule.MEMBER_MISSING, "b has no assignment"),
        (EQUAL, assigned(a=(T0, T1), b=(T2, T3), c=()), None, Rule.UNKNOWN_MEMBER, "c is not in the group"),
        (EQUAL, assigned(a=(T0, T1), b=(T2, T3, ("t", 4))), None, Rule.UNKNOWN_PARTITION, "t-4 of b does not exist"),
        (EQUAL, assigned(a=(T0, T1), b=(T2, T3, ("u", 0))), None, Rule.NOT_SUBSCRIBED, "b has u-0 but does not"),
        (NOWHERE, assigned(a=(("u", 0),)), None, Rule.UNKNOWN_PARTITION, "u-0 of a does not exist"),
        (UNEQUAL, assigned(a=(T0, T1, ("u", 0)), b=(("u", 1),)), None, Rule.NOT_SUBSCRIBED, "b has u-1"),
        (EQUAL, assigned(a=(T0, T1), b=(T1, T2, T3)), None, Rule.ASSIGNED_TWICE, "t-1 is assigned to a and b"),
        (EQUAL, assigned(a=(T0, T1, T1), b=(T2, T3)), None, Rule.ASSIGNED_TWICE, "t-1 is assigned to a and a"),
        (EQUAL, assigned(a=(T0,), b=(T2, T3)), None, Rule.UNASSIGNED, "t-1 is not assigned"),
        (HELD, assigned(a=(T0,), b=()), "sticky", Rule.UNASSIGNED, "t-1 is not assigned"),
        (EQUAL, assigned(a=(T0,), b=(T2, T3)), "cooperative-sticky", Rule.UNASSIGNED, "t-1 is not assigned"),
        (HELD, assigned(a=(T0,), b=(T1,)), "cooperative-sticky", Rule.HANDED_OVER_EARLY, "b gets t-1 while a still"),
        (EQUAL, assigned(a=(T0, T1, T2), b=(T3,)), "range", Rule.UNBALANCED, "one subscriber has 3 partitions of t"),
        (EQUAL, assigned(a=(T0, T1, T2), b=(T3,)), "roundrobin", Rule.UNBALANCED, "one member has 3"),
        (EQUAL, assigned(a=(T0, T1, T2), b=(T3,)), "sticky", Rule.UNBALANCED, "a has 3 partitions, b has 1"),
        (
            EQUAL,
            assigned(a=(T0, T1, T2), b=(T3,)),
            "uniform",
            Rule.UNBALANCED,
            "b has 1 and could take a partition of t",
        ),
        (HELD, assigned(a=(), b=(T0, T1)), "uniform", Rule.UNBALANCED, "b has 2 partitions"),
    ],
)
def test_a_broken_rule_is_reported(
    group: GroupSpec, assignment: GroupAssignment, strategy: str | None, rule: Rule, detail: str
):
    """A violation names the rule, the member and the partition."""
    found = violations(group, assignment, strategy)
    assert [violation.rule for violation in found] == [rule]
    assert detail in found[0].detail


@pytest.mark.parametrize(
    ("group", "assignment", "strategy", "why"),
    [
        (HELD, assigned(a=(T0,), b=()), "cooperative-sticky", "t-1 is withheld: a has to revoke it first"),
        (EQUAL, assigned(a=(T0, T1, T2), b=(T3,)), None, "an unknown strategy promises no balance"),
        (EQUAL, assigned(a=(T0, T1, T2), b=(T3,)), "custom-strategy", "a custom strategy promises no balance"),
        (
            UNEQUAL,
            assigned(a=(T0, T1, ("u", 0), ("u", 1)), b=()),
            "roundrobin",
            "roundrobin promises no balance for different subscriptions",
        ),
        (UNEQUAL, assigned(a=(("u", 0), ("u", 1)), b=(T0, T1)), "sticky", "only a subscribes to u"),
        (GroupSpec((), {"t": 3}), assigned(), "sticky", "an empty group assigns nothing"),
        (
            GroupSpec(EQUAL.members, {}),
            assigned(a=(), b=()),
            "range",
            "a group whose topics do not exist assigns nothing",
        ),
    ],
)
def test_a_valid_assignment_has_no_violation(
    group: GroupSpec, assignment: GroupAssignment, strategy: str | None, why: str
):
    """Users disable a monitor with false alarms."""
    assert violations(group, assignment, strategy) == [], why
