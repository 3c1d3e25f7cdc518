"""The fairest sizes that any valid assignment of a group can have, exactly, also where subscriptions differ.

Valid is: every partition of a subscribed, existing topic belongs to exactly one of its subscribers. Racks and who owns
what now are left out: they are reasons to be less fair, not limits.

Among all valid assignments one list of sizes is the fairest by every measure at once: largest member, smallest member,
idle members, variance, Gini. (The lists are the bases of an integral polymatroid, which has a least element by
majorisation: Frank and Murota, *Decreasing minimization on M-convex sets*, 2022; for this graph also Harvey, Ladner,
Lovász and Tamir, *Semi-matchings for bipartite graphs and load balancing*, 2006.)

How it is found. Let f(m) be the most partitions that can be handed out if no member takes more than m: a maximum flow
from topics to members. The fairest list hands out f(m) under every m at once, so f(m) - f(m - 1) of its members have
m or more. f is concave and made of few straight pieces, each given by a smallest cut; a piece is found where two known
ones cross (Eisner and Severance 1976), so two flows or so for each piece do. Members with equal subscriptions, and
topics with equal subscribers, are one node each: a thousand members of one subscription need no flow at all. Where
very many subscriptions differ the search is not begun: TooManySubscriptionsError.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assignors.fairness.flow_network import FlowNetwork
from assignors.subscriptions import subscription_classes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from assignors.model import GroupAssignment, GroupSpec


MOST_ARCS = 300_000
"""A flow through so many takes some seconds and 100 MB. Far from it: a thousand members, each subscribed to 100 topics
of its own choice, have a third, and one classic group's record can hardly name so many topics."""


class TooManySubscriptionsError(ValueError):
    """So many subscriptions differ that the fairest assignment would take too long to find."""


def fairest_sizes(group: GroupSpec, most_arcs: int = MOST_ARCS) -> tuple[int, ...]:
    """List how many partitions each member has in the fairest valid assignment, ascending; one entry a member.

    Raises TooManySubscriptionsError if distinct subscriptions name more than ``most_arcs`` topics in all.

    Seven partitions over five members cannot be more even than this:

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> fairest_sizes(GroupSpec(tuple(Member(f"c{number}", ("t",)) for number in range(5)), {"t": 7}))
    (1, 1, 1, 2, 2)

    C alone subscribes to u, and nobody else can help it:

    >>> fairest_sizes(GroupSpec((Member("A", ("t",)), Member("B", ("t",)), Member("C", ("t", "u"))), {"t": 3, "u": 5}))
    (1, 2, 5)
    """
    shape, sizes = _shape(group), [0] * len(group.members)
    if len(shape.members) == 1:
        return (0,) * (len(sizes) - shape.members[0]) + even_sizes(sum(shape.topics.values()), shape.members[0])
    if sum(map(len, shape.topics)) > most_arcs:
        raise TooManySubscriptionsError(f"{len(shape.members)} subscriptions differ, more than can be compared in time")
    for piece in _pieces(shape):
        for position in range(piece.members):
            sizes[position] += piece.width
    return tuple(reversed(sizes))


def smallest_maximum(group: GroupSpec) -> int:
    """Count the partitions of the busiest member in the fairest valid assignment; 0 where nothing can be assigned.

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> smallest_maximum(GroupSpec(tuple(Member(f"c{number}", ("t",)) for number in range(5)), {"t": 7}))
    2
    """
    return max(fairest_sizes(group), default=0)


def even_sizes(partitions: int, members: int) -> tuple[int, ...]:
    """List the sizes, ascending, if ``partitions`` can go to any of ``members``: the fairest within one topic.

    >>> even_sizes(7, 5)
    (1, 1, 1, 2, 2)
    """
    quota, one_more = divmod(partitions, members)
    return (quota,) * (members - one_more) + (quota + 1,) * one_more


def excess_partitions(group: GroupSpec, assignment: GroupAssignment) -> int:
    """Count what the busiest member has beyond the smallest maximum any valid assignment reaches. Never negative.

    That is the number to alert on: a gap that nothing can close does not count, one that some assignment closes does.
    While partitions are unassigned (a cooperative rebalance between its rounds) it counts what is assigned.

    >>> from assignors.model import GroupAssignment, GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",)), Member("B", ("t",))), {"t": 3})
    >>> excess_partitions(group, GroupAssignment({"A": (("t", 0), ("t", 1)), "B": (("t", 2),)}))
    0
    >>> excess_partitions(group, GroupAssignment({"A": (("t", 0), ("t", 1), ("t", 2)), "B": ()}))
    1
    """
    return max(0, max(map(len, assignment.members.values()), default=0) - smallest_maximum(group))


@dataclass(frozen=True, slots=True)
class _Shape:
    """A group with equals taken together and names left out: only that decides how fair it can be.

    ``members`` counts the members of each class. ``topics`` maps the classes that subscribe to a topic, as positions in
    ``members``, to the partitions of all such topics.
    """

    members: tuple[int, ...]
    topics: Mapping[frozenset[int], int]


def _shape(group: GroupSpec) -> _Shape:
    classes = subscription_classes(group)
    topics: Counter[frozenset[int]] = Counter()
    for topic, subscribers in classes.subscribers.items():
        topics[subscribers] += group.partition_count(topic)
    return _Shape(tuple(map(len, classes.members)), topics)


@dataclass(frozen=True, slots=True)
class _Piece:
    """``members`` of the fairest assignment reach ``width`` partitions further up, from where the piece before ends."""

    width: int
    members: int


@dataclass(frozen=True, slots=True)
class _Cut:
    """What limits the partitions handed out: those of some topics are all out, the members of the others are full."""

    partitions: int
    members: int

    def at(self, limit: int) -> int:
        """Count the partitions handed out, if this is what limits them, at ``limit`` partitions a member."""
        return self.partitions + self.members * limit


def _pieces(shape: _Shape) -> Iterator[_Piece]:
    """Find f's straight pieces, from 0 on."""
    partitions = sum(shape.topics.values())
    return _between(shape, (0, _Cut(0, sum(shape.members))), (partitions, _Cut(partitions, 0)))


def _between(shape: _Shape, low: tuple[int, _Cut], high: tuple[int, _Cut]) -> Iterator[_Piece]:
    """Find the pieces between two limits, for each of which the cut is known."""
    (lowest, first), (highest, last) = low, high
    if first.at(highest) == last.at(highest):
        yield _Piece(highest - lowest, first.members)
    elif first.at(lowest) == last.at(lowest):
        yield _Piece(highest - lowest, last.members)
    elif highest - lowest == 1:
        yield _Piece(1, last.at(highest) - first.at(lowest))
    else:
        crossing = (last.partitions - first.partitions) // (first.members - last.members)
        middle = min(max(crossing, lowest), highest - 1)
        below, above = (middle, _smallest_cut(shape, middle)), (middle + 1, _smallest_cut(shape, middle + 1))
        yield from _between(shape, low, below)
        yield _Piece(1, above[1].at(middle + 1) - below[1].at(middle))
        yield from _between(shape, above, high)


def _smallest_cut(shape: _Shape, limit: int) -> _Cut:
    """Hand out as much as goes at ``limit`` partitions a member, and see what stands in the way of more."""
    source, sink, topics = 0, 1, list(shape.topics.items())
    network = FlowNetwork(2 + len(topics) + len(shape.members))
    first_class = 2 + len(topics)
    for node, (subscribers, partitions) in enumerate(topics, start=2):
        network.add_arc(source, node, partitions)
        for subscriber in subscribers:
            network.add_arc(node, first_class + subscriber, partitions)
    for node, members in enumerate(shape.members, start=first_class):
        network.add_arc(node, sink, members * limit)
    network.fill(source, sink)
    out = sum(partitions for node, (_, partitions) in enumerate(topics, start=2) if not network.is_source_side(node))
    full = (members for node, members in enumerate(shape.members, first_class) if network.is_source_side(node))
    return _Cut(out, sum(full))
