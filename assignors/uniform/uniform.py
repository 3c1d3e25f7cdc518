"""KIP-848's server-side ``uniform`` strategy (``org.apache.kafka.coordinator.group.assignor.UniformAssignor``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assignors.claims import NO_OWNER, Owners
from assignors.model import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.ordering import members_by_id
from assignors.subscriptions import by_member, by_owner, distinct_subscriptions, group_assignment, subscribers_by_topic
from assignors.uniform.uniform_heterogeneous import HeterogeneousAssignment


class UniformAssignor:
    """The default strategy of the broker. Balances the group. Members keep their partitions if the balance allows it.

    For this strategy, ``owned`` contains the partitions of a member in the current target assignment. Racks have no
    effect (Kafka 4.2).

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> owner = Member("A", ("t",), owned=(("t", 0), ("t", 1), ("t", 2)))
    >>> UniformAssignor().assign(GroupSpec((owner, Member("B", ("t",))), {"t": 3})).members
    {'A': (('t', 0), ('t', 1)), 'B': (('t', 2),)}
    """

    name = "uniform"

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign ``group``. The generations of the claims have no effect."""
        members = members_by_id(group)
        subscribers = subscribers_by_topic(group, members)
        target = _current_target(members, {topic: group.partition_count(topic) for topic in subscribers})
        if len(set(distinct_subscriptions(members))) == 1:
            return group_assignment(members, _assign_homogeneous(len(members), target))
        owners = HeterogeneousAssignment(len(members), subscribers, target).build()
        return group_assignment(members, by_member(owners, len(members)))


def _current_target(members: Sequence[MemberSubscription], partitions: Mapping[str, int]) -> Owners:
    """Return the current owner of each partition: the last subscriber in ``members`` that claims the partition."""
    owners = {topic: [NO_OWNER] * count for topic, count in partitions.items()}
    for position, member in enumerate(members):
        for topic, number in member.owned:
            if topic in owners and 0 <= number < len(owners[topic]) and topic in member.topics:
                owners[topic][number] = position
    return owners


def _assign_homogeneous(members: int, target: Owners) -> list[list[TopicPartition]]:
    """Assign all partitions, if all subscriptions are equal (``UniformHomogeneousAssignmentBuilder``).

    With n members and p partitions, the quota of each member is p // n partitions. In addition, p % n members get one
    more partition each, an *extra*. The algorithm visits the members in the order of ids:

    1. A member keeps the partitions that it owns in ``target``, in the order of topic and number, up to its quota. A
       member that owns more than the quota keeps one more partition, as long as extras remain.
    2. Any other member gets an extra only if enough extras remain for this member and all later members. Otherwise, the
       extras remain for later members that own more than the quota.
    3. The remaining partitions go to the first member until it is full, and then to the next member.
    """
    quota, extras = divmod(sum(map(len, target.values())), members)
    owned = by_owner(target)
    unassigned = owned.pop(NO_OWNER, [])
    assigned, rooms = [], []
    for position in range(members):
        partitions = owned.get(position, [])
        most = quota + (extras > 0)
        unassigned += partitions[most:]
        size = most if len(partitions) >= most or members - position <= extras else quota
        extras -= size - quota
        assigned.append(partitions[:most])
        rooms.append(size - len(partitions[:most]))
    start = 0
    for position, room in enumerate(rooms):
        assigned[position] += unassigned[start : start + room]
        start += room
    return assigned
