"""Step 3 of the general sticky algorithm: moves partitions until no move improves the balance.

Each pass visits all partitions in order. A partition moves if its owner has at least two more partitions than the least
loaded subscriber. It moves to this subscriber, or to the earlier owner of the partition. The earlier owner must also
have at least two fewer partitions than the present owner. The last pass is the first pass without a move.

Before every partition, ``AbstractStickyAssignor.performReassignments`` checks whether the whole group is balanced. This
check iterates over all members and partitions, so Java can take minutes. The check never changes the result, because no
partition moves in a balanced group. So this module omits the check. The partitions of one topic are visited together.
During this time only the loads of its subscribers change. So one heap per topic finds the least loaded subscriber
without a search.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from assignors.sticky.movements import TopicMovements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assignors.claims import Owners
    from assignors.model import TopicPartition


MAX_RETURN_PASSES = 100
"""Number of first passes in which any partition may return to its last owner (see ``movements``).

In later passes, a partition is sent back only if this move improves the balance, too. A partition that is sent back can
come from a third member with few partitions. Two such moves can undo each other forever. In Java this happens. If every
move improves the balance, the passes always end. If a group does not run forever in Java, it needs only few passes.
"""


class Balancer:
    """Moves partitions in ``owners`` and updates ``sizes``, the number of partitions of each member."""

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
        """Move partitions of ``movable`` (topic -> numbers) until a pass moves none. Returns whether any moved."""
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
                heappop(heap)  # outdated: the load of the member has changed since
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
        """Return the earlier owner if it has at most ``size`` - 2 partitions and still subscribes to the topic.

        Java does not check the subscription, and can assign the partition to a member that is not subscribed.
        """
        earlier = self.earlier.get((topic, number)) if self.earlier else None
        if earlier is None or size <= self.sizes[earlier] + 1 or earlier not in self.subscribers[topic]:
            return None
        return earlier

    def _move(self, topic: str, number: int, target: int) -> int:
        """Move the partition to ``target``, or instead move a partition that ``target`` gave up before.

        Returns the giver.
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
    """Return the sum of the size differences of all pairs of ``members``. 0 is perfect balance.

    In ascending order, each size is the larger one in a pair with every earlier size, and the smaller one in a pair
    with every later size.

    >>> balance_score([1, 4, 2], [0, 1, 2])
    6
    """
    ascending = sorted(sizes[member] for member in members)
    return sum(size * (2 * place - len(ascending) + 1) for place, size in enumerate(ascending))
