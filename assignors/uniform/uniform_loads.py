"""The loads of a topic's subscribers, taken from both ends (``UniformHeterogeneousAssignmentBuilder``'s balancer).

Sorted by load, the subscribers form a skyline. A *range* of equally loaded ones at its low end is filled level by
level: each member in turn, then one level up, taking in those who were there already. A range at the high end is worn
down the same way. They have met when their levels differ by at most one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class SubscriberLoads:
    """Hands out members assuming that each takes, or gives, one partition; ``sizes`` must be kept in step meanwhile."""

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
        """How many more partitions the most loaded has than the least loaded, as of now."""
        return self._sizes[self._members[-1]] - self._sizes[self._members[0]]

    @property
    def balanced(self) -> bool:
        """Whether the two ranges have met."""
        return self._high_level - self._low_level <= 1

    def next_least_loaded(self) -> int:
        """Take the next member of the low range, going a level up after its last."""
        if self._next_low >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._members) and self._size_at(self._low_end) == self._low_level:
                self._low_end += 1
            self._next_low = 0
        self._next_low += 1
        return self._members[self._next_low - 1]

    def next_most_loaded_of(self, giveable: Mapping[int, Sequence[int]]) -> int | None:
        """Take the next member of the high range that has something to give; None when there is none or they have met.

        Members with nothing to give are put aside at the very end, outside the range.
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
                self._high_level = self._size_at(self._high_start - 1)  # the whole range was put aside
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
