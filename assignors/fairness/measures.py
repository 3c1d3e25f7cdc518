"""Measures of an assignment: sizes (partitions of each member), imbalance, moves and idle members.

Tests compare the measures with golden vectors: test data that Kafka's Java code computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum

from assignors.model import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.ordering import members_by_id
from assignors.sticky.general_balance import balance_score
from assignors.subscriptions import distinct_subscriptions, subscribers_by_topic


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one assignment of one group. All numbers count partitions.

    ``balance_score`` is the sum of the size differences of all pairs of members. ``kept`` counts the partitions that
    stay with their effective owner (see ``effective_owners``). ``moves`` counts all other partitions that have an
    effective owner. ``topic_spread`` maps each topic to the difference between the largest and the smallest partition
    count of its subscribers. ``idle_members`` are the ids of members without partitions.
    """

    sizes: tuple[int, ...]
    balance_score: int
    moves: int
    kept: int
    unassigned: int
    topic_spread: Mapping[str, int]
    idle_members: tuple[str, ...]

    @property
    def max_minus_min(self) -> int:
        """Return the difference between the largest and the smallest size, in partitions."""
        return self.sizes[-1] - self.sizes[0] if self.sizes else 0


def measure(
    group: GroupSpec, assignment: GroupAssignment, owners: Mapping[TopicPartition, str] | None = None
) -> Measures:
    """Compute the measures of ``assignment``. A member that ``assignment`` does not contain has no partitions.

    ``owners`` contains the current owners (default: the result of ``effective_owners``).

    >>> from assignors.model import GroupAssignment, GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",)), Member("B", ("t",))), {"t": 3})
    >>> measures = measure(group, GroupAssignment({"A": (("t", 0), ("t", 1), ("t", 2)), "B": ()}))
    >>> measures.sizes, measures.max_minus_min, measures.idle_members
    ((0, 3), 3, ('B',))
    """
    assigned = {member.member_id: assignment.members.get(member.member_id, ()) for member in members_by_id(group)}
    sizes = tuple(sorted(map(len, assigned.values())))
    owners = effective_owners(group) if owners is None else owners
    kept = sum(owners.get(partition) == member_id for member_id, held in assigned.items() for partition in held)
    return Measures(
        sizes=sizes,
        balance_score=balance_score(sizes, range(len(sizes))),
        moves=len(owners) - kept,
        kept=kept,
        unassigned=_unassigned(group, assigned),
        topic_spread=_topic_spread(group, assigned),
        idle_members=tuple(member_id for member_id, held in assigned.items() if not held),
    )


def effective_owners(group: GroupSpec) -> dict[TopicPartition, str]:
    """Map each partition to its current owner, from the claims of the members.

    The owner is the member whose claim has the newest generation. A partition that two members claim in the newest
    generation has no owner. The result omits partitions that do not exist, and partitions whose owner no longer
    subscribes to the topic.
    """
    claimants: dict[TopicPartition, tuple[int, ...]] = {}
    members = members_by_id(group)
    subscriptions = distinct_subscriptions(members)
    for position, member in enumerate(members):
        alone = (position,)
        for partition in dict.fromkeys(member.owned):
            claimants[partition] = (*claimants[partition], position) if partition in claimants else alone
    owners = {}
    for partition, positions in claimants.items():
        newest = positions if len(positions) == 1 else _newest_claimants(members, positions)
        if len(newest) == 1 and partition[0] in subscriptions[newest[0]] and group.exists(partition):
            owners[partition] = members[newest[0]].member_id
    return owners


def busiest_rate(assignment: GroupAssignment, produce_rates: Mapping[TopicPartition, float]) -> float | None:
    """Return the largest produce rate of a member, or None if the rate of an assigned partition is unknown.

    The produce rate of a member is the sum of the rates of its partitions. With ``fsum``, the order of members and
    partitions does not change the result.

    >>> assignment = GroupAssignment({"A": (("t", 0), ("t", 1)), "B": (("t", 2),), "C": ()})
    >>> busiest_rate(assignment, {("t", 0): 5.0, ("t", 1): 5.5, ("t", 2): 10.0})
    10.5
    >>> busiest_rate(assignment, {("t", 0): 5.0, ("t", 1): 5.5}) is None
    True
    """
    if any(partition not in produce_rates for held in assignment.members.values() for partition in held):
        return None
    of_members = (fsum(produce_rates[partition] for partition in held) for held in assignment.members.values())
    return max(of_members, default=0.0)


def _newest_claimants(members: Sequence[MemberSubscription], positions: Sequence[int]) -> Sequence[int]:
    newest = max(members[position].claim_generation for position in positions)
    return [position for position in positions if members[position].claim_generation == newest]


def _unassigned(group: GroupSpec, assigned: Mapping[str, tuple[TopicPartition, ...]]) -> int:
    held = Counter(topic for topic, _ in set(chain.from_iterable(assigned.values())))
    return sum(group.partition_count(topic) - held[topic] for topic in subscribers_by_topic(group, group.members))


def _topic_spread(group: GroupSpec, assigned: Mapping[str, tuple[TopicPartition, ...]]) -> dict[str, int]:
    members = members_by_id(group)
    counts: dict[str, list[int]] = {}
    for member, topics in zip(members, distinct_subscriptions(members), strict=True):
        for topic, held in Counter(topic for topic, _ in assigned[member.member_id]).items():
            if topic in topics:
                counts.setdefault(topic, []).append(held)
    spread = {}
    for topic, subscribers in subscribers_by_topic(group, members).items():
        held_by_some = counts.get(topic, [0])
        spread[topic] = max(held_by_some) - (min(held_by_some) if len(held_by_some) == len(subscribers) else 0)
    return spread
