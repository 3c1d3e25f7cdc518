"""Sticky assignment for different subscriptions (KIP-54, the general algorithm).

The algorithm has the same four steps as ``AbstractStickyAssignor.GeneralAssignmentBuilder``:

1. A member keeps its partitions of the topics to which it still subscribes. If racks matter, a replica of the partition
   must also be in the member's rack.
2. Every other partition goes to its least loaded subscriber. If racks matter, subscribers in the same rack as a replica
   are preferred. Topics with few subscribers are assigned first, because their partitions have the fewest possible
   owners.
3. A partition moves to a subscriber that has at least two partitions fewer than the owner. Step 3 ends when no move
   improves the balance (``general_balance``).
4. If step 3 did not improve the balance, its moves are undone. If no member had a partition after step 1, the moves
   are never undone.

The code identifies a member by its position in the order of member ids. Members with equal loads are sorted by member
id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import chain

from assignors.claims import NO_OWNER, Owners
from assignors.model import TopicPartition
from assignors.sticky.general_balance import Balancer, balance_score
from assignors.sticky.sticky_racks import StickyRacks


class GeneralAssignment:
    """One run of the general algorithm.

    ``owners`` contains the owners according to the claims. ``build`` updates ``owners``. ``subscribers`` maps each
    topic to the positions of its subscribers. ``earlier`` contains the preferred new owners for the moves of step 3
    (see ``claims.find_earlier_owners``).
    """

    def __init__(
        self,
        members: int,
        subscribers: Mapping[str, Sequence[int]],
        owners: Owners,
        racks: StickyRacks,
        earlier: Mapping[TopicPartition, int],
    ) -> None:
        # Python's sort is stable. So topics with the same number of subscribers stay in the order of their names.
        self.topics = sorted(subscribers, key=lambda topic: len(subscribers[topic]))
        self.members = members
        self.sizes = [0] * members
        self.subscribers = subscribers
        self.owners = owners
        self.racks = racks
        self.earlier = earlier

    def build(self) -> Owners:
        """Run all steps."""
        revoked = self._revoke_invalid()
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

    def _revoke_invalid(self) -> bool:
        """Run step 1. Returns whether at least one member lost a partition."""
        revoked = False
        for topic, owners in self.owners.items():
            allowed = {NO_OWNER, *self.subscribers[topic]}
            if not self.racks and allowed.issuperset(owners):
                continue
            for number, owner in enumerate(owners):
                if owner not in allowed or not (owner == NO_OWNER or self.racks.near(owner, (topic, number))):
                    owners[number] = NO_OWNER
                    revoked = True
        return revoked

    def _deal(self, topic: str, numbers: Sequence[int], racks: StickyRacks | None) -> list[int]:
        """Run step 2 of the algorithm for one topic. Returns the numbers of the partitions that are still unassigned.

        Each rack has one heap of (load, member), and each subscriber is in one heap. An assignment changes only the
        first entry of one heap. So the heaps stay valid.
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
        for load in sorted(loads):  # a sorted list is a heap
            heaps.setdefault(racks.members.get(load[1]), []).append(load)
        return heaps

    def _balance(self, unassigned: Mapping[str, Sequence[int]], *, revoked: bool, from_scratch: bool) -> None:
        """Run steps 3 and 4 of the algorithm.

        If no member lost a partition in step 1, step 3 runs twice. The first run moves only partitions that step 2
        assigned.
        """
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
    return [number for number, owner in enumerate(owners) if owner == NO_OWNER]
