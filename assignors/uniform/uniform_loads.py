"""Finds the least and the most loaded subscribers of a topic (the balancer of `UniformHeterogeneousAssignmentBuilder`).

The subscribers are sorted by load. The *low range* contains the least loaded subscribers. All subscribers in the low
range have the same load, the *level* of the range. Each subscriber in the low range gets one partition. Then the level
of the low range increases by one. The low range then also includes the subscribers whose load was already equal to the
new level. The *high range* contains the most loaded subscribers. After each of these subscribers has given one
partition, the level of the high range decreases by one. The high range then grows like the low range. The two ranges
*meet* when their levels differ by at most one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class SubscriberLoads:
    """Returns members one by one. For each returned member, the caller moves one partition and updates ``sizes``."""

    def __init__(self, subscribers: Sequence[int], sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._members = sorted(subscribers, key=lambda member: (sizes[member], member))
        self._low_level = sizes[self._members[0]] - 1
        self._low_end = 0
        self._next_low = 0
        self._high_level = sizes[self._members[-1]] + 1
        self._high_start = self._high_end = len(self._members)
        self._next_high = len(self._members) - 1

    @property
    def imbalance(self) -> int:
        """Return the current difference between the largest and the smallest load, in partitions."""
        return self._sizes[self._members[-1]] - self._sizes[self._members[0]]

    @property
    def balanced(self) -> bool:
        """Return whether the two ranges have met."""
        return self._high_level - self._low_level <= 1

    def next_least_loaded(self) -> int:
        """Return the next member of the low range. After a complete pass over the range, its level increases by one."""
        if self._next_low >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._members) and self._size_at(self._low_end) == self._low_level:
                self._low_end += 1
            self._next_low = 0
        self._next_low += 1
        return self._members[self._next_low - 1]

    def next_most_loaded_of(self, giveable: Mapping[int, Sequence[int]]) -> int | None:
        """Return the next member that is in the high range and can give a partition.

        Returns None if no member can give a partition, or if the ranges have met. If a member cannot give a partition,
        the method removes the member from the range.
        """
        while not self.balanced:
            place = self._next_most_loaded()
            if place is None:
                return None
            if giveable.get(self._members[place]):
                return self._members[place]
            self._high_end -= 1
            members = self._members
            members[place], members[self._high_end] = members[self._high_end], members[place]
        return None

    def _next_most_loaded(self) -> int | None:
        if self._next_high < self._high_start:
            if self._high_start and self._high_end <= self._high_start:
                self._high_level = self._size_at(self._high_start - 1)  # no member of the range could give
            else:
                self._high_level -= 1
            while self._high_start and self._size_at(self._high_start - 1) == self._high_level:
                self._high_start -= 1
            self._next_high = self._high_end - 1
        if self._next_high < 0:
            return None
        self._next_high -= 1
        return self._next_high + 1

    def _size_at(self, place: int) -> int:
        return self._sizes[self._members[place]]
