"""Computes the sizes of the members in the fairest valid assignment of a group.

The *size* of a member is its number of partitions. The computed sizes are exact, even if subscriptions differ.

In a valid assignment, every partition of a subscribed, existing topic belongs to exactly one subscriber. Racks and
current owners are ignored. A strategy that considers racks or current owners may choose a less fair assignment.

One list of sizes is the fairest by every measure of balance. For the proof by majorisation, see Frank and Murota,
*Decreasing minimization on M-convex sets*, 2022. See also Harvey, Ladner, Lovász and Tamir,
*Semi-matchings for bipartite graphs and load balancing*, 2006.

The algorithm:

- The number f(m) is the maximum number of assigned partitions if each member has at most m partitions. The algorithm
  computes f(m) as a maximum flow from topics to members.
- For every m, the fairest assignment contains exactly f(m) - f(m - 1) members with m or more partitions.
- The function f is concave and consists of few linear pieces. The minimum cut at m determines the piece that contains
  m. To find a new piece, the algorithm computes the flow for the value of m at which the lines of two known pieces
  cross (Eisner and Severance 1976). The algorithm needs about two flows per piece.
- In the network, members with equal subscriptions share one node, and topics with equal subscribers share one node. If
  all members have the same subscription, the algorithm computes no flow.
- If the group has too many different subscriptions, ``fairest_sizes`` raises TooManySubscriptionsError.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from assignors.fairness.flow_network import FlowNetwork
from assignors.model import GroupSpec
from assignors.subscriptions import subscription_classes

MAX_ARCS = 300_000
"""Maximum number of arcs from topics to subscriptions in a flow network.

With this number of arcs, the computation of one flow takes some seconds and 100 MB of memory. If each of 1,000 members
subscribes to 100 topics, the network has only a third of this number of arcs.
"""


class TooManySubscriptionsError(ValueError):
    """Error: the group has too many different subscriptions to compute the fairest assignment in a short time."""


def fairest_sizes(group: GroupSpec) -> tuple[int, ...]:
    """Return the sizes of all members in the fairest valid assignment, smallest size first.

    Raises TooManySubscriptionsError if the distinct subscriptions contain more than MAX_ARCS topics in total.

    The fairest sizes for seven partitions and five members:

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> fairest_sizes(GroupSpec(tuple(Member(f"c{number}", ("t",)) for number in range(5)), {"t": 7}))
    (1, 1, 1, 2, 2)

    Only C subscribes to u, so C gets all partitions of u:

    >>> fairest_sizes(GroupSpec((Member("A", ("t",)), Member("B", ("t",)), Member("C", ("t", "u"))), {"t": 3, "u": 5}))
    (1, 2, 5)
    """
    shape = _shape(group)
    without_topics = (0,) * (len(group.members) - sum(shape.members))
    if len(shape.members) == 1:
        return without_topics + even_sizes(shape.partitions, shape.members[0])
    if sum(len(subscribers) for subscribers, _ in shape.topics) > MAX_ARCS:
        raise TooManySubscriptionsError(
            f"too many different subscriptions to compute the fairest assignment: {len(shape.members)}"
        )
    return without_topics + _sizes_of(shape)


def even_sizes(partitions: int, members: int) -> tuple[int, ...]:
    """Return the fairest sizes, smallest size first, for a group in which every member can own every partition.

    >>> even_sizes(7, 5)
    (1, 1, 1, 2, 2)
    """
    quota, one_more = divmod(partitions, members)
    return (quota,) * (members - one_more) + (quota + 1,) * one_more


@dataclass(frozen=True, slots=True)
class _Shape:
    """The numbers that determine the fairest sizes of a group.

    ``members`` contains the number of members in each subscription class. ``topics`` has one entry for all topics with
    the same subscribers: the set of the subscribers' classes (positions in ``members``), and the total partition count
    of these topics.
    """

    members: tuple[int, ...]
    topics: tuple[tuple[frozenset[int], int], ...]

    @property
    def partitions(self) -> int:
        """The partition count of all topics."""
        return sum(partitions for _, partitions in self.topics)


def _shape(group: GroupSpec) -> _Shape:
    classes = subscription_classes(group)
    topics: Counter[frozenset[int]] = Counter()
    for topic, subscribers in classes.subscribers.items():
        topics[subscribers] += group.partition_count(topic)
    return _Shape(tuple(map(len, classes.members)), tuple(topics.items()))


@lru_cache(maxsize=2)
def _sizes_of(shape: _Shape) -> tuple[int, ...]:
    """Return the sizes of all members in the subscription classes, smallest size first.

    The evaluation of one group needs the sizes of its members three times, and the sizes of its hosts once. So the
    results of the last two shapes are kept. A shape can need 20 MB of memory, so no more results are kept.
    """
    sizes, partitions = [0] * sum(shape.members), shape.partitions
    low, high = (0, _Cut(0, len(sizes))), (partitions, _Cut(partitions, 0))
    for width, members in _pieces_between(shape, low, high):
        for position in range(members):
            sizes[position] += width
    return tuple(reversed(sizes))


@dataclass(frozen=True, slots=True)
class _Cut:
    """A minimum cut. It contains topics whose partitions are all assigned, and members that have reached the limit.

    ``partitions`` is the total partition count of these topics. ``members`` is the number of these members.
    """

    partitions: int
    members: int

    def at(self, limit: int) -> int:
        """Return the capacity of the cut, in partitions, if each member has at most ``limit`` partitions."""
        return self.partitions + self.members * limit


def _pieces_between(shape: _Shape, low: tuple[int, _Cut], high: tuple[int, _Cut]) -> Iterator[tuple[int, int]]:
    """Yield the width and the slope of each linear piece of f(m).

    The width is the number of values of m in the piece. The slope is the number of members with m or more partitions.
    """
    (lowest, first), (highest, last) = low, high
    if first.at(highest) == last.at(highest):
        yield highest - lowest, first.members
    elif first.at(lowest) == last.at(lowest):
        yield highest - lowest, last.members
    elif highest - lowest == 1:
        yield 1, last.at(highest) - first.at(lowest)
    else:
        crossing = (last.partitions - first.partitions) // (first.members - last.members)
        middle = min(max(crossing, lowest), highest - 1)
        below, above = (middle, _smallest_cut(shape, middle)), (middle + 1, _smallest_cut(shape, middle + 1))
        yield from _pieces_between(shape, low, below)
        yield 1, above[1].at(middle + 1) - below[1].at(middle)
        yield from _pieces_between(shape, above, high)


def _smallest_cut(shape: _Shape, limit: int) -> _Cut:
    """Return the minimum cut of the network in which each member has at most ``limit`` partitions."""
    source, sink, topics = 0, 1, shape.topics
    network = FlowNetwork(2 + len(topics) + len(shape.members))
    first_class = 2 + len(topics)
    for node, (subscribers, partitions) in enumerate(topics, start=2):
        network.add_arc(source, node, partitions)
        for subscriber in subscribers:
            network.add_arc(node, first_class + subscriber, partitions)
    for node, members in enumerate(shape.members, start=first_class):
        network.add_arc(node, sink, members * limit)
    network.fill(source, sink)
    all_assigned = sum(
        partitions for node, (_, partitions) in enumerate(topics, start=2) if not network.is_source_side(node)
    )
    full = (members for node, members in enumerate(shape.members, first_class) if network.is_source_side(node))
    return _Cut(all_assigned, sum(full))
