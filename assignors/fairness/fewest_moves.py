"""Counts the partitions that moved in a rebalance. Computes the minimum number of moves.

Rules:

1. A partition *moved* if it had an owner before the rebalance and has a different owner now. A partition without a
   previous owner or without a new owner did not move.
2. A partition must move if its owner left the group or no longer subscribes to the topic. These moves are
   ``unavoidable``.
3. ``fewest`` is the minimum number of moves over all valid assignments that are *at least as balanced* as the actual
   assignment. For every k, count the partitions of the k busiest members in two assignments A and B. If A never has the
   larger count, A is at least as balanced as B by every measure (majorisation). If more than ``fewest`` partitions
   moved, the additional moves were needless or had other reasons, for example racks.
4. ``fewest`` is None if the actual assignment is invalid. For example, partitions have no owner between the two rounds
   of a cooperative rebalance. To count the moves of both rounds, compare the owners before the first round with the
   last assignment.

The algorithm first computes a lower bound (see ``_fewest_for_balance``). The bound is exact if all members have equal
subscriptions, or if the actual number of moves is equal to the bound. If the bound may be too low, a minimum-cost flow
determines the exact number. In the flow network, each partition flows from its topic to a member. A partition that
flows to its previous owner has cost 0. A partition that flows to a new owner has cost 1. From the member, each
partition flows through a level to the sink. Level j accepts at most one partition from each member. The capacity of
level j is the number of members that have j or more partitions in the actual assignment. The levels accept exactly the
sizes that are at least as balanced as the actual sizes (Gale 1957, Ryser 1957). If the network is too large (MAX_ARCS),
``fewest`` is the bound, and ``is_exact`` is False.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from assignors.fairness.fairest import MAX_ARCS
from assignors.fairness.flow_network import FlowNetwork
from assignors.fairness.invariants import violations
from assignors.model import GroupAssignment, GroupSpec, TopicPartition
from assignors.subscriptions import SubscriptionClasses, subscription_classes


@dataclass(frozen=True, slots=True)
class Moves:
    """The number of moved partitions in one rebalance. ``fewest`` is None if the assignment is invalid.

    If ``is_exact`` is False, ``fewest`` is only a lower bound.
    """

    moved: int
    unavoidable: int
    fewest: int | None
    is_exact: bool


def count_moves(owners: Mapping[TopicPartition, str], group: GroupSpec, assignment: GroupAssignment) -> Moves:
    """Compare ``assignment`` with the previous ``owners`` (partition -> member id), and count the moves.

    If a static member has restarted, ``owners`` must contain its new member id. If a partition had several owners, omit
    the partition from ``owners``.

    In the first example, the new member B gets two of four partitions. Both moves were necessary. In the second
    example, B gets three partitions. Two of the three moves were needless, because a single move also leads to the
    sizes 3 and 1.

    >>> from assignors.model import GroupAssignment, GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",)), Member("B", ("t",))), {"t": 4})
    >>> owners = {("t", number): "A" for number in range(4)}
    >>> count_moves(owners, group, GroupAssignment({"A": (("t", 0), ("t", 3)), "B": (("t", 1), ("t", 2))}))
    Moves(moved=2, unavoidable=0, fewest=2, is_exact=True)
    >>> count_moves(owners, group, GroupAssignment({"A": (("t", 0),), "B": (("t", 1), ("t", 2), ("t", 3))}))
    Moves(moved=3, unavoidable=0, fewest=1, is_exact=True)
    """
    now = {partition: member_id for member_id, held in assignment.members.items() for partition in held}
    moved = sum(now.get(partition, member_id) != member_id for partition, member_id in owners.items())
    classes, stayable = subscription_classes(group), _stayable(owners, group)
    needed = sum(partition[0] in classes.subscribers and group.exists(partition) for partition in owners)
    unavoidable = needed - stayable.total()
    if violations(group, assignment):
        return Moves(moved, unavoidable, None, is_exact=False)
    sizes = sorted(map(len, assignment.members.values()), reverse=True)
    for_balance = _fewest_for_balance(stayable, sizes)
    if unavoidable + for_balance == moved or len(classes.members) <= 1:
        return Moves(moved, unavoidable, unavoidable + for_balance, is_exact=True)
    if _count_arcs(classes, stayable, sizes) > MAX_ARCS:
        return Moves(moved, unavoidable, unavoidable + for_balance, is_exact=False)
    for_balance = stayable.total() - _max_stayable(group, classes, stayable, sizes)
    return Moves(moved, unavoidable, unavoidable + for_balance, is_exact=True)


Stayable = Counter[tuple[str, str]]
"""Maps (topic, member id) to a number: how many partitions of this topic the member had and can keep."""


def _stayable(owners: Mapping[TopicPartition, str], group: GroupSpec) -> Stayable:
    topics = {member.member_id: frozenset(member.topics) for member in group.members}
    return Counter(
        (partition[0], member_id)
        for partition, member_id in owners.items()
        if partition[0] in topics.get(member_id, ()) and group.exists(partition)
    )


def _fewest_for_balance(stayable: Stayable, sizes: Sequence[int]) -> int:
    """Return a lower bound for the number of moves to an assignment that is at least as balanced as ``sizes``.

    For each member, count the previously owned partitions that the member can keep. Sort the counts and ``sizes``, the
    largest number first. For each k, subtract the sum of the first k sizes from the sum of the first k counts. The
    bound is the largest of these differences. If all subscriptions are equal, the bound is exact (Rado 1952).
    """
    had: Counter[str] = Counter()
    for (_, member_id), partitions in stayable.items():
        had[member_id] += partitions
    busiest = sorted(had.values(), reverse=True)
    gaps = (
        before - now for before, now in zip(busiest, sizes, strict=False)
    )  # the lengths can differ, because busiest omits members that can keep no partition
    return max(0, max(accumulate(gaps), default=0))


@dataclass(frozen=True, slots=True)
class _Level:
    """Consecutive levels of equal capacity. ``steps`` is their number. ``members`` is the capacity of each level."""

    steps: int
    members: int


def _levels(sizes: Iterable[int]) -> Iterator[_Level]:
    """Split sizes into levels.

    >>> list(_levels([3, 1, 1]))
    [_Level(steps=1, members=3), _Level(steps=2, members=1)]
    """
    below, left = 0, Counter(sizes)
    for size in sorted(left):
        if size:
            yield _Level(size - below, left.total())
        below = size
        del left[size]


def _count_arcs(classes: SubscriptionClasses, stayable: Stayable, sizes: Sequence[int]) -> int:
    subscribing = sum(map(len, classes.subscribers.values()))
    members = sum(map(len, classes.members))
    return subscribing + len(stayable) + members * (1 + len(set(sizes)))


def _max_stayable(group: GroupSpec, classes: SubscriptionClasses, stayable: Stayable, sizes: Sequence[int]) -> int:
    """Return how many partitions can keep their owner in an assignment that is at least as balanced as ``sizes``."""
    source, sink = 0, 1
    topics = {topic: node for node, topic in enumerate(classes.subscribers, start=2)}
    first_class = 2 + len(topics)
    first_member = first_class + len(classes.members)
    members = {member_id: node for node, member_id in enumerate(chain.from_iterable(classes.members), first_member)}
    levels = dict(enumerate(_levels(sizes), first_member + len(members)))
    network = FlowNetwork(first_member + len(members) + len(levels))
    for topic, node in topics.items():
        network.add_arc(source, node, group.partition_count(topic))
        for subscribers in classes.subscribers[topic]:
            network.add_arc(node, first_class + subscribers, group.partition_count(topic), cost=1)
    for (topic, member_id), partitions in stayable.items():
        network.add_arc(topics[topic], members[member_id], partitions)
    for position, of_class in enumerate(classes.members):
        for member_id in of_class:
            network.add_arc(first_class + position, members[member_id], sizes[0])
    for node, level in levels.items():
        for member in members.values():
            network.add_arc(member, node, level.steps)
        network.add_arc(node, sink, level.steps * level.members)
    partitions, reassigned = network.fill(source, sink)
    return partitions - reassigned
