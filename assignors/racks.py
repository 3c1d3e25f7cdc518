"""When racks matter (KIP-881): the condition range and sticky share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assignors.model import GroupSpec, MemberSubscription


def member_rack(member: MemberSubscription) -> str | None:
    """Read a member's rack; an empty one counts as none."""
    return member.rack or None


def racks_of(group: GroupSpec, topic: str) -> list[frozenset[str]]:
    """Give the racks that hold a replica, one set for each partition; empty where the metadata says nothing.

    All replicas count, offline ones too: members do not rebalance when a replica comes back (KIP-881).

    >>> from assignors.model import GroupSpec
    >>> [sorted(racks) for racks in racks_of(GroupSpec((), {"t0": 2}, {"t0": (("a", "b", None),)}), "t0")]
    [['a', 'b'], []]
    """
    count = group.partition_count(topic)
    known = group.racks.get(topic, ())[:count]
    racks = [frozenset(rack for rack in replicas if rack is not None) for replicas in known]
    return racks + [frozenset()] * (count - len(racks))


def racks_matter(member_racks: Iterable[str | None], partition_racks: Iterable[frozenset[str]]) -> bool:
    """Tell whether an assignment can gain by racks: some member shares one, and not every partition has them all.

    Source: ``AbstractPartitionAssignor.useRackAwareAssignment``.

    >>> racks_matter(["a", None], [frozenset("ab"), frozenset("b")])
    True
    >>> racks_matter(["a"], [frozenset("ab"), frozenset("ab")])
    False
    """
    distinct = set(partition_racks)
    everywhere = frozenset().union(*distinct)
    return not everywhere.isdisjoint(rack for rack in member_racks if rack) and distinct != {everywhere}
