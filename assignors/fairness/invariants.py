"""Checks assignments against rules.

For all strategies, each partition of a subscribed, existing topic must belong to exactly one of the topic's
subscribers. Each strategy must also keep its promise about balance. A cooperative strategy must not assign a partition
to a new owner before the old owner has revoked it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from assignors.fairness.balance_rules import BALANCE_RULES
from assignors.model import GroupAssignment, GroupSpec, TopicPartition
from assignors.ordering import sorted_names
from assignors.subscriptions import distinct_subscriptions, partitions_of, subscribers_by_topic

COOPERATIVE = "cooperative-sticky"
STICKY_STRATEGIES = ("sticky", COOPERATIVE, "uniform")
"""These strategies promise to move no more partitions than necessary for balance."""


class Rule(str, Enum):
    """The rules. Reports show the value of a rule, for example ``unassigned``."""

    MEMBER_MISSING = "member_missing"
    UNKNOWN_MEMBER = "unknown_member"
    UNKNOWN_PARTITION = "unknown_partition"
    NOT_SUBSCRIBED = "not_subscribed"
    ASSIGNED_TWICE = "assigned_twice"
    UNASSIGNED = "unassigned"
    HANDED_OVER_EARLY = "handed_over_early"
    UNBALANCED = "unbalanced"


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of one rule. ``detail`` contains the names of the members and partitions.

    ``partition`` is None for the rules about missing members, unknown members and balance.
    """

    rule: Rule
    detail: str
    partition: TopicPartition | None = None


def violations(group: GroupSpec, assignment: GroupAssignment, strategy: str | None = None) -> list[Violation]:
    """Return the violations of ``assignment``. The list is empty if the assignment is valid.

    If ``strategy`` is set, the promises of this strategy are checked, too. For a custom or unknown strategy, only the
    rule for all strategies is checked. Balance is checked only if the assignment breaks no other rule and no partition
    is withheld.

    >>> from assignors.model import GroupAssignment, GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",)), Member("B", ("t",))), {"t": 2})
    >>> [found.detail for found in violations(group, GroupAssignment({"A": (("t", 0),), "B": (("t", 0),)}))]
    ['t-0 is assigned to A and B', 't-1 is not assigned']
    """
    found = [*_wrong_members(group, assignment), *_wrong_partitions(group, assignment)]
    withheld = _withheld(group, assignment) if strategy == COOPERATIVE else frozenset()
    missing = [partition for partition in _missing(group, assignment) if partition not in withheld]
    found += [
        Violation(Rule.UNASSIGNED, f"{_partition_name(partition)} is not assigned", partition) for partition in missing
    ]
    if strategy == COOPERATIVE:
        found += _handed_over_early(group, assignment)
    balance_rule = BALANCE_RULES.get(strategy or "")
    if not found and not withheld and balance_rule:
        found += [Violation(Rule.UNBALANCED, detail) for detail in balance_rule(group, assignment)]
    return found


def _wrong_members(group: GroupSpec, assignment: GroupAssignment) -> Iterator[Violation]:
    expected = {member.member_id for member in group.members}
    for member_id in sorted_names(expected - assignment.members.keys()):
        yield Violation(Rule.MEMBER_MISSING, f"{member_id} has no assignment, not even an empty one")
    for member_id in sorted_names(assignment.members.keys() - expected):
        yield Violation(Rule.UNKNOWN_MEMBER, f"{member_id} is not in the group")


def _wrong_partitions(group: GroupSpec, assignment: GroupAssignment) -> Iterator[Violation]:
    subscriptions = zip(group.members, distinct_subscriptions(group.members), strict=True)
    topics = {member.member_id: subscribed for member, subscribed in subscriptions}
    holders: dict[TopicPartition, tuple[str, ...]] = {}
    for member_id in sorted_names(assignment.members):
        alone, subscribed = (member_id,), topics.get(member_id, frozenset())
        for partition in assignment.members[member_id]:
            holders[partition] = (*holders[partition], member_id) if partition in holders else alone
            if partition[0] not in subscribed:
                detail = f"{member_id} has {_partition_name(partition)} but does not subscribe to it"
                yield Violation(Rule.NOT_SUBSCRIBED, detail, partition)
            elif not group.exists(partition):
                detail = f"{_partition_name(partition)} of {member_id} does not exist"
                yield Violation(Rule.UNKNOWN_PARTITION, detail, partition)
    for partition, member_ids in holders.items():
        if len(member_ids) > 1:
            detail = f"{_partition_name(partition)} is assigned to {' and '.join(member_ids)}"
            yield Violation(Rule.ASSIGNED_TWICE, detail, partition)


def _missing(group: GroupSpec, assignment: GroupAssignment) -> Iterator[TopicPartition]:
    assigned = {partition for partitions in assignment.members.values() for partition in partitions}
    for topic in subscribers_by_topic(group, group.members):
        yield from (found for found in partitions_of(topic, group.partition_count(topic)) if found not in assigned)


def _withheld(group: GroupSpec, assignment: GroupAssignment) -> frozenset[TopicPartition]:
    """Return the partitions that no member gets in this round, because their old owners must revoke them (KIP-429)."""
    return frozenset(
        partition
        for member in group.members
        for partition in set(member.owned).difference(assignment.members.get(member.member_id, ()))
        if group.exists(partition)
    ).difference(*assignment.members.values())


def _handed_over_early(group: GroupSpec, assignment: GroupAssignment) -> Iterator[Violation]:
    owned = {member.member_id: set(member.owned) for member in group.members}
    owners: dict[TopicPartition, str] = {}
    for member_id in sorted_names(owned):
        owners.update(dict.fromkeys(owned[member_id], member_id))
    for member_id in sorted_names(assignment.members):
        for partition in assignment.members[member_id]:
            if partition in owners and partition not in owned.get(member_id, ()):
                detail = f"{member_id} gets {_partition_name(partition)} while {owners[partition]} still owns it"
                yield Violation(Rule.HANDED_OVER_EARLY, detail, partition)


def _partition_name(partition: TopicPartition) -> str:
    return f"{partition[0]}-{partition[1]}"
