"""Which partitions of a topic moved from whom to whom, so that no two of them cross (KIP-54, stickiness)."""

from __future__ import annotations


class TopicMovements:
    """The movements so far of one topic's partitions (``AbstractStickyAssignor.PartitionMovements``).

    If partition 1 went from A to B and now partition 2 is to go from B to A, sending 1 back is as balanced and moves two
    partitions fewer.

    >>> movements = TopicMovements()
    >>> movements.record(1, giver=0, target=1)
    >>> movements.substitute(2, giver=1, target=0)
    1
    """

    def __init__(self) -> None:
        self._moved: dict[int, tuple[int, int]] = {}
        self._by_pair: dict[tuple[int, int], set[int]] = {}

    def substitute(self, number: int, giver: int, target: int) -> int:
        """Choose which partition to move so that ``target`` gets one more: ``number``, or one ``target`` gave up.

        Where several came from ``target``, Java takes the first its HashSet happens to give; we take the lowest.
        """
        source = self._moved[number][0] if number in self._moved else giver
        returning = self._by_pair.get((target, source))
        return min(returning) if returning else number

    def record(self, number: int, giver: int, target: int) -> None:
        """Note a movement; one that moved before keeps its first giver, one that is back where it was has not moved."""
        if number in self._moved:
            pair = self._moved.pop(number)
            self._by_pair[pair].remove(number)
            giver = pair[0]
        if giver != target:
            self._moved[number] = (giver, target)
            self._by_pair.setdefault((giver, target), set()).add(number)
