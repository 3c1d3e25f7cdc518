"""Sticky assignment where all members subscribe to the same topics (KIP-54, the constrained algorithm).

With n members and p partitions every member gets p // n partitions, its *quota*, and p % n of them get one more, the
*surplus*. Three steps, as ``AbstractStickyAssignor.ConstrainedAssignmentBuilder`` takes them:

1. Members keep what they own, up to the quota; the first that own more keep one of the surplus too. With racks, what is
   in another rack is given up.
2. Only with racks: the rest goes round among the members that are near it.
3. What is left goes round among all members below the quota, then, one each, to members at the quota.

Members stand for themselves by their position in the order of member ids. Step 1 meets them in the order of ``scan``,
which decides who may keep one of the surplus.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from assignors.claims import NOBODY
from assignors.constrained_racks import fill_by_rack
from assignors.subscriptions import partitions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assignors.claims import Claims
    from assignors.model import TopicPartition
    from assignors.sticky_racks import StickyRacks


class ConstrainedAssignment:
    """One run of the algorithm; ``assigned`` and ``transferring`` hold the answer after ``build``.

    ``transferring`` maps each partition that changes hands to its new owner: the partitions a cooperative group must
    withhold. A contested one counts, as either claimant may still be consuming it.
    """

    def __init__(self, scan: Sequence[int], claims: Claims, racks: StickyRacks) -> None:
        members = len(scan)
        self.scan = scan
        self.claims = claims
        self.racks = racks
        total = sum(map(len, claims.owners.values()))
        self.quota, self.surplus = divmod(total, members)  # surplus: how many members may still exceed the quota
        self.assigned: list[list[TopicPartition]] = [[] for _ in range(members)]
        self.below_quota: list[int] = []
        self.at_quota: deque[int] = deque()  # candidates for the surplus, in the order in which they get it
        self.transferring: dict[TopicPartition, int] = {}
        self._revoked: dict[TopicPartition, int] = {}

    def build(self) -> ConstrainedAssignment:
        """Run the steps."""
        unassigned = self._keep_owned()
        self.below_quota.sort()
        self.at_quota = deque(sorted(self.at_quota))
        if self.racks:
            unassigned = fill_by_rack(self, self.racks.scarce_first(unassigned))
        self._fill(unassigned)
        return self

    def give(self, partition: TopicPartition, member: int) -> None:
        """Assign a partition its member did not keep."""
        self.assigned[member].append(partition)
        if self._revoked.get(partition, member) != member or partition in self.claims.contested:
            self.transferring[partition] = member

    def take_surplus(self) -> None:
        """Count one member above the quota; after the last, no member at the quota is a candidate any more."""
        self.surplus -= 1
        if not self.surplus:
            self.at_quota.clear()

    def _keep_owned(self) -> list[TopicPartition]:
        """Step 1. Returns what is left to assign, by topic and number."""
        owned, unassigned = self._owned_and_unowned()
        freed = len(unassigned)
        for member in self.scan:
            partitions = owned[member]
            kept = self._keep(member, partitions)
            self.assigned[member] = partitions[:kept]
            unassigned += partitions[kept:]
            self._revoked.update(dict.fromkeys(partitions[kept:], member))
        if len(unassigned) == freed:
            return unassigned
        position = {topic: place for place, topic in enumerate(self.claims.owners)}
        return sorted(unassigned, key=lambda partition: (position[partition[0]], partition[1]))

    def _owned_and_unowned(self) -> tuple[list[list[TopicPartition]], list[TopicPartition]]:
        """Split all partitions into what each member may keep and what nobody may, both by topic and number."""
        owned: list[list[TopicPartition]] = [[] for _ in self.assigned]
        unowned: list[TopicPartition] = []
        for topic, owners in self.claims.owners.items():
            for partition, owner in zip(partitions_of(topic, len(owners)), owners, strict=True):
                if owner == NOBODY or not self._may_keep(owner, partition):
                    unowned.append(partition)
                else:
                    owned[owner].append(partition)
        return owned, unowned

    def _may_keep(self, owner: int, partition: TopicPartition) -> bool:
        if self.racks and not self.racks.near(owner, partition):
            self._revoked[partition] = owner
            return False
        return not self.claims.contested or partition not in self.claims.contested

    def _keep(self, member: int, partitions: list[TopicPartition]) -> int:
        """Decide how many of its partitions the member keeps; the lowest numbers go first if not all."""
        if len(partitions) > self.quota:
            partitions.sort(key=lambda partition: partition[1])  # stable: equal numbers stay ordered by topic
        if len(partitions) < self.quota:
            self.below_quota.append(member)
            return len(partitions)
        if len(partitions) > self.quota and self.surplus:
            self.take_surplus()
            return self.quota + 1
        if self.surplus:
            self.at_quota.append(member)
        return self.quota

    def _fill(self, unassigned: list[TopicPartition]) -> None:
        """Step 3: round after round among the members below the quota, then the surplus."""
        partitions = iter(unassigned)
        while self.below_quota:
            still_below = []
            for member in self.below_quota:
                self.give(next(partitions), member)
                if len(self.assigned[member]) == self.quota:
                    self.at_quota.append(member)
                else:
                    still_below.append(member)
            self.below_quota = still_below
        for partition, member in zip(partitions, self.at_quota, strict=False):
            self.give(partition, member)
