"""The uniform strategy for members that subscribe to the same topics (``UniformHomogeneousAssignmentBuilder``).

With n members and p partitions, the quota of each member is p // n partitions. In addition, p % n members get one more
partition each, an *extra*. The algorithm visits the members in the order of ids:

1. A member keeps the partitions that it owns, in the order of topic and number, up to its quota. A member that owns
   more than the quota keeps one more partition, as long as extras remain.
2. Any other member gets an extra only if enough extras remain for this member and all later members. Otherwise, the
   extras remain for later members that own more than the quota.
3. The remaining partitions go to the first member until it is full, and then to the next member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assignors.claims import NO_OWNER
from assignors.subscriptions import by_owner

if TYPE_CHECKING:
    from assignors.claims import Owners
    from assignors.model import TopicPartition


def assign_homogeneous(members: int, target: Owners) -> list[list[TopicPartition]]:
    """Assign all partitions. ``target`` is the current target assignment.

    Returns one list of partitions per member, in the order of positions.
    """
    quota, extras = divmod(sum(map(len, target.values())), members)
    owned = by_owner(target)
    unassigned = owned.pop(NO_OWNER, [])
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
