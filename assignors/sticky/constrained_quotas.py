"""What the steps of the constrained algorithm share: what each member has so far, and who may still get more."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from assignors.model import TopicPartition


class Quotas:
    """Partitions given so far, members below and at the quota, and how many members may still exceed it.

    ``transferring`` maps each partition that changes hands to its new owner: the partitions a cooperative group must
    withhold. A contested one counts, as either claimant may still be consuming it.
    """

    def __init__(self, members: int, total_partitions: int, contested: Collection[TopicPartition]) -> None:
        self.quota, self.surplus = divmod(total_partitions, members)  # surplus: how many members may exceed the quota
        self.assigned: list[list[TopicPartition]] = [[] for _ in range(members)]
        self.below_quota: list[int] = []
        self.at_quota: deque[int] = deque()  # candidates for the surplus, in the order in which they get it
        self.transferring: dict[TopicPartition, int] = {}
        self._contested = contested
        self._revoked: dict[TopicPartition, int] = {}

    def revoke(self, partitions: Iterable[TopicPartition], owner: int) -> None:
        """Note partitions that their owner did not keep."""
        self._revoked.update(dict.fromkeys(partitions, owner))

    def give(self, partition: TopicPartition, member: int) -> None:
        """Assign a partition its member did not keep."""
        self.assigned[member].append(partition)
        if self._revoked.get(partition, member) != member or partition in self._contested:
            self.transferring[partition] = member

    def is_full(self, member: int) -> bool:
        """Whether a member has its quota."""
        return len(self.assigned[member]) == self.quota

    def take_surplus(self) -> None:
        """Count one member above the quota; after the last, no member at the quota is a candidate any more."""
        self.surplus -= 1
        if not self.surplus:
            self.at_quota.clear()
