"""Counts the needless moves of strategies that promise to keep partitions with their owners (KIP-54)."""

from __future__ import annotations

from collections import Counter

from assignors.fairness.fewest_moves import count_moves
from assignors.fairness.invariants import STICKY_STRATEGIES
from assignors.fairness.measures import effective_owners, measure
from assignors.model import GroupAssignment, GroupSpec
from assignors.racks import member_rack
from assignors.sticky.sticky import StickyAssignor
from assignors.subscriptions import distinct_subscriptions, subscribers_by_topic


def needless_moves(group: GroupSpec, assignment: GroupAssignment, strategy: str) -> int:
    """Return the number of partitions that moved although they could have stayed. ``assignment`` must be balanced.

    A withheld partition counts as moved, because its owner must revoke it. If claims conflict, the previous owners are
    unknown, so the result is 0. If members have racks, the result is also 0, because racks can be the reason for a
    move. If subscriptions differ, the promise is smaller: nothing moves if the previous assignment was complete and
    balanced.
    """
    claims = Counter(partition for member in group.members for partition in member.owned)
    if (
        strategy not in STICKY_STRATEGIES
        or max(claims.values(), default=0) > 1
        or (group.racks and any(map(member_rack, group.members)))
    ):
        return 0
    moved = measure(group, assignment).moves
    if len(set(distinct_subscriptions(group.members))) > 1:
        return moved if _was_complete_and_balanced(group) else 0
    # With equal subscriptions, every balanced assignment has the same sizes, so it has the same fewest moves.
    fewest = count_moves(effective_owners(group), group, StickyAssignor().assign(group))
    assert fewest.is_exact
    assert fewest.fewest is not None
    return moved - fewest.fewest


def _was_complete_and_balanced(group: GroupSpec) -> bool:
    owners = effective_owners(group)
    sizes = Counter(owners.values())
    held = [sizes[member.member_id] for member in group.members]
    subscribers = subscribers_by_topic(group, group.members)
    return len(owners) == sum(map(group.partition_count, subscribers)) and all(
        max(held[position] for position in positions) - min(held[position] for position in positions) <= 1
        for positions in subscribers.values()
    )
