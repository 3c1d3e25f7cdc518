"""The client-side ``cooperative-sticky`` strategy (``CooperativeStickyAssignor``; KIP-429).

A cooperative rebalance needs two rounds if partitions change their owner. In the first round, a partition that changes
its owner is *withheld*: no member gets the partition. The old owner revokes the withheld partition and rejoins the
group. In the second round, the new owner gets the withheld partition. ``assign`` returns the assignment of one round.
``rebalance_needed`` returns whether a further round follows. ``group_after_rejoin`` returns the group at the start of
the next round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from assignors.model import GroupAssignment, GroupSpec, TopicPartition
from assignors.ordering import sorted_names
from assignors.sticky.sticky import ScanOrder, StickyOutcome, assign_sticky
from assignors.subscriptions import group_assignment


class CooperativeStickyAssignor:
    """Assigns like sticky, but a partition gets a new owner only after the old owner has revoked the partition.

    B joins, and t-1 moves from A to B in two rounds:

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> owner = Member("A", ("t",), owned=(("t", 0), ("t", 1)), generation_id=1)
    >>> group = GroupSpec((owner, Member("B", ("t",))), {"t": 2})
    >>> first = CooperativeStickyAssignor().assign(group)
    >>> first.members
    {'A': (('t', 0),), 'B': ()}
    >>> rebalance_needed(group, first)
    True
    >>> CooperativeStickyAssignor().assign(group_after_rejoin(group, first)).members
    {'A': (('t', 0),), 'B': (('t', 1),)}
    """

    name = "cooperative-sticky"

    def __init__(self, scan: ScanOrder = sorted_names) -> None:
        self.scan = scan

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign ``group``. If a member must first revoke a partition, the partition stays unassigned in this round."""
        outcome = assign_sticky(group, self.scan)
        transferring = outcome.transferring
        if transferring is None:
            transferring = _transferring_partitions(outcome)
        for member, partitions in enumerate(outcome.assigned):
            if transferring:
                outcome.assigned[member] = [
                    partition for partition in partitions if transferring.get(partition) != member
                ]
        return group_assignment(outcome.members, outcome.assigned)


def rebalance_needed(group: GroupSpec, assignment: GroupAssignment) -> bool:
    """Return whether a member must revoke a partition that it owns."""
    return any(not set(member.owned).issubset(assignment.members[member.member_id]) for member in group.members)


def group_after_rejoin(group: GroupSpec, assignment: GroupAssignment) -> GroupSpec:
    """Return the group at the start of the next round: each member owns the partitions that it has in ``assignment``.

    All members get the same new generation: 1 more than the highest generation in ``group``.
    """
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


def _transferring_partitions(outcome: StickyOutcome) -> Mapping[TopicPartition, int]:
    gained: dict[TopicPartition, int] = {}
    lost: set[TopicPartition] = set()
    for position, (member, partitions) in enumerate(zip(outcome.members, outcome.assigned, strict=True)):
        owned = set(member.owned)
        gained.update((partition, position) for partition in partitions if partition not in owned)
        lost.update(owned.difference(partitions))
    return {partition: position for partition, position in gained.items() if partition in lost}
