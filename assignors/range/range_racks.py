"""Rack-aware ``range`` (KIP-881). Balance has the highest priority, then co-partitioning, then racks.

Topics with the same subscribers and the same partition count are *co-partitioned*. A member gets the same partition
numbers in all co-partitioned topics, so that an application can join the records of these topics. So co-partitioned
topics are assigned together, by partition number. Each set of co-partitioned topics is assigned in two steps:

1. A partition goes to a member that is in the same rack as one of its replicas, and below its limit. The limit is the
   number of partitions divided by the number of subscribers, rounded down. While extra partitions remain, the limit is
   1 higher.
2. The other partitions are assigned as in range without racks.
"""

from __future__ import annotations

from collections.abc import Sequence

from assignors.model import GroupSpec, MemberSubscription, TopicPartition
from assignors.racks import member_rack, racks_matter, racks_of
from assignors.subscriptions import subscribers_by_topic

ANY_RACK = None
"""The value for a member without a rack. For such a member, all partitions are equally near."""


def assign_ranges_by_rack(group: GroupSpec, members: Sequence[MemberSubscription]) -> list[list[TopicPartition]]:
    """Run the range strategy with racks. Returns one list of partitions per member, in the order of ``members``."""
    assigned: list[list[TopicPartition]] = [[] for _ in members]
    for (subscribers, count), topics in _co_partitioned(group, members).items():
        racks = [member_rack(members[subscriber]) for subscriber in subscribers]
        ranges = _Ranges(len(subscribers), count)
        partition_racks = [racks_of(group, topic) for topic in topics]
        if len(topics) > 1:
            _match_by_partition(ranges, racks, _common_racks(partition_racks))
        elif racks_matter(racks, partition_racks[0]):
            _match_by_member(ranges, racks, partition_racks[0])
        for subscriber, numbers in zip(subscribers, ranges.fill_rest(), strict=True):
            assigned[subscriber] += [(topic, number) for topic in topics for number in numbers]
    return assigned


def racks_matter_for_any_topic(group: GroupSpec, members: Sequence[MemberSubscription]) -> bool:
    """Return whether racks matter for at least one topic. If racks matter for no topic, range ignores racks."""
    if not any(map(member_rack, members)):
        return False
    return any(
        racks_matter([member_rack(members[subscriber]) for subscriber in subscribers], racks_of(group, topic))
        for topic, subscribers in subscribers_by_topic(group, members).items()
    )


class _Ranges:
    """The partition numbers that each subscriber has in one set of co-partitioned topics."""

    def __init__(self, subscribers: int, count: int) -> None:
        self.quota, self.extra = divmod(count, subscribers)
        self.numbers: list[list[int]] = [[] for _ in range(subscribers)]
        self.unassigned = [True] * count

    def room(self, place: int) -> int:
        return max(0, self.quota + (self.extra > 0) - len(self.numbers[place]))

    def take(self, place: int, numbers: Sequence[int]) -> None:
        self.numbers[place] += numbers
        for number in numbers:
            self.unassigned[number] = False
        if numbers and len(self.numbers[place]) > self.quota:
            self.extra -= 1

    def fill_rest(self) -> list[list[int]]:
        """Assign the remaining partition numbers to the first subscribers below their limits. Returns all numbers."""
        left = [number for number, free in enumerate(self.unassigned) if free]
        start = 0
        for place in range(len(self.numbers)):
            end = start + self.room(place)
            self.take(place, left[start:end])
            start = end
        return self.numbers


def _co_partitioned(
    group: GroupSpec, members: Sequence[MemberSubscription]
) -> dict[tuple[tuple[int, ...], int], list[str]]:
    topics: dict[tuple[tuple[int, ...], int], list[str]] = {}
    for topic, subscribers in subscribers_by_topic(group, members).items():
        topics.setdefault((tuple(subscribers), group.partition_count(topic)), []).append(topic)
    return topics


def _common_racks(partition_racks: list[list[frozenset[str]]]) -> list[frozenset[str]]:
    """Return one set per partition number: the racks in which every topic has a replica of its partition."""
    return [racks[0].intersection(*racks[1:]) for racks in zip(*partition_racks, strict=True)]


def _match_by_member(ranges: _Ranges, racks: Sequence[str | None], partition_racks: Sequence[frozenset[str]]) -> None:
    """Assign one topic, one member after the other.

    Each member gets partitions with a replica in its rack, up to its limit. Members in the same rack share one list
    of the partitions with a replica in this rack.
    """
    ahead: dict[str | None, list[int]] = {rack: [] for rack in racks}
    for number in reversed(range(len(partition_racks))):
        for rack, numbers_ahead in ahead.items():
            if rack is ANY_RACK or rack in partition_racks[number]:
                numbers_ahead.append(number)
    for place, rack in enumerate(racks):
        room, numbers = ranges.room(place), list[int]()
        while len(numbers) < room and ahead[rack]:
            number = ahead[rack].pop()
            if ranges.unassigned[number]:
                numbers.append(number)
        ranges.take(place, numbers)


def _match_by_partition(
    ranges: _Ranges, racks: Sequence[str | None], partition_racks: Sequence[frozenset[str]]
) -> None:
    """Assign co-partitioned topics, one partition number after the other.

    Each number goes to the first member that is below its limit and in one of the number's racks (``_common_racks``).
    A member without a rack can get every number. A member at its limit is removed from the queue of its rack, because
    the limit never increases.
    """
    waiting: dict[str | None, list[int]] = {}
    for place in reversed(range(len(racks))):
        waiting.setdefault(racks[place], []).append(place)
    for number, near in enumerate(partition_racks):
        candidates = [waiting[rack] for rack in (ANY_RACK, *near) if rack in waiting]
        for queue in candidates:
            while queue and not ranges.room(queue[-1]):
                queue.pop()
        first = min((queue[-1] for queue in candidates if queue), default=None)
        if first is not None:
            ranges.take(first, [number])
