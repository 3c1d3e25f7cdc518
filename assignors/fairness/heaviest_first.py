"""Computes the loads of a valid assignment that approximates the fairest assignment.

The load of a member is the sum of the weights (lag or throughput) of its partitions. The fairest assignment is NP-hard
to find. So this module computes an approximation: it assigns the heaviest partitions first, each to the least loaded
subscriber. If all members have the same subscription, the largest load of the approximation is at most 4/3 of the
largest load in the fairest assignment (Graham, *Bounds on multiprocessing timing anomalies*, 1969).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapreplace

from assignors.model import GroupSpec, TopicPartition
from assignors.subscriptions import subscription_classes


def heaviest_first_loads(group: GroupSpec, weights: Mapping[TopicPartition, float]) -> tuple[float, ...]:
    """Return the loads of all members, smallest load first, in the unit of ``weights``.

    Each partition in ``weights`` must belong to a subscribed topic. In this example, one partition has almost all lag,
    so no assignment is even:

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",)), Member("B", ("t",)), Member("C", ("t",))), {"t": 4})
    >>> heaviest_first_loads(group, {("t", 0): 90, ("t", 1): 5, ("t", 2): 4, ("t", 3): 1})
    (5, 5, 90)
    """
    classes = subscription_classes(group)
    # One heap of loads per class. The result contains only loads, so the member of a load does not matter.
    loads: list[list[float]] = [[0] * len(members) for members in classes.members]
    subscribers = {topic: sorted(positions) for topic, positions in classes.subscribers.items()}
    for topic, number in sorted(weights, key=lambda partition: (-weights[partition], partition)):
        least = min(subscribers[topic], key=lambda position: loads[position][0])
        heapreplace(loads[least], loads[least][0] + weights[topic, number])
    idle = len(group.members) - sum(map(len, classes.members))
    return tuple(sorted([*[0] * idle, *(load for of_class in loads for load in of_class)]))


def heaviest_first_within(weights: Iterable[float], members: int) -> tuple[float, ...]:
    """Return the loads, smallest load first, for a group in which every member can own every partition.

    >>> heaviest_first_within([90, 5, 4, 1], 3)
    (5, 5, 90)
    """
    loads: list[float] = [0] * members
    for weight in sorted(weights, reverse=True):
        heapreplace(loads, loads[0] + weight)
    return tuple(sorted(loads))
