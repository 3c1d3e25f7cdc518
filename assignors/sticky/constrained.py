"""Sticky assignment for members that subscribe to the same topics (KIP-54, the constrained algorithm).

For n members and p partitions, the *quota* is p // n. Every member gets at least as many partitions as the quota. The
*surplus* is p % n: this number of members get one more partition each. The algorithm has the same three steps as
``AbstractStickyAssignor.ConstrainedAssignmentBuilder``:

1. Members keep the partitions that they own, up to the quota. A member that owns more than the quota keeps one more
   partition, as long as surplus remains. If racks matter, a member keeps only partitions with a replica in its rack.
2. If racks matter, each unassigned partition goes to a member in the same rack as one of its replicas. Members below
   the quota come first, in round-robin order. Members at the quota get one surplus partition each.
3. Members below the quota get the remaining partitions in round-robin order. After that, members at the quota get one
   surplus partition each.

The code identifies a member by its position in the order of member ids. Step 1 visits members in the order of ``scan``.
The order in ``scan`` decides which members keep a partition of the surplus.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from assignors.claims import NO_OWNER, Claims
from assignors.model import TopicPartition
from assignors.sticky.constrained_quotas import Quotas
from assignors.sticky.constrained_racks import fill_by_rack
from assignors.sticky.sticky_racks import StickyRacks
from assignors.subscriptions import partitions_of


class ConstrainedAssignment:
    """One run of the constrained algorithm. ``build`` returns the result."""

    def __init__(self, scan: Sequence[int], claims: Claims, racks: StickyRacks) -> None:
        self._scan = scan
        self._claims = claims
        self._racks = racks
        self._quotas = Quotas(len(scan), sum(map(len, claims.owners.values())), claims.contested)

    def build(self) -> Quotas:
        """Run all steps."""
        quotas = self._quotas
        unassigned = self._keep_owned()
        quotas.below_quota.sort()
        quotas.at_quota = deque(sorted(quotas.at_quota))
        if self._racks:
            unassigned = fill_by_rack(quotas, self._racks, self._racks.scarce_first(unassigned))
        self._fill(unassigned)
        return quotas

    def _keep_owned(self) -> list[TopicPartition]:
        """Run step 1. Returns the partitions that no member kept, sorted by topic and number."""
        owned, unassigned = self._owned_and_unowned()
        unowned = len(unassigned)
        for member in self._scan:
            partitions = owned[member]
            keep = self._partitions_to_keep(member, partitions)
            self._quotas.assigned[member] = partitions[:keep]
            unassigned += partitions[keep:]
            self._quotas.revoke(partitions[keep:], member)
        if len(unassigned) == unowned:
            return unassigned
        position = {topic: place for place, topic in enumerate(self._claims.owners)}
        return sorted(unassigned, key=lambda partition: (position[partition[0]], partition[1]))

    def _owned_and_unowned(self) -> tuple[list[list[TopicPartition]], list[TopicPartition]]:
        """Return the partitions that each member can keep, and all other partitions, sorted by topic and number."""
        owned: list[list[TopicPartition]] = [[] for _ in self._quotas.assigned]
        unowned: list[TopicPartition] = []
        for topic, owners in self._claims.owners.items():
            for partition, owner in zip(partitions_of(topic, len(owners)), owners, strict=True):
                if owner == NO_OWNER or not self._may_keep(owner, partition):
                    unowned.append(partition)
                else:
                    owned[owner].append(partition)
        return owned, unowned

    def _may_keep(self, owner: int, partition: TopicPartition) -> bool:
        if self._racks and not self._racks.near(owner, partition):
            self._quotas.revoke((partition,), owner)
            return False
        return not self._claims.contested or partition not in self._claims.contested

    def _partitions_to_keep(self, member: int, partitions: list[TopicPartition]) -> int:
        """Return how many partitions the member keeps.

        A member that owns more than the quota keeps the partitions with the lowest numbers. For this member, the method
        sorts ``partitions`` in place.
        """
        quotas = self._quotas
        if len(partitions) > quotas.quota:
            partitions.sort(key=lambda partition: partition[1])  # stable: equal numbers stay ordered by topic
        if len(partitions) < quotas.quota:
            quotas.below_quota.append(member)
            return len(partitions)
        if len(partitions) > quotas.quota and quotas.surplus:
            quotas.take_surplus()
            return quotas.quota + 1
        if quotas.surplus:
            quotas.at_quota.append(member)
        return quotas.quota

    def _fill(self, unassigned: list[TopicPartition]) -> None:
        quotas = self._quotas
        partitions = iter(unassigned)
        while quotas.below_quota:
            still_below: list[int] = []
            for member in quotas.below_quota:
                quotas.give(next(partitions), member)
                (quotas.at_quota if quotas.is_full(member) else still_below).append(member)
            quotas.below_quota = still_below
        for partition, member in zip(partitions, quotas.at_quota, strict=False):
            quotas.give(partition, member)
