"""KIP-848's server-side ``uniform`` strategy (``org.apache.kafka.coordinator.group.assignor.UniformAssignor``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assignors.claims import NO_OWNER
from assignors.ordering import members_by_id
from assignors.subscriptions import (
    by_member,
    distinct_subscriptions,
    group_assignment,
    subscribers_by_topic,
)
from assignors.uniform.uniform_heterogeneous import HeterogeneousAssignment
from assignors.uniform.uniform_homogeneous import assign_homogeneous

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assignors.claims import Owners
    from assignors.model import GroupAssignment, GroupSpec, MemberSubscription


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
            return group_assignment(members, assign_homogeneous(len(members), target))
        owners = HeterogeneousAssignment(len(members), subscribers, target).build()
        return group_assignment(members, by_member(owners, len(members)))


def _current_target(members: Sequence[MemberSubscription], partitions: Mapping[str, int]) -> Owners:
    """Return the current owner of each partition. Owners that no longer subscribe to the topic are ignored.

    If several members own the same partition, the last of them in ``members`` is returned. Claims to partitions that do
    not exist are ignored.
    """
    owners = {topic: [NO_OWNER] * count for topic, count in partitions.items()}
    for position, member in enumerate(members):
        for topic, number in member.owned:
            if topic in owners and 0 <= number < len(owners[topic]) and topic in member.topics:
                owners[topic][number] = position
    return owners
