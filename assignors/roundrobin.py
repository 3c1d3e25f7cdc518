"""The client-side ``roundrobin`` strategy (``org.apache.kafka.clients.consumer.RoundRobinAssignor``)."""

from __future__ import annotations

from bisect import bisect_left

from assignors.model import GroupAssignment, GroupSpec, TopicPartition
from assignors.ordering import MemberOrder, members_static_first
from assignors.subscriptions import group_assignment, partitions_of, subscribers_by_topic


class RoundRobinAssignor:
    """Assigns the sorted partitions one by one, each to the next member that subscribes to the topic.

    Two members subscribe to the same two topics with three partitions each:

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> both = ("t0", "t1")
    >>> group = GroupSpec((Member("C0", both), Member("C1", both)), {"t0": 3, "t1": 3})
    >>> RoundRobinAssignor().assign(group).members["C0"]
    (('t0', 0), ('t0', 2), ('t1', 1))

    Unequal subscriptions can make the result uneven. In this example, t0 has 1 partition, t1 has 2 partitions, and t2
    has 3 partitions:

    >>> members = (Member("C0", ("t0",)), Member("C1", ("t0", "t1")), Member("C2", ("t0", "t1", "t2")))
    >>> group = GroupSpec(members, {"t0": 1, "t1": 2, "t2": 3})
    >>> for member_id, partitions in RoundRobinAssignor().assign(group).members.items():
    ...     print(member_id, *(f"{topic}-{number}" for topic, number in partitions))
    C0 t0-0
    C1 t1-0
    C2 t1-1 t2-0 t2-1 t2-2
    """

    name = "roundrobin"

    def __init__(self, order: MemberOrder = members_static_first) -> None:
        self.order = order

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign ``group``. Racks and claims have no effect."""
        members = self.order(group)
        assigned: list[list[TopicPartition]] = [[] for _ in members]
        next_member = 0  # position among all members
        for topic, subscribers in subscribers_by_topic(group, members).items():
            # The search finds the first subscriber at or after next_member. Later subscribers get the next partitions.
            first = bisect_left(subscribers, next_member) % len(subscribers)
            count = group.partition_count(topic)
            partitions = partitions_of(topic, count)
            for place in range(min(count, len(subscribers))):
                subscriber = subscribers[(first + place) % len(subscribers)]
                assigned[subscriber].extend(partitions[place :: len(subscribers)])
            next_member = subscribers[(first + count - 1) % len(subscribers)] + 1
        return group_assignment(members, assigned)
