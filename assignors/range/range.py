"""The ``range`` strategies of the client and of the broker."""

from __future__ import annotations

from collections.abc import Sequence

from assignors.model import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.ordering import MemberOrder, members_static_first
from assignors.range.range_racks import assign_ranges_by_rack, racks_matter_for_any_topic
from assignors.subscriptions import group_assignment, partitions_of, subscribers_by_topic


class RangeAssignor:
    """Divides each topic into contiguous ranges of partitions, and assigns one range to each subscriber.

    Source: ``org.apache.kafka.clients.consumer.RangeAssignor``.

    If the partitions cannot be divided equally, each of the first subscribers gets one more partition.

    Five members share seven partitions:

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec(tuple(Member(f"c{i}", ("t0",)) for i in range(5)), {"t0": 7})
    >>> [len(partitions) for partitions in RangeAssignor().assign(group).members.values()]
    [2, 2, 1, 1, 1]

    The same members get the extra partition of every topic. In this example, two members share two topics with three
    partitions each:

    >>> both = ("t0", "t1")
    >>> group = GroupSpec((Member("C0", both), Member("C1", both)), {"t0": 3, "t1": 3})
    >>> RangeAssignor().assign(group).members["C0"]
    (('t0', 0), ('t0', 1), ('t1', 0), ('t1', 1))

    In this example, t0 has five partitions, and t1 has seven partitions. Each topic has three subscribers. One of the
    five members subscribes to both topics:

    >>> topics = [("t0",), ("t0",), ("t0", "t1"), ("t1",), ("t1",)]
    >>> group = GroupSpec(tuple(Member(f"c{i}", names) for i, names in enumerate(topics)), {"t0": 5, "t1": 7})
    >>> [len(partitions) for partitions in RangeAssignor().assign(group).members.values()]
    [2, 2, 4, 2, 2]
    """

    name = "range"

    def __init__(self, order: MemberOrder = members_static_first) -> None:
        self.order = order

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign ``group``. Claims have no effect."""
        members = self.order(group)
        assign = assign_ranges_by_rack if racks_matter_for_any_topic(group, members) else _assign_ranges
        return group_assignment(members, assign(group, members))


class ServerRangeAssignor:
    """The ``range`` strategy of the broker (KIP-848, ``org.apache.kafka.coordinator.group.assignor.RangeAssignor``).

    It assigns like the client's range strategy without racks. On the broker and in ``group.remote.assignor``, its name
    is ``range``.

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("M0", ("T1", "T2")), Member("M1", ("T1", "T2"))), {"T1": 3, "T2": 3})
    >>> ServerRangeAssignor().assign(group).members["M1"]
    (('T1', 2), ('T2', 2))
    """

    name = "server-range"

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign ``group``. Racks and the current target assignment have no effect."""
        members = members_static_first(group)
        return group_assignment(members, _assign_ranges(group, members))


def _assign_ranges(group: GroupSpec, members: Sequence[MemberSubscription]) -> list[list[TopicPartition]]:
    """Run the range strategy without racks. Returns one list of partitions per member, in the order of ``members``."""
    assigned: list[list[TopicPartition]] = [[] for _ in members]
    for topic, subscribers in subscribers_by_topic(group, members).items():
        partitions = partitions_of(topic, group.partition_count(topic))
        quota, extra = divmod(len(partitions), len(subscribers))
        start = 0
        for place, subscriber in enumerate(subscribers[: len(partitions)]):
            end = start + quota + (place < extra)
            assigned[subscriber] += partitions[start:end]
            start = end
    return assigned
