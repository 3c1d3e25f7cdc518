"""The client-side ``sticky`` strategy (``org.apache.kafka.clients.consumer.StickyAssignor``; KIP-54, KIP-881)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from assignors.claims import find_earlier_owners, settle_claims
from assignors.model import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.ordering import members_by_id, sorted_names
from assignors.sticky.constrained import ConstrainedAssignment
from assignors.sticky.general import GeneralAssignment
from assignors.sticky.sticky_racks import sticky_racks
from assignors.subscriptions import by_member, distinct_subscriptions, group_assignment, subscribers_by_topic

ScanOrder = Callable[[Iterable[str]], list[str]]
"""Sorts member ids into the order in which the algorithm visits the members' claims.

If some members cannot keep their partitions, this order decides which members keep theirs.
"""


class StickyAssignor:
    """Balances the group as well as possible, and moves as few partitions as possible.

    This class visits members in the order of their ids. Java visits members in the order of a ``HashMap``. To compute
    the assignment of a Java leader, use ``StickyAssignor(hash_map_order)``.

    Three topics have 1, 2 and 3 partitions. Three members have different subscriptions. Roundrobin assigns four of the
    six partitions to C2. Sticky assigns only three partitions to C2:

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> topics = {"C0": ("t0",), "C1": ("t0", "t1"), "C2": ("t0", "t1", "t2")}
    >>> group = GroupSpec(tuple(Member(name, of) for name, of in topics.items()), {"t0": 1, "t1": 2, "t2": 3})
    >>> [len(partitions) for partitions in StickyAssignor().assign(group).members.values()]
    [1, 2, 3]

    Member B leaves. The other members share the partitions of B. No other partition moves:

    >>> def owned(name, *numbers):
    ...     return Member(name, ("t",), owned=tuple(("t", number) for number in numbers), generation_id=1)
    >>> left = GroupSpec((owned("A", 0, 3), owned("C", 2, 5)), {"t": 6})
    >>> StickyAssignor().assign(left).members["A"]
    (('t', 0), ('t', 1), ('t', 3))

    Member B joins and gets its share. No partition moves between the other members:

    >>> joined = GroupSpec((owned("A", 0, 1, 3), owned("B"), owned("C", 2, 4, 5)), {"t": 6})
    >>> StickyAssignor().assign(joined).members["B"]
    (('t', 3), ('t', 5))
    """

    name = "sticky"

    def __init__(self, scan: ScanOrder = sorted_names) -> None:
        self.scan = scan

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign ``group``. The claims of the members decide which partitions keep their owner."""
        outcome = assign_sticky(group, self.scan)
        return group_assignment(outcome.members, outcome.assigned)


@dataclass(frozen=True, slots=True)
class StickyOutcome:
    """The members sorted by id, the partitions of each member, and the partitions that change their owner.

    ``transferring`` contains the new owner of each partition whose owner changes. The general algorithm
    does not compute ``transferring``, so the value is None.
    """

    members: Sequence[MemberSubscription]
    assigned: list[list[TopicPartition]]
    transferring: Mapping[TopicPartition, int] | None


def assign_sticky(group: GroupSpec, scan_order: ScanOrder) -> StickyOutcome:
    """Run the constrained algorithm if all subscriptions are equal, otherwise the general algorithm."""
    members = members_by_id(group)
    position = {member.member_id: place for place, member in enumerate(members)}
    scan = [position[member_id] for member_id in scan_order(member.member_id for member in group.members)]
    subscribers = subscribers_by_topic(group, members)
    claims = settle_claims(members, {topic: group.partition_count(topic) for topic in subscribers}, scan)
    racks = sticky_racks(group, members, list(subscribers))
    if len(set(distinct_subscriptions(members))) == 1:
        constrained = ConstrainedAssignment(scan, claims, racks).build()
        return StickyOutcome(members, constrained.assigned, constrained.transferring)
    earlier = find_earlier_owners(members, claims.max_generation, scan)
    owners = GeneralAssignment(len(members), subscribers, claims.owners, racks, earlier).build()
    return StickyOutcome(members, by_member(owners, len(members)), None)
