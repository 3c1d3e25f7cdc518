"""Who subscribes to what, in the shapes the assignors need. Topics without metadata are left out throughout."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from assignors.model import GroupAssignment
from assignors.ordering import sorted_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assignors.model import GroupSpec, MemberSubscription, TopicPartition


def distinct_subscriptions(members: Sequence[MemberSubscription]) -> list[frozenset[str]]:
    """Give each member's topics as a set; members with equal subscriptions share one object.

    A large group nearly always subscribes to few distinct sets, so a lookup by the tuple as reported saves building a
    thousand equal sets of a hundred topics.
    """
    by_list: dict[tuple[str, ...], frozenset[str]] = {}
    by_set: dict[frozenset[str], frozenset[str]] = {}
    for member in members:
        if member.topics not in by_list:
            topics = frozenset(member.topics)
            by_list[member.topics] = by_set.setdefault(topics, topics)
    return [by_list[member.topics] for member in members]


def subscribers_by_topic(group: GroupSpec, members: Sequence[MemberSubscription]) -> dict[str, list[int]]:
    """Map each topic with metadata to its subscribers' positions in ``members``, ascending; topics in Java's order.

    Topics whose subscribers are all members share one list: do not change it.
    """
    subscriptions = distinct_subscriptions(members)
    distinct = set(subscriptions)
    topics = [topic for topic in sorted_names(frozenset().union(*distinct)) if group.partition_count(topic) > 0]
    if len(distinct) == 1:
        everyone = list(range(len(members)))
        return dict.fromkeys(topics, everyone)
    subscribers: dict[str, list[int]] = {topic: [] for topic in topics}
    existing = subscribers.keys()
    for position, subscription in enumerate(subscriptions):
        for topic in existing & subscription:
            subscribers[topic].append(position)
    return subscribers


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    """List all partitions of a topic, ascending.

    >>> partitions_of("t0", 2)
    [('t0', 0), ('t0', 1)]
    """
    return list(zip(repeat(topic), range(count)))


def by_owner(owners: Mapping[str, Sequence[int]]) -> dict[int, list[TopicPartition]]:
    """Turn (topic -> each partition's owner) round: each owner's partitions, by topic and number.

    >>> by_owner({"t0": [1, 0, 1]})
    {1: [('t0', 0), ('t0', 2)], 0: [('t0', 1)]}
    """
    owned: dict[int, list[TopicPartition]] = {}
    for topic, members in owners.items():
        for partition, member in zip(partitions_of(topic, len(members)), members, strict=True):
            owned.setdefault(member, []).append(partition)
    return owned


def by_member(owners: Mapping[str, Sequence[int]], members: int) -> list[list[TopicPartition]]:
    """List each member's partitions, by position; what nobody owns is left out."""
    owned = by_owner(owners)
    return [owned.get(member, []) for member in range(members)]


def group_assignment(
    members: Sequence[MemberSubscription], assigned: Sequence[Sequence[TopicPartition]]
) -> GroupAssignment:
    """Make the answer from one list of partitions a member: members in UTF-16 order, partitions sorted."""
    by_id = {member.member_id: partitions for member, partitions in zip(members, assigned, strict=True)}
    return GroupAssignment({member_id: tuple(sorted(by_id[member_id])) for member_id in sorted_names(by_id)})
