"""Sticky assignment where subscriptions differ (KIP-54, the general algorithm).

Four steps, as ``AbstractStickyAssignor.GeneralAssignmentBuilder`` takes them:

1. Members keep what they own, are still subscribed to and, with racks, are near.
2. Every other partition goes to its least loaded subscriber; with racks, first to the least loaded that is near. Topics
   with few subscribers come first, as they leave the least choice.
3. Partitions move from a member to one with at least two fewer, until none can (``general_balance``).
4. If that did not balance better than step 2 had, it is undone: no move without a gain.

Members stand for themselves by their position in the order of member ids, which also decides between equal loads.
"""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heapreplace
from itertools import chain
from typing import TYPE_CHECKING

from assignors.claims import NOBODY
from assignors.sticky.general_balance import Balancer, balance_score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assignors.claims import Owners
    from assignors.model import TopicPartition
    from assignors.sticky.sticky_racks import StickyRacks


class GeneralAssignment:
    """One run of the algorithm; ``owners`` holds the claims before ``build`` and the answer after.

    ``subscribers`` maps each topic to the positions of its subscribers; ``earlier`` maps partitions to the member to
    prefer when they move (see ``claims.earlier_owners``).
    """

    def __init__(
        self,
        members: int,
        subscribers: Mapping[str, Sequence[int]],
        owners: Owners,
        racks: StickyRacks,
        earlier: Mapping[TopicPartition, int],
    ) -> None:
        # Python's sort is stable: topics with equally many subscribers stay in the order of their names.
        self.topics = sorted(subscribers, key=lambda topic: len(subscribers[topic]))
        self.members = members
        self.sizes = [0] * members
        self.subscribers = subscribers
        self.owners = owners
        self.racks = racks
        self.earlier = earlier

    def build(self) -> Owners:
        """Run the steps."""
        revoked = self._give_up_what_cannot_be_kept()
        owned = Counter(chain.from_iterable(self.owners.values()))
        self.sizes = [owned[member] for member in range(self.members)]
        from_scratch = not any(self.sizes)
        unassigned = {topic: _unowned(self.owners[topic]) for topic in self.topics}
        rest: Mapping[str, Sequence[int]] = unassigned
        if self.racks:
            rest = {topic: self._deal(topic, numbers, self.racks) for topic, numbers in unassigned.items()}
        for topic, numbers in rest.items():
            self._deal(topic, numbers, None)
        self._balance(unassigned, revoked=revoked, from_scratch=from_scratch)
        return self.owners

    def _give_up_what_cannot_be_kept(self) -> bool:
        """Take step 1; tell whether anything was given up."""
        revoked = False
        for topic, owners in self.owners.items():
            welcome = {NOBODY, *self.subscribers[topic]}
            if not self.racks and welcome.issuperset(owners):
                continue
            for number, owner in enumerate(owners):
                if owner not in welcome or not (owner == NOBODY or self.racks.near(owner, (topic, number))):
                    owners[number] = NOBODY
                    revoked = True
        return revoked

    def _deal(self, topic: str, numbers: Sequence[int], racks: StickyRacks | None) -> list[int]:
        """Take step 2 for one topic; return the numbers that no subscriber is near.

        Only subscribers of the topic change while it is dealt, so one heap a rack, (load, member), stays exact.
        """
        heaps = self._loads_by_rack(topic, racks) if numbers else {}
        owners = self.owners[topic]
        rest: list[int] = []
        for number in numbers:
            near = (None, *racks.partitions[topic][number]) if racks else (None,)
            candidates = [heaps[rack] for rack in near if rack in heaps]
            if not candidates:
                rest.append(number)
                continue
            heap = min(candidates)
            size, member = heap[0]
            heapreplace(heap, (size + 1, member))
            owners[number] = member
            self.sizes[member] = size + 1
        return rest

    def _loads_by_rack(self, topic: str, racks: StickyRacks | None) -> dict[str | None, list[tuple[int, int]]]:
        loads = [(self.sizes[member], member) for member in self.subscribers[topic]]
        if not racks:
            heapify(loads)
            return {None: loads}
        heaps: dict[str | None, list[tuple[int, int]]] = {}
        for load in sorted(loads):  # what is sorted is a heap
            heaps.setdefault(racks.members.get(load[1]), []).append(load)
        return heaps

    def _balance(self, unassigned: Mapping[str, Sequence[int]], *, revoked: bool, from_scratch: bool) -> None:
        """Take steps 3 and 4. Where nothing had to be given up, moving only what was unassigned is tried first."""
        movable = {topic: range(len(self.owners[topic])) for topic in self.topics if len(self.subscribers[topic]) > 1}
        involved = sorted(set(chain.from_iterable(self.subscribers[topic] for topic in movable)))
        before, score = {topic: list(self.owners[topic]) for topic in movable}, balance_score(self.sizes, involved)
        balancer = Balancer(self.subscribers, self.owners, self.sizes, self.earlier)
        if not revoked:
            balancer.balance({topic: unassigned[topic] for topic in movable})
        moved = balancer.balance(movable)
        if moved and not from_scratch and balance_score(self.sizes, involved) >= score:
            self.owners.update(before)


def _unowned(owners: Sequence[int]) -> list[int]:
    return [number for number, owner in enumerate(owners) if owner == NOBODY]
