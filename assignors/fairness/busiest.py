"""Computes the produce rate of the busiest member of an assignment.

1. The produce rate of a member is the sum of the produce rates of its partitions.
2. The result is None if the produce rate of an assigned partition is unknown.
3. The order of members and partitions does not change the result (``fsum``).
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assignors.model import GroupAssignment, TopicPartition


def busiest_rate(assignment: GroupAssignment, produce_rates: Mapping[TopicPartition, float]) -> float | None:
    """Return the produce rate of the busiest member, or None if the rate is unknown.

    >>> from assignors.model import GroupAssignment
    >>> assignment = GroupAssignment({"A": (("t", 0), ("t", 1)), "B": (("t", 2),), "C": ()})
    >>> busiest_rate(assignment, {("t", 0): 5.0, ("t", 1): 5.5, ("t", 2): 10.0})
    10.5
    >>> busiest_rate(assignment, {("t", 0): 5.0, ("t", 1): 5.5}) is None
    True
    """
    if any(partition not in produce_rates for held in assignment.members.values() for partition in held):
        return None
    of_members = (fsum(produce_rates[partition] for partition in held) for held in assignment.members.values())
    return max(of_members, default=0.0)
