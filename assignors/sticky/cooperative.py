"""The client-side ``cooperative-sticky`` strategy (``CooperativeStickyAssignor``; KIP-429).

An incremental rebalance takes two rounds where partitions change hands. In the first, the new owner does not get them
yet: they are *withheld*, the old owner sees that it lost them, revokes and rejoins, and the second round hands them
over. ``assign`` gives what the leader sends in the round it is asked for; ``rebalance_needed`` tells whether a second
follows, and ``rejoined`` is the group as that one finds it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assignors.ordering import sorted_names
from assignors.sticky.sticky import assign_sticky
from assignors.subscriptions import group_assignment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assignors.model import GroupAssignment, GroupSpec, TopicPartition
    from assignors.sticky.sticky import ScanOrder, StickyOutcome


class CooperativeStickyAssignor:
    """Sticky, but a partition that changes hands is withheld until its old owner has revoked it.

    A member joins; t-3 goes from A to B, in two rounds:

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> owner = Member("A", ("t",), owned=(("t", 0), ("t", 1)), generation_id=1)
    >>> group = GroupSpec((owner, Member("B", ("t",))), {"t": 2})
    >>> first = CooperativeStickyAssignor().assign(group)
    >>> first.members
    {'A': (('t', 0),), 'B': ()}
    >>> rebalance_needed(group, first)
    True
    >>> CooperativeStickyAssignor().assign(rejoined(group, first)).members
    {'A': (('t', 0),), 'B': (('t', 1),)}
    """

    name = "cooperative-sticky"

    def __init__(self, scan: ScanOrder = sorted_names) -> None:
        self.scan = scan

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign ``group``; partitions that some member must revoke first are in nobody's assignment."""
        outcome = assign_sticky(group, self.scan)
        transferring = outcome.transferring
        if transferring is None:
            transferring = _changed_hands(outcome)
        for member, partitions in enumerate(outcome.assigned):
            if transferring:
                outcome.assigned[member] = [
                    partition for partition in partitions if transferring.get(partition) != member
                ]
        return group_assignment(outcome.members, outcome.assigned)


def rebalance_needed(group: GroupSpec, assignment: GroupAssignment) -> bool:
    """Tell whether some member must revoke something it owns: then it rejoins, and a second round follows."""
    return any(not set(member.owned).issubset(assignment.members[member.member_id]) for member in group.members)


def rejoined(group: GroupSpec, assignment: GroupAssignment) -> GroupSpec:
    """Make the group of the next round: every member owns what ``assignment`` gave it, one generation later."""
    generation = 1 + max((member.generation_id for member in group.members), default=0)
    members = (
        replace(
            member,
            owned=assignment.members[member.member_id],
            generation_id=generation,
            user_data_version=1,
            subscription_generation=None,
        )
        for member in group.members
    )
    return replace(group, members=tuple(members))


def _changed_hands(outcome: StickyOutcome) -> Mapping[TopicPartition, int]:
    """Map each partition that a member gets anew and another owned and loses to its new owner."""
    gained: dict[TopicPartition, int] = {}
    lost: set[TopicPartition] = set()
    for position, (member, partitions) in enumerate(zip(outcome.members, outcome.assigned, strict=True)):
        owned = set(member.owned)
        gained.update((partition, position) for partition in partitions if partition not in owned)
        lost.update(owned.difference(partitions))
    return {partition: position for partition, position in gained.items() if partition in lost}
