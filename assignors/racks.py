"""Decides whether racks have an effect on an assignment (KIP-881). The range and sticky strategies use this module."""

from __future__ import annotations

from collections.abc import Iterable

from assignors.model import GroupSpec, MemberSubscription


def member_rack(member: MemberSubscription) -> str | None:
    """Return the rack of a member, or None if the rack is missing or empty."""
    return member.rack or None


def racks_of(group: GroupSpec, topic: str) -> list[frozenset[str]]:
    """Return one set per partition of the topic: the racks of the partition's replicas.

    A set is empty if the metadata has no racks for the partition. The set includes the racks of offline replicas,
    because no rebalance follows when a replica is online again (KIP-881).

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

    Racks matter only if a member is in the same rack as a replica, and if at least two partitions have different sets
    of racks. Source: ``AbstractPartitionAssignor.useRackAwareAssignment``.

    >>> racks_matter(["a", None], [frozenset("ab"), frozenset("b")])
    True
    >>> racks_matter(["a"], [frozenset("ab"), frozenset("ab")])
    False
    """
    distinct = set(partition_racks)
    everywhere = frozenset().union(*distinct)
    return not everywhere.isdisjoint(rack for rack in member_racks if rack) and distinct != {everywhere}
