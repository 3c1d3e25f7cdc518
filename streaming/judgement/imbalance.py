"""How evenly partitions are shared among the members of one group.

Counted over members that could be given something: in total all members, per topic those subscribed to it. Worked
example: 7 partitions over 5 members, held 3/1/1/1/1: mean 1.4, max/mean 2.14; held 2/2/1/1/1: 1.43, and no valid
assignment does better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from streaming.protocol.classic import GroupMetadata


class PartitionShares(msgspec.Struct, frozen=True):
    """Partitions per member, summed up. `topic` None is the group's total; ratio None where nothing is assigned."""

    topic: str | None
    members: int
    assigned_partitions: int
    max_partitions: int
    min_partitions: int
    idle_members: int
    max_to_mean_ratio: float | None


def imbalance(metadata: GroupMetadata) -> tuple[PartitionShares, ...]:
    """The group's total first, then one entry a topic that somebody subscribes to, sorted by name."""
    if not metadata.members:
        return ()
    held = {
        member.member_id: Counter(topic for topic, _ in member.assignment.partitions)
        if member.assignment
        else Counter()
        for member in metadata.members
    }
    total = _shares(None, (counts.total() for counts in held.values()))
    by_topic = (
        _shares(topic, (held[member_id][topic] for member_id in member_ids))
        for topic, member_ids in sorted(_subscribers(metadata).items())
    )
    return (total, *by_topic)


def _subscribers(metadata: GroupMetadata) -> Mapping[str, list[str]]:
    subscribers: dict[str, list[str]] = {}
    for member in metadata.members:
        for topic in sorted(set(member.subscription.topics)) if member.subscription else ():
            subscribers.setdefault(topic, []).append(member.member_id)
    return subscribers


def _shares(topic: str | None, partitions_per_member: Iterable[int]) -> PartitionShares:
    counts = list(partitions_per_member)
    assigned = sum(counts)
    return PartitionShares(
        topic=topic,
        members=len(counts),
        assigned_partitions=assigned,
        max_partitions=max(counts),
        min_partitions=min(counts),
        idle_members=counts.count(0),
        max_to_mean_ratio=max(counts) * len(counts) / assigned if assigned else None,
    )
