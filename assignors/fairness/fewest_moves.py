"""How many partitions changed hands, and how many had to.

Rules:

1. A partition *moved* if it had an owner before, has one now, and they are different members. From nobody to somebody
   is no move, nor is the other way round.
2. What an owner had that is gone, or no longer subscribes, moves in every valid assignment: ``unavoidable``.
3. ``fewest`` is the minimum over all valid assignments that are *no less balanced* than the actual one: for every k
   their k busiest members have no more than its k busiest (majorisation). So no measure of imbalance, be it the largest
   member, the smallest, idle members, Gini or the balance score, is worse in them. A smaller number could be had only
   by being less balanced; what lies above is moves for nothing, or for reasons other than balance, as racks are.
4. If the actual assignment breaks a law (a partition without an owner, or with two), there is no fewest: None. That is
   so between the two rounds of a cooperative rebalance. Count such a pair once: owners from before the first round,
   assignment of the last.

How: a bound first, see ``_fewest_for_balance``. It is exact where all members subscribe to the same, and the actual
moves often meet it where not. Else the cheapest flow, which is exact: partitions go from their topic to their owner for
nothing, or to any subscriber for one move. From members they go on through levels: level j takes one partition of a
member and altogether as many as the actual assignment has members with j partitions or more. Such levels can be filled
just by sizes that are no less balanced (Gale 1957, Ryser 1957). Where the network would be too large (MOST_ARCS),
``fewest`` is the bound and ``is_exact`` False.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from assignors.fairness.fairest import MOST_ARCS
from assignors.fairness.flow_network import FlowNetwork
from assignors.fairness.invariants import violations
from assignors.subscriptions import subscription_classes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from assignors.model import GroupAssignment, GroupSpec, TopicPartition
    from assignors.subscriptions import SubscriptionClasses


@dataclass(frozen=True, slots=True)
class Moves:
    """Moves of one rebalance, all in partitions. ``fewest`` is None where the assignment breaks a law.

    ``is_exact`` False says that ``fewest`` is only a lower bound: no fewer, perhaps more.
    """

    moved: int
    unavoidable: int
    fewest: int | None
    is_exact: bool


def moves(
    owners: Mapping[TopicPartition, str], group: GroupSpec, assignment: GroupAssignment, most_arcs: int = MOST_ARCS
) -> Moves:
    """Count the moves from ``owners`` (partition to member id, from before) to ``assignment`` of ``group`` (now).

    A static member that came back has a new member id: let ``owners`` say the new one. Leave out of ``owners`` what
    had several.

    B is new and takes two of four, which had to be. Had it taken three, two were for nothing: as uneven a 3 to 1 is
    reached by moving one.

    >>> from assignors.model import GroupAssignment, GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",)), Member("B", ("t",))), {"t": 4})
    >>> owners = {("t", number): "A" for number in range(4)}
    >>> moves(owners, group, GroupAssignment({"A": (("t", 0), ("t", 3)), "B": (("t", 1), ("t", 2))}))
    Moves(moved=2, unavoidable=0, fewest=2, is_exact=True)
    >>> moves(owners, group, GroupAssignment({"A": (("t", 0),), "B": (("t", 1), ("t", 2), ("t", 3))}))
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
    if _arcs(classes, stayable, sizes) > most_arcs:
        return Moves(moved, unavoidable, unavoidable + for_balance, is_exact=False)
    for_balance = stayable.total() - _most_kept(group, classes, stayable, sizes)
    return Moves(moved, unavoidable, unavoidable + for_balance, is_exact=True)


Stayable = Counter[tuple[str, str]]
"""(topic, member id) to the partitions of that topic which the member had and can keep."""


def _stayable(owners: Mapping[TopicPartition, str], group: GroupSpec) -> Stayable:
    topics = {member.member_id: frozenset(member.topics) for member in group.members}
    return Counter(
        (partition[0], member_id)
        for partition, member_id in owners.items()
        if partition[0] in topics.get(member_id, ()) and group.exists(partition)
    )


def _fewest_for_balance(stayable: Stayable, sizes: Sequence[int]) -> int:
    """Count how many more the k busiest could have kept than the k busiest have now, for the k where that is most.

    At least so many of theirs must go to others, whoever subscribes to what; where all subscribe to the same, no more
    (Rado 1952: the sizes below a list in the order of majorisation are a polymatroid, and this is its rank).
    """
    had: Counter[str] = Counter()
    for (_, member_id), partitions in stayable.items():
        had[member_id] += partitions
    busiest = sorted(had.values(), reverse=True)
    gaps = (before - now for before, now in zip(busiest, sizes, strict=False))  # who had nothing is not in busiest
    return max(0, max(accumulate(gaps), default=0))


@dataclass(frozen=True, slots=True)
class _Level:
    """Steps in size that the same members reach: ``steps`` partitions of each of ``members``."""

    steps: int
    members: int


def _levels(sizes: Iterable[int]) -> Iterator[_Level]:
    """Take sizes apart by level.

    >>> list(_levels([3, 1, 1]))
    [_Level(steps=1, members=3), _Level(steps=2, members=1)]
    """
    below, left = 0, Counter(sizes)
    for size in sorted(left):
        if size:
            yield _Level(size - below, left.total())
        below = size
        del left[size]


def _arcs(classes: SubscriptionClasses, stayable: Stayable, sizes: Sequence[int]) -> int:
    subscribing = sum(map(len, classes.subscribers.values()))
    members = sum(map(len, classes.members))
    return subscribing + len(stayable) + members * (1 + len(set(sizes)))


def _most_kept(group: GroupSpec, classes: SubscriptionClasses, stayable: Stayable, sizes: Sequence[int]) -> int:
    """Count what can stay where it was, at most, with sizes no less balanced than ``sizes``."""
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
    partitions, dealt_anew = network.fill(source, sink)
    return partitions - dealt_anew
