"""Step 2 of the constrained algorithm: assigns partitions by rack (KIP-881).

Unlike ``ConstrainedAssignmentBuilder.assignRackAwareRoundRobin``, this module has a separate list of candidates for
each rack.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable

from assignors.model import TopicPartition
from assignors.sticky.constrained_quotas import Quotas
from assignors.sticky.sticky_racks import StickyRacks


def fill_by_rack(quotas: Quotas, racks: StickyRacks, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Assign each partition to a member in the same rack as a replica of the partition.

    Members below the quota come first. Members at the quota get one surplus partition each. Returns the partitions that
    are still unassigned.
    """
    below = _BelowQuota(quotas, racks)
    at_quota = _AtQuota(quotas, racks)
    rest = []
    for partition in partitions:
        near = racks.partitions[partition[0]][partition[1]]
        member = below.next(near)
        if member is not None:
            quotas.give(partition, member)
            if quotas.is_full(member):
                below.remove(member)
                at_quota.add(member)
        elif (member := at_quota.next(near)) is not None:
            quotas.give(partition, member)
        else:
            rest.append(partition)
    quotas.below_quota = below.members()
    return rest


class _BelowQuota:
    """The members below the quota, grouped by rack. They get partitions in round-robin order."""

    def __init__(self, quotas: Quotas, racks: StickyRacks) -> None:
        self._rack_of = racks.members
        self._all = quotas.below_quota
        self._by_rack: dict[str, list[int]] = {}
        self._removed: set[int] = set()
        self._next = 0
        for member in self._all:
            if member in self._rack_of:
                self._by_rack.setdefault(self._rack_of[member], []).append(member)

    def next(self, racks: Iterable[str]) -> int | None:
        """Return the next member in one of ``racks``. The next call continues after this member."""
        waiting = [members for rack in racks if (members := self._by_rack.get(rack))]
        if not waiting:
            return None
        places = [bisect_left(members, self._next) for members in waiting]
        ahead = [members[place] for members, place in zip(waiting, places, strict=True) if place < len(members)]
        member = min(ahead or (members[0] for members in waiting))
        self._next = member + 1
        return member

    def remove(self, member: int) -> None:
        members = self._by_rack[self._rack_of[member]]
        del members[bisect_left(members, member)]
        self._removed.add(member)

    def members(self) -> list[int]:
        return [member for member in self._all if member not in self._removed]


class _AtQuota:
    """The members at the quota, grouped by rack, in the order in which they reached the quota."""

    def __init__(self, quotas: Quotas, racks: StickyRacks) -> None:
        self._quotas = quotas
        self._rack_of = racks.members
        self._arrivals = 0
        self._by_rack: dict[str, deque[tuple[int, int]]] = {}
        for member in quotas.at_quota:
            self._queue(member)

    def add(self, member: int) -> None:
        if self._quotas.surplus:
            self._quotas.at_quota.append(member)
            self._queue(member)

    def next(self, racks: Iterable[str]) -> int | None:
        waiting = [queue for rack in racks if (queue := self._by_rack.get(rack))]
        if not waiting or not self._quotas.surplus:
            return None
        _, member = min(waiting, key=lambda queue: queue[0]).popleft()
        self._quotas.at_quota.remove(member)
        self._quotas.take_surplus()
        return member

    def _queue(self, member: int) -> None:
        rack = self._rack_of.get(member)
        if rack is not None:
            self._by_rack.setdefault(rack, deque()).append((self._arrivals, member))
            self._arrivals += 1
