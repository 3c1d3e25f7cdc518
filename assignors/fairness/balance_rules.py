"""What each strategy promises of balance, as a check that finds where an assignment falls short of it."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING

from assignors.subscriptions import distinct_subscriptions, subscribers_by_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from assignors.model import GroupAssignment, GroupSpec


def _even_in_each_topic(group: GroupSpec, assignment: GroupAssignment) -> Iterator[str]:
    """Range: the subscribers of a topic differ by at most one partition of it."""
    counts = [Counter(topic for topic, _ in assignment.members[member.member_id]) for member in group.members]
    for topic, subscribers in subscribers_by_topic(group, group.members).items():
        held = [counts[subscriber][topic] for subscriber in subscribers]
        if max(held) - min(held) > 1:
            yield f"of {topic} one subscriber has {max(held)} partitions and another {min(held)}"


def _even_if_equal(group: GroupSpec, assignment: GroupAssignment) -> Iterator[str]:
    """Roundrobin: members differ by at most one partition, if all subscribe to the same topics; else no promise."""
    sizes = [len(assignment.members[member.member_id]) for member in group.members]
    if len(set(distinct_subscriptions(group.members))) == 1 and max(sizes) - min(sizes) > 1:
        yield f"one member has {max(sizes)} partitions and another {min(sizes)}"


def _no_move_helps(group: GroupSpec, assignment: GroupAssignment) -> Iterator[str]:
    """Sticky and uniform: nobody has a partition that a subscriber with at least two fewer could take.

    Better balance by a chain of moves through a third member may exist; neither algorithm looks for one.
    """
    members = [assignment.members[member.member_id] for member in group.members]
    holders: dict[str, set[int]] = {}
    for position, partitions in enumerate(members):
        for topic, _ in partitions:
            holders.setdefault(topic, set()).add(position)
    for topic, subscribers in subscribers_by_topic(group, group.members).items():
        least = min(subscribers, key=lambda position: len(members[position]))
        most = max(holders[topic], key=lambda position: len(members[position]))
        if len(members[most]) > len(members[least]) + 1:
            giver, taker = group.members[most].member_id, group.members[least].member_id
            yield (
                f"{giver} has {len(members[most])} partitions, some of {topic}, "
                f"and {taker} could take one with {len(members[least])}"
            )


BALANCE_RULES: Mapping[str, Callable[[GroupSpec, GroupAssignment], Iterator[str]]] = MappingProxyType(
    {
        "range": _even_in_each_topic,
        "server-range": _even_in_each_topic,
        "roundrobin": _even_if_equal,
        "sticky": _no_move_helps,
        "cooperative-sticky": _no_move_helps,
        "uniform": _no_move_helps,
    }
)
