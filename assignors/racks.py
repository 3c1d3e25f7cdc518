"""Decides whether racks have an effect on an assignment (KIP-881). Range and sticky use the same condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assignors.model import GroupSpec, MemberSubscription


def member_rack(member: MemberSubscription) -> str | None:
    """Return the rack of a member, or None if it is missing or empty."""
    return member.rack or None


def racks_of(group: GroupSpec, topic: str) -> list[frozenset[str]]:
    """Return the racks of the replicas of each partition, one set per partition.

    A set is empty if the metadata has no racks for the partition. Offline replicas count, too, because the group does
    not rebalance when a replica comes back (KIP-881).

    >>> from assignors.model import GroupSpec
    >>> [sorted(racks) for racks in racks_of(GroupSpec((), {"t0": 2}, {"t0": (("a", "b", None),)}), "t0")]
    [['a', 'b'], []]
    """
    count = group.partition_count(topic)
    known = group.racks.get(topic, ())[:count]
    racks = [frozenset(rack for rack in replicas if rack is not None) for replicas in known]
    return racks + [frozenset()] * (count - len(racks))


def racks_matter(member_racks: Iterable[str | None], partition_racks: Iterable[frozenset[str]]) -> bool:
    """Return whether racks can improve an assignment.

    Two conditions must be true. At least one member is in the rack of a replica. At least two partitions have replicas
    in different sets of racks. Source: ``AbstractPartitionAssignor.useRackAwareAssignment``.

    >>> racks_matter(["a", None], [frozenset("ab"), frozenset("b")])
    True
    >>> racks_matter(["a"], [frozenset("ab"), frozenset("ab")])
    False
    """
    distinct = set(partition_racks)
    everywhere = frozenset().union(*distinct)
    return not everywhere.isdisjoint(rack for rack in member_racks if rack) and distinct != {everywhere}
