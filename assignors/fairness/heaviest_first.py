"""How evenly weights can be dealt: the loads of a valid assignment that is good for this, though perhaps not the best.

Partitions have lag or throughput, and cannot be divided. The fairest assignment of such weights is not to be had: to
find it is NP-hard. Dealing the heaviest first, each to the subscriber with least so far, comes close: where all
subscribe to the same, its busiest member has at most 4/3 of what the busiest of the best assignment has (Graham,
*Bounds on multiprocessing timing anomalies*, 1969). And it can be made: a gap it closes is one that can be closed.
"""

from __future__ import annotations

from heapq import heapreplace
from typing import TYPE_CHECKING

from assignors.subscriptions import subscription_classes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assignors.model import GroupSpec, TopicPartition


def heaviest_first_loads(group: GroupSpec, weights: Mapping[TopicPartition, float]) -> tuple[float, ...]:
    """List each member's load, ascending, in the unit of ``weights``; these name partitions of subscribed topics.

    One partition has nearly everything, and nothing can be done about that:

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",)), Member("B", ("t",)), Member("C", ("t",))), {"t": 4})
    >>> heaviest_first_loads(group, {("t", 0): 90, ("t", 1): 5, ("t", 2): 4, ("t", 3): 1})
    (5, 5, 90)
    """
    classes = subscription_classes(group)
    # One heap a class: its least loaded member is the first. Which of them it is does not matter, only the loads do.
    loads: list[list[float]] = [[0] * len(members) for members in classes.members]
    subscribers = {topic: sorted(positions) for topic, positions in classes.subscribers.items()}
    for topic, number in sorted(weights, key=lambda partition: (-weights[partition], partition)):
        least = min(subscribers[topic], key=lambda position: loads[position][0])
        heapreplace(loads[least], loads[least][0] + weights[topic, number])
    idle = len(group.members) - sum(map(len, classes.members))
    return tuple(sorted([*[0] * idle, *(load for of_class in loads for load in of_class)]))


def heaviest_first_within(weights: Iterable[float], members: int) -> tuple[float, ...]:
    """List the loads, ascending, if every weight can go to any of ``members``: the same within one topic.

    >>> heaviest_first_within([90, 5, 4, 1], 3)
    (5, 5, 90)
    """
    loads: list[float] = [0] * members
    for weight in sorted(weights, reverse=True):
        heapreplace(loads, loads[0] + weight)
    return tuple(sorted(loads))
