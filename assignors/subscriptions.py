"""Finds the subscribers of each topic, and groups partitions by owner. Topics without metadata are omitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from assignors.model import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.ordering import members_by_id, sorted_names


def distinct_subscriptions(members: Sequence[MemberSubscription]) -> list[frozenset[str]]:
    """Return the topics of each member as a set. Members with equal subscriptions share one set object."""
    by_list: dict[tuple[str, ...], frozenset[str]] = {}
    by_set: dict[frozenset[str], frozenset[str]] = {}
    for member in members:
        if member.topics not in by_list:
            topics = frozenset(member.topics)
            by_list[member.topics] = by_set.setdefault(topics, topics)
    return [by_list[member.topics] for member in members]


def subscribers_by_topic(group: GroupSpec, members: Sequence[MemberSubscription]) -> dict[str, list[int]]:
    """Map each topic with metadata to the positions of its subscribers in ``members``.

    Positions are ascending. Topics are sorted in Java's order. If all members have the same subscription, all topics
    share one list, which the caller must not change.
    """
    subscriptions = distinct_subscriptions(members)
    distinct = set(subscriptions)
    topics = [topic for topic in sorted_names(frozenset().union(*distinct)) if group.partition_count(topic) > 0]
    if len(distinct) == 1:
        all_members = list(range(len(members)))
        return dict.fromkeys(topics, all_members)
    subscribers: dict[str, list[int]] = {topic: [] for topic in topics}
    existing = subscribers.keys()
    for position, subscription in enumerate(subscriptions):
        for topic in existing & subscription:
            subscribers[topic].append(position)
    return subscribers


@dataclass(frozen=True, slots=True)
class SubscriptionClasses:
    """The members of a group, divided into classes. All members of a class subscribe to the same existing topics.

    ``members`` contains the member ids of each class, in ascending order. ``subscribers`` maps each topic to the
    classes that subscribe to it (positions in ``members``). Topics without metadata, topics without subscribers, and
    members without an assignable partition are omitted.
    """

    members: tuple[tuple[str, ...], ...]
    subscribers: Mapping[str, frozenset[int]]


def subscription_classes(group: GroupSpec) -> SubscriptionClasses:
    """Put the members that subscribe to the same existing topics into one class.

    The result does not depend on the order of the input.

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t", "gone")), Member("B", ("t",)), Member("C", ("u",))), {"t": 3, "u": 5})
    >>> subscription_classes(group)
    SubscriptionClasses(members=(('A', 'B'), ('C',)), subscribers={'t': frozenset({0}), 'u': frozenset({1})})
    """
    members = members_by_id(group)
    existing = frozenset(topic for topic, count in group.partitions.items() if count)
    existing_of: dict[frozenset[str], frozenset[str]] = {}
    classes: dict[frozenset[str], list[str]] = {}
    for member, topics in zip(members, distinct_subscriptions(members), strict=True):
        if topics not in existing_of:
            existing_of[topics] = topics & existing
        if existing_of[topics]:
            classes.setdefault(existing_of[topics], []).append(member.member_id)
    subscribers: dict[str, list[int]] = {topic: [] for topic in sorted_names(frozenset().union(*classes))}
    for position, topics in enumerate(classes):
        for topic in topics:
            subscribers[topic].append(position)
    of_topic = {topic: frozenset(positions) for topic, positions in subscribers.items()}
    return SubscriptionClasses(tuple(map(tuple, classes.values())), of_topic)


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    """List all partitions of a topic, ascending.

    >>> partitions_of("t0", 2)
    [('t0', 0), ('t0', 1)]
    """
    return list(zip(repeat(topic), range(count)))


def by_owner(owners: Mapping[str, Sequence[int]]) -> dict[int, list[TopicPartition]]:
    """Return the partitions of each owner, sorted by topic and partition number.

    >>> by_owner({"t0": [1, 0, 1]})
    {1: [('t0', 0), ('t0', 2)], 0: [('t0', 1)]}
    """
    owned: dict[int, list[TopicPartition]] = {}
    for topic, members in owners.items():
        for partition, member in zip(partitions_of(topic, len(members)), members, strict=True):
            owned.setdefault(member, []).append(partition)
    return owned


def by_member(owners: Mapping[str, Sequence[int]], members: int) -> list[list[TopicPartition]]:
    """Return one list of partitions per member, in the order of positions. Partitions without an owner are omitted."""
    owned = by_owner(owners)
    return [owned.get(member, []) for member in range(members)]


def group_assignment(
    members: Sequence[MemberSubscription], assigned: Sequence[Sequence[TopicPartition]]
) -> GroupAssignment:
    """Create a ``GroupAssignment`` from one list of partitions per member. The ids are sorted in UTF-16 order."""
    by_id = {member.member_id: partitions for member, partitions in zip(members, assigned, strict=True)}
    return GroupAssignment({member_id: tuple(sorted(by_id[member_id])) for member_id in sorted_names(by_id)})
