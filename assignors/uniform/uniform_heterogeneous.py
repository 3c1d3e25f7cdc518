"""Uniform where subscriptions differ (``UniformHeterogeneousAssignmentBuilder``).

1. Partitions nobody has go, topic by topic, to the least loaded subscribers.
2. Topic by topic, partitions move from the most to the least loaded subscribers until they differ by at most one. That
can
   unbalance a topic seen before, so it is repeated, at most 16 times over all topics; a whole round without a move ends
   it.

Step 2 looks at one topic at a time, so it finds no chain of moves through a third member: balance is a local optimum.
Topics go by partitions per subscriber, most first: they need the most room. Members go by position, in the order of
ids.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from assignors.claims import NOBODY
from assignors.uniform.uniform_loads import SubscriberLoads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assignors.claims import Owners

MAX_ITERATION_COUNT = 16


class HeterogeneousAssignment:
    """One run of the algorithm; ``owners`` holds the current target before ``build`` and the new one after."""

    def __init__(self, members: int, subscribers: Mapping[str, Sequence[int]], owners: Owners) -> None:
        self.subscribers = subscribers
        self.owners = owners
        counted = Counter(chain.from_iterable(owners.values()))
        self.sizes = [counted[member] for member in range(members)]
        # Topics come in the order of their names, which stands for that of their ids and decides what is still equal.
        self.topics = sorted(subscribers, key=self._partitions_per_subscriber)

    def build(self) -> Owners:
        """Run the steps."""
        for topic in self.topics:
            self._assign_unowned(topic)
        self._balance([topic for topic in self.topics if len(self.subscribers[topic]) > 1])
        return self.owners

    def _partitions_per_subscriber(self, topic: str) -> tuple[float, int]:
        subscribers = len(self.subscribers[topic])
        return -len(self.owners[topic]) / subscribers, subscribers

    def _assign_unowned(self, topic: str) -> None:
        owners = self.owners[topic]
        unowned = [number for number, owner in enumerate(owners) if owner == NOBODY]
        if not unowned:
            return
        loads = SubscriberLoads(self.subscribers[topic], self.sizes)
        for number in unowned:
            owners[number] = loads.next_least_loaded()
            self.sizes[owners[number]] += 1

    def _balance(self, topics: Sequence[str]) -> None:
        last_moved = None  # the topic balanced last; to come round to it again means that nothing moved since
        for topic in chain.from_iterable([topics] * MAX_ITERATION_COUNT):
            if topic == last_moved:
                return
            if self._balance_topic(topic) or last_moved is None:
                last_moved = topic

    def _balance_topic(self, topic: str) -> bool:
        """Move partitions from the most to the least loaded subscribers; tell whether any moved."""
        loads = SubscriberLoads(self.subscribers[topic], self.sizes)
        if loads.imbalance <= 1:
            return False
        owners, moved = self.owners[topic], False
        giveable: dict[int, list[int]] = {}  # a member gives up its highest number first, and none it got here
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
