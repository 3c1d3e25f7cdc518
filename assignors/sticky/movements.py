"""Prevents two partitions of a topic from moving in opposite directions between two members (KIP-54)."""

from __future__ import annotations

from assignors.java_hash import bucket, java_string_hash, table_size, topic_partition_hash


class TopicMovements:
    """The movements of the partitions of one topic (``AbstractStickyAssignor.PartitionMovements``).

    Example: partition 1 moved from A to B. Now partition 2 would move from B to A. Instead, partition 1 moves back to
    A. The balance is the same, and both partitions belong to their first owner.

    >>> movements = TopicMovements("t0")
    >>> movements.record(1, giver=0, target=1)
    >>> movements.substitute(2, giver=1, target=0)
    1
    """

    def __init__(self, topic: str) -> None:
        self._topic_hash = java_string_hash(topic)
        self._moved: dict[int, tuple[int, int]] = {}
        self._by_pair: dict[tuple[int, int], _MovedPartitions] = {}

    def substitute(self, number: int, giver: int, target: int) -> int:
        """Return the partition that moves to ``target``: ``number``, or a partition that returns to ``target``.

        A partition can return if it first belonged to ``target`` and now belongs to the first owner of ``number``. The
        first owner of ``number`` is not always ``giver``.
        """
        source = self._moved[number][0] if number in self._moved else giver
        returning = self._by_pair.get((target, source))
        return returning.first(self._topic_hash) if returning else number

    def record(self, number: int, giver: int, target: int) -> None:
        """Record a movement. If the partition moved before, its first owner stays the same.

        A partition that returns to its first owner is no longer recorded.
        """
        if number in self._moved:
            pair = self._moved.pop(number)
            self._by_pair[pair].remove(number)
            if not self._by_pair[pair].arrivals:
                del self._by_pair[pair]
            giver = pair[0]
        if giver != target:
            self._moved[number] = (giver, target)
            self._by_pair.setdefault((giver, target), _MovedPartitions()).add(number)


class _MovedPartitions:
    """Partitions that moved from the same first owner to the same new owner, in the order of Java's ``HashSet``."""

    def __init__(self) -> None:
        self.arrivals: dict[int, int] = {}
        self._arrived = 0
        self._table_size = 0

    def add(self, number: int) -> None:
        self.arrivals[number] = self._arrived
        self._arrived += 1
        self._table_size = max(self._table_size, table_size(len(self.arrivals)))  # Java's tables never shrink

    def remove(self, number: int) -> None:
        del self.arrivals[number]

    def first(self, topic_hash: int) -> int:
        def place(number: int) -> tuple[int, int]:
            return bucket(topic_partition_hash(topic_hash, number), self._table_size), self.arrivals[number]

        return min(self.arrivals, key=place)
