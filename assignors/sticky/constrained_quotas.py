"""The state that all steps of the constrained algorithm share: the partitions of each member, and the quota."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from assignors.model import TopicPartition


class Quotas:
    """The partitions assigned so far, the members below the quota, the members at the quota, and the remaining surplus.

    ``transferring`` contains the new owner of each partition whose owner changes. A cooperative strategy assigns a
    partition in ``transferring`` only after the old owner has revoked the partition. A contested partition is always in
    ``transferring``, because two members may still consume the partition.
    """

    def __init__(self, members: int, total_partitions: int, contested: Collection[TopicPartition]) -> None:
        self.quota, self.surplus = divmod(total_partitions, members)  # surplus: how many members can exceed the quota
        self.assigned: list[list[TopicPartition]] = [[] for _ in range(members)]
        self.below_quota: list[int] = []
        self.at_quota: deque[int] = deque()  # candidates for the surplus, in the order in which they get it
        self.transferring: dict[TopicPartition, int] = {}
        self._contested = contested
        self._revoked: dict[TopicPartition, int] = {}

    def revoke(self, partitions: Iterable[TopicPartition], owner: int) -> None:
        """Record that ``owner`` loses the partitions."""
        self._revoked.update(dict.fromkeys(partitions, owner))

    def give(self, partition: TopicPartition, member: int) -> None:
        """Assign a partition that no member kept."""
        self.assigned[member].append(partition)
        if self._revoked.get(partition, member) != member or partition in self._contested:
            self.transferring[partition] = member

    def is_full(self, member: int) -> bool:
        """Return whether the member has exactly as many partitions as the quota."""
        return len(self.assigned[member]) == self.quota

    def take_surplus(self) -> None:
        """Reduce the surplus by 1. If no surplus remains, remove all members from ``at_quota``."""
        self.surplus -= 1
        if not self.surplus:
            self.at_quota.clear()
