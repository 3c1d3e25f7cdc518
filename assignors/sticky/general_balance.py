"""Step 3 of the general sticky algorithm: moves partitions until no move improves the balance.

Each pass visits all partitions in order. A partition can move to a subscriber that has at least two partitions fewer
than the owner. The earlier owner has priority over the least loaded subscriber. The algorithm ends after the first pass
without a move.

Before Kafka's Java assignor visits a partition, it checks whether the group is balanced
(``AbstractStickyAssignor.performReassignments``). This check is slow and never changes the result, so this module omits
it. While a pass visits a topic, only the loads of the topic's subscribers change. So one heap per topic is sufficient
to find the least loaded subscriber.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from assignors.claims import Owners
from assignors.model import TopicPartition
from assignors.sticky.movements import TopicMovements

MAX_RETURN_PASSES = 100
"""After this number of passes, a partition returns to its first owner only if this move improves the balance.

The partition that returns can belong to a member with few partitions, so this move does not always improve the balance.
In Java, two such moves can undo each other in an endless loop. After MAX_RETURN_PASSES, every move improves the
balance, so the algorithm always ends. If Java's algorithm ends, it needs only a few passes.
"""


class Balancer:
    """Moves partitions. Updates ``owners`` and ``sizes`` (the number of partitions of each member)."""

    def __init__(
        self,
        subscribers: Mapping[str, Sequence[int]],
        owners: Owners,
        sizes: list[int],
        earlier: Mapping[TopicPartition, int],
    ) -> None:
        self.subscribers = subscribers
        self.owners = owners
        self.sizes = sizes
        self.earlier = earlier
        self._movements: dict[str, TopicMovements] = {}
        self._passes = 0

    def balance(self, movable: Mapping[str, Sequence[int]]) -> bool:
        """Move partitions of ``movable`` (topic -> numbers) until a pass moves no partition.

        Returns whether at least one partition moved.
        """
        moved = False
        while self._pass(movable):
            moved = True
        return moved

    def _pass(self, movable: Mapping[str, Sequence[int]]) -> bool:
        self._passes += 1
        moved = False
        for topic, numbers in movable.items():
            loads = list(map(self.sizes.__getitem__, self.subscribers[topic]))
            if max(loads) > min(loads) + 1:
                moved |= self._pass_over_topic(topic, numbers)
        return moved

    def _pass_over_topic(self, topic: str, numbers: Iterable[int]) -> bool:
        owners, sizes, moved = self.owners[topic], self.sizes, False
        heap = [(sizes[member], member) for member in self.subscribers[topic]]
        heapify(heap)
        for number in numbers:
            while heap[0][0] != sizes[heap[0][1]]:
                heappop(heap)  # outdated: the load of the member has changed
            size = sizes[owners[number]]
            target = self._earlier_owner(topic, number, size)
            if target is None and size > heap[0][0] + 1:
                target = heap[0][1]
            if target is not None:
                giver = self._move(topic, number, target)
                heappush(heap, (sizes[giver], giver))
                heappush(heap, (sizes[target], target))
                moved = True
        return moved

    def _earlier_owner(self, topic: str, number: int, size: int) -> int | None:
        """Return the earlier owner, or None if the partition cannot move to it.

        Java does not check whether the earlier owner subscribes to the topic.
        """
        earlier = self.earlier.get((topic, number)) if self.earlier else None
        if earlier is None or size <= self.sizes[earlier] + 1 or earlier not in self.subscribers[topic]:
            return None
        return earlier

    def _move(self, topic: str, number: int, target: int) -> int:
        """Move one partition to ``target``: ``number``, or the result of ``TopicMovements.substitute``.

        Returns the member that loses the partition.
        """
        movements = self._movements.get(topic)
        if movements is None:
            movements = self._movements[topic] = TopicMovements(topic)
        actual = movements.substitute(number, self.owners[topic][number], target)
        giver = self.owners[topic][actual]
        if self._passes > MAX_RETURN_PASSES and self.sizes[giver] <= self.sizes[target] + 1:
            actual, giver = number, self.owners[topic][number]
        movements.record(actual, giver, target)
        self.owners[topic][actual] = target
        self.sizes[giver] -= 1
        self.sizes[target] += 1
        return giver


def balance_score(sizes: Sequence[int], members: Iterable[int]) -> int:
    """Return the sum of the size differences of all pairs of ``members`` (0 is perfect balance).

    >>> balance_score([1, 4, 2], [0, 1, 2])
    6
    """
    ascending = sorted(sizes[member] for member in members)
    return sum(size * (2 * place - len(ascending) + 1) for place, size in enumerate(ascending))
