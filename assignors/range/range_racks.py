"""Rack-aware ``range`` (KIP-881): balance first, then co-partitioning, then racks.

Topics with the same subscribers and the same partition count are *co-partitioned*: a member gets the same partition
numbers of each, so that streams can be joined. They are therefore assigned as one, by partition number. Each such set
of topics goes through two steps: give partitions to members in a rack of theirs as long as the member has room, then
give out what is left as plain range does.

``RangeAssignor.java`` keeps a state for each topic instead and lets them move in step; the answer is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assignors.racks import member_rack, racks_matter, racks_of
from assignors.subscriptions import subscribers_by_topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assignors.model import GroupSpec, MemberSubscription, TopicPartition

ANY_RACK = None
"""Where a member has no rack, every partition is as near as any other."""


def assign_ranges_by_rack(group: GroupSpec, members: Sequence[MemberSubscription]) -> list[list[TopicPartition]]:
    """Assign by range with racks: a list of partitions for each of ``members``, in their order."""
    assigned: list[list[TopicPartition]] = [[] for _ in members]
    for (subscribers, count), topics in _co_partitioned(group, members).items():
        racks = [member_rack(members[subscriber]) for subscriber in subscribers]
        ranges = _Ranges(len(subscribers), count)
        partition_racks = [racks_of(group, topic) for topic in topics]
        if len(topics) > 1:
            _match_by_partition(ranges, racks, _common_racks(partition_racks))
        elif racks_matter(racks, partition_racks[0]):
            _match_by_member(ranges, racks, partition_racks[0])
        for subscriber, numbers in zip(subscribers, ranges.filled(), strict=True):
            assigned[subscriber] += [(topic, number) for topic in topics for number in numbers]
    return assigned


def some_topic_gains(group: GroupSpec, members: Sequence[MemberSubscription]) -> bool:
    """Tell whether racks matter for any topic. If for none, range is plain range even for co-partitioned topics."""
    if not any(map(member_rack, members)):
        return False
    return any(
        racks_matter([member_rack(members[subscriber]) for subscriber in subscribers], racks_of(group, topic))
        for topic, subscribers in subscribers_by_topic(group, members).items()
    )


class _Ranges:
    """The partition numbers each subscriber of one set of co-partitioned topics has, and how many more it may take."""

    def __init__(self, subscribers: int, count: int) -> None:
        self.quota, self.extra = divmod(count, subscribers)
        self.numbers: list[list[int]] = [[] for _ in range(subscribers)]
        self.unassigned = [True] * count

    def room(self, place: int) -> int:
        """Partitions the subscriber may still take: up to its quota, and one more while there is a surplus."""
        return max(0, self.quota + (self.extra > 0) - len(self.numbers[place]))

    def take(self, place: int, numbers: Sequence[int]) -> None:
        self.numbers[place] += numbers
        for number in numbers:
            self.unassigned[number] = False
        if numbers and len(self.numbers[place]) > self.quota:
            self.extra -= 1

    def filled(self) -> list[list[int]]:
        """Give every unassigned number, ascending, to the first subscribers with room, and return all numbers."""
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
    """Map (positions of subscribers, partition count) to the topics that share both."""
    topics: dict[tuple[tuple[int, ...], int], list[str]] = {}
    for topic, subscribers in subscribers_by_topic(group, members).items():
        topics.setdefault((tuple(subscribers), group.partition_count(topic)), []).append(topic)
    return topics


def _common_racks(partition_racks: list[list[frozenset[str]]]) -> list[frozenset[str]]:
    """For each partition number, the racks that hold it for every topic."""
    return [racks[0].intersection(*racks[1:]) for racks in zip(*partition_racks, strict=True)]


def _match_by_member(ranges: _Ranges, racks: Sequence[str | None], partition_racks: Sequence[frozenset[str]]) -> None:
    """One topic: each member in turn takes its fill of the partitions in its rack.

    Members of one rack share one cursor over that rack's partitions: what lies behind it is taken for good.
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
    """Co-partitioned topics: each partition number in turn goes to the first member with room in a common rack.

    A member that ran out of room never gets any again, so each rack's queue of members only shrinks.
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
