"""Moving partitions until no move helps: the third step of the general sticky algorithm.

Pass after pass over the partitions, in order: one whose owner has at least two more than its least loaded subscriber
moves there, or to its earlier owner if that one has at least two fewer as well. A pass without a move ends it.

``AbstractStickyAssignor.performReassignments`` asks before every partition whether the whole group is balanced, which
takes a walk over all members and partitions and makes Java take minutes. That question never changes the answer: where
it says yes no move qualifies. And a topic's partitions follow one another in the order, with only its subscribers
changing meanwhile, so a heap for each topic finds the least loaded without a search.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from assignors.sticky.movements import TopicMovements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assignors.claims import Owners
    from assignors.model import TopicPartition


PATIENT_PASSES = 100
"""From then on a partition is not sent back (see ``movements``) unless that balances too.

Sending one back can take it from a third member that is hardly loaded; two such moves can undo each other for ever, and
in Java they may. Moves that each balance come to an end. Groups that do come to an end need a handful of passes.
"""


class Balancer:
    """Moves partitions in ``owners`` and keeps ``sizes``, the number each member has, in step."""

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
        """Move partitions among ``movable`` (topic -> numbers) until a pass moves none; tell whether any moved."""
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
                heappop(heap)  # stale: the member's load changed after this was pushed
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
        """Find the earlier owner, if it has at least two fewer than ``size`` and may have the partition at all.

        Java does not ask whether it is still subscribed, and can leave the partition with a member that is not.
        """
        earlier = self.earlier.get((topic, number)) if self.earlier else None
        if earlier is None or size <= self.sizes[earlier] + 1 or earlier not in self.subscribers[topic]:
            return None
        return earlier

    def _move(self, topic: str, number: int, target: int) -> int:
        """Give ``target`` the partition, or one that came from it the other way; return who gave it."""
        movements = self._movements.get(topic)
        if movements is None:
            movements = self._movements[topic] = TopicMovements(topic)
        actual = movements.substitute(number, self.owners[topic][number], target)
        giver = self.owners[topic][actual]
        if self._passes > PATIENT_PASSES and self.sizes[giver] <= self.sizes[target] + 1:
            actual, giver = number, self.owners[topic][number]
        movements.record(actual, giver, target)
        self.owners[topic][actual] = target
        self.sizes[giver] -= 1
        self.sizes[target] += 1
        return giver


def balance_score(sizes: Sequence[int], members: Iterable[int]) -> int:
    """Sum the differences in size over all pairs of ``members``; 0 is perfect balance.

    In ascending order a size is the larger of a pair with everything before it and the smaller with everything after.

    >>> balance_score([1, 4, 2], [0, 1, 2])
    6
    """
    ascending = sorted(sizes[member] for member in members)
    return sum(size * (2 * place - len(ascending) + 1) for place, size in enumerate(ascending))
