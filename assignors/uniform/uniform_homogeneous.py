"""Uniform where all members subscribe to the same topics (``UniformHomogeneousAssignmentBuilder``).

With n members and p partitions every member has a quota of p // n partitions, and p % n of them, the *extras*, have one
more. Members go by id:

1. A member keeps what it owns, by topic and number, up to its quota and one more while there are extras left.
2. An extra that a member cannot fill with what it owns is left to those after it, who may own more, unless they are no
   more than the extras left.
3. What is free then fills one member after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assignors.claims import NOBODY
from assignors.subscriptions import by_owner

if TYPE_CHECKING:
    from assignors.claims import Owners
    from assignors.model import TopicPartition


def assign_homogeneous(members: int, target: Owners) -> list[list[TopicPartition]]:
    """Assign all partitions of ``target``, the current owners: a list for each member, by position."""
    quota, extras = divmod(sum(map(len, target.values())), members)
    owned = by_owner(target)
    unassigned = owned.pop(NOBODY, [])
    assigned, rooms = [], []
    for position in range(members):
        partitions = owned.get(position, [])
        most = quota + (extras > 0)
        unassigned += partitions[most:]
        size = most if len(partitions) >= most or members - position <= extras else quota
        extras -= size - quota
        assigned.append(partitions[:most])
        rooms.append(size - len(partitions[:most]))
    start = 0
    for position, room in enumerate(rooms):
        assigned[position] += unassigned[start : start + room]
        start += room
    return assigned
