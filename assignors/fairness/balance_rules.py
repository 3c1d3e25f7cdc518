"""Checks that each strategy keeps its promise about balance. A check yields one message for each violation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from assignors.model import GroupAssignment, GroupSpec
from assignors.subscriptions import distinct_subscriptions, subscribers_by_topic


def _even_in_each_topic(group: GroupSpec, assignment: GroupAssignment) -> Iterator[str]:
    """Check range. In each topic, the partition counts of any two subscribers differ by at most 1."""
    counts = [Counter(topic for topic, _ in assignment.members[member.member_id]) for member in group.members]
    for topic, subscribers in subscribers_by_topic(group, group.members).items():
        held = [counts[subscriber][topic] for subscriber in subscribers]
        if max(held) - min(held) > 1:
            yield f"one subscriber has {max(held)} partitions of {topic}, and a different subscriber has {min(held)}"


def _even_if_equal(group: GroupSpec, assignment: GroupAssignment) -> Iterator[str]:
    """Check roundrobin. If all subscriptions are equal, the sizes of any two members differ by at most 1.

    If subscriptions differ, roundrobin makes no promise about balance.
    """
    sizes = [len(assignment.members[member.member_id]) for member in group.members]
    if len(set(distinct_subscriptions(group.members))) == 1 and max(sizes) - min(sizes) > 1:
        yield f"one member has {max(sizes)} partitions, and a different member has {min(sizes)}"


def _no_move_helps(group: GroupSpec, assignment: GroupAssignment) -> Iterator[str]:
    """Check sticky and uniform. No move of a single partition can improve the balance.

    A move improves the balance if the old owner has at least two partitions more than the new owner. Two moves
    together may still improve the balance, because sticky and uniform never try them.
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
                f"{giver} has {len(members[most])} partitions, {taker} has {len(members[least])} "
                f"and could take a partition of {topic}"
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
