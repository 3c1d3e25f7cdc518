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
from itertools import chain
from typing import TYPE_CHECKING

from assignors.claims import NO_OWNER
from assignors.uniform.uniform_loads import SubscriberLoads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assignors.claims import Owners

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
        loads = SubscriberLoads(self.subscribers[topic], self.sizes)
        for number in unowned:
            owners[number] = loads.next_least_loaded()
            self.sizes[owners[number]] += 1

    def _balance(self, topics: Sequence[str]) -> None:
        last_moved = None  # the last topic with a move; if the loop reaches it again, no other topic had a move
        for topic in chain.from_iterable([topics] * MAX_ITERATION_COUNT):
            if topic == last_moved:
                return
            if self._balance_topic(topic) or last_moved is None:
                last_moved = topic

    def _balance_topic(self, topic: str) -> bool:
        """Move partitions from the most to the least loaded subscribers. Returns whether any partition moved."""
        loads = SubscriberLoads(self.subscribers[topic], self.sizes)
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
