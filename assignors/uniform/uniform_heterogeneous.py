"""The uniform strategy for different subscriptions (``UniformHeterogeneousAssignmentBuilder``).

1. For each topic, partitions without an owner go to the least loaded subscribers.
2. For each topic, partitions move from the most to the least loaded subscribers until the loads are even. A move can
   make the loads uneven again for a topic that step 2 visited before. So step 2 makes up to 16 passes over all topics.
   Step 2 ends earlier if one pass moves no partition.

Step 2 never moves partitions of two topics together. So the balance is only a local optimum. Steps 1 and 2 visit the
topics in descending order of partitions per subscriber. Members with equal loads are sorted by position, which is the
order of member ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from assignors.claims import NO_OWNER, Owners

MAX_ITERATION_COUNT = 16


class HeterogeneousAssignment:
    """One run of the heterogeneous algorithm.

    ``owners`` first contains the current target assignment. ``build`` changes it into the new target assignment.
    """

    def __init__(self, members: int, subscribers: Mapping[str, Sequence[int]], owners: Owners) -> None:
        self.subscribers = subscribers
        self.owners = owners
        counted = Counter(chain.from_iterable(owners.values()))
        self.sizes = [counted[member] for member in range(members)]
        # Topics with equal sort keys stay in the order of their names. The broker sorts them by topic id.
        self.topics = sorted(subscribers, key=self._partitions_per_subscriber)

    def build(self) -> Owners:
        """Run both steps."""
        for topic in self.topics:
            self._assign_unowned(topic)
        self._balance([topic for topic in self.topics if len(self.subscribers[topic]) > 1])
        return self.owners

    def _partitions_per_subscriber(self, topic: str) -> tuple[float, int]:
        subscribers = len(self.subscribers[topic])
        return -len(self.owners[topic]) / subscribers, subscribers

    def _assign_unowned(self, topic: str) -> None:
        owners = self.owners[topic]
        unowned = [number for number, owner in enumerate(owners) if owner == NO_OWNER]
        if not unowned:
            return
        loads = _SubscriberLoads(self.subscribers[topic], self.sizes)
        for number in unowned:
            owners[number] = loads.next_least_loaded()
            self.sizes[owners[number]] += 1

    def _balance(self, topics: Sequence[str]) -> None:
        last_moved = None  # the last topic with a move; if the loop reaches it again, no other topic had a move since
        for topic in chain.from_iterable([topics] * MAX_ITERATION_COUNT):
            if topic == last_moved:
                return
            if self._balance_topic(topic) or last_moved is None:
                last_moved = topic

    def _balance_topic(self, topic: str) -> bool:
        """Move partitions from the most to the least loaded subscribers. Returns whether any partition moved."""
        loads = _SubscriberLoads(self.subscribers[topic], self.sizes)
        if loads.imbalance <= 1:
            return False
        owners, moved = self.owners[topic], False
        giveable: dict[int, list[int]] = {}  # a member gives up its highest number first
        for number, owner in enumerate(owners):
            giveable.setdefault(owner, []).append(number)
        while (giver := loads.next_most_loaded_of(giveable)) is not None:
            number = giveable[giver].pop()
            taker = loads.next_least_loaded()
            if loads.balanced:
                break
            owners[number] = taker
            self.sizes[giver] -= 1
            self.sizes[taker] += 1
            moved = True
        return moved


class _SubscriberLoads:
    """Returns the least and the most loaded subscribers of a topic, one by one.

    Source: the balancer of ``UniformHeterogeneousAssignmentBuilder``.

    For each returned member, the caller moves one partition and updates ``sizes``. The subscribers are sorted by load.
    The *low range* contains the least loaded subscribers. All subscribers in the low range have the same load, the
    *level* of the range. Each subscriber in the low range gets one partition. Then the level of the low range increases
    by one. The low range then also includes the subscribers whose load was already equal to the new level. The *high
    range* contains the most loaded subscribers. After each of these subscribers has given one partition, the level of
    the high range decreases by one. The high range then grows like the low range. The two ranges *meet* when their
    levels differ by at most one.
    """

    def __init__(self, subscribers: Sequence[int], sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._members = sorted(subscribers, key=lambda member: (sizes[member], member))
        self._low_level = sizes[self._members[0]] - 1
        self._low_end = 0
        self._next_low = 0
        self._high_level = sizes[self._members[-1]] + 1
        self._high_start = self._high_end = len(self._members)
        self._next_high = len(self._members) - 1

    @property
    def imbalance(self) -> int:
        return self._sizes[self._members[-1]] - self._sizes[self._members[0]]

    @property
    def balanced(self) -> bool:
        return self._high_level - self._low_level <= 1

    def next_least_loaded(self) -> int:
        if self._next_low >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._members) and self._size_at(self._low_end) == self._low_level:
                self._low_end += 1
            self._next_low = 0
        self._next_low += 1
        return self._members[self._next_low - 1]

    def next_most_loaded_of(self, giveable: Mapping[int, Sequence[int]]) -> int | None:
        """Return the next member that is in the high range and can give a partition, or None if there is none.

        Also return None if the two ranges have met. A member that cannot give a partition is removed from the range.
        """
        while not self.balanced:
            place = self._next_most_loaded()
            if place is None:
                return None
            if giveable.get(self._members[place]):
                return self._members[place]
            self._high_end -= 1
            members = self._members
            members[place], members[self._high_end] = members[self._high_end], members[place]
        return None

    def _next_most_loaded(self) -> int | None:
        if self._next_high < self._high_start:
            if self._high_start and self._high_end <= self._high_start:
                self._high_level = self._size_at(self._high_start - 1)  # no member of the range could give a partition
            else:
                self._high_level -= 1
            while self._high_start and self._size_at(self._high_start - 1) == self._high_level:
                self._high_start -= 1
            self._next_high = self._high_end - 1
        if self._next_high < 0:
            return None
        self._next_high -= 1
        return self._next_high + 1

    def _size_at(self, place: int) -> int:
        return self._sizes[self._members[place]]
