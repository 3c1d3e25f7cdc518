"""Racks of members and partitions for the sticky strategies (KIP-881; ``AbstractStickyAssignor.RackInfo``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assignors.model import GroupSpec, MemberSubscription, TopicPartition
from assignors.racks import member_rack, racks_matter, racks_of


@dataclass(frozen=True, slots=True)
class StickyRacks:
    """The rack of each member (by position), and the racks of each partition's replicas.

    Both fields are empty if racks do not matter. In sticky, racks matter either for all topics of the group or for no
    topic.
    """

    members: Mapping[int, str] = field(default_factory=dict)
    partitions: Mapping[str, Sequence[frozenset[str]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether racks matter for this group."""
        return bool(self.members)

    def near(self, member: int, partition: TopicPartition) -> bool:
        """Return True if a replica of the partition is in the member's rack, or if the member has no rack."""
        rack = self.members.get(member)
        return rack is None or rack in self.partitions[partition[0]][partition[1]]

    def scarce_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Sort partitions by their number of near members, fewest first.

        A near member is in the same rack as a replica of the partition.
        """
        population: dict[str, int] = {}
        for rack in self.members.values():
            population[rack] = population.get(rack, 0) + 1
        near = {
            racks: sum(population.get(rack, 0) for rack in racks)
            for racks in {racks for of_topic in self.partitions.values() for racks in of_topic}
        }
        return sorted(partitions, key=lambda partition: near[self.partitions[partition[0]][partition[1]]])


def sticky_racks(group: GroupSpec, members: Sequence[MemberSubscription], topics: Sequence[str]) -> StickyRacks:
    """Return the racks of ``members`` and of the partitions of ``topics``.

    Both results are empty if racks do not matter.
    """
    racks = {position: rack for position, member in enumerate(members) if (rack := member_rack(member))}
    if not racks:
        return StickyRacks()
    partitions = {topic: racks_of(group, topic) for topic in topics}
    if not racks_matter(racks.values(), (of_one for of_topic in partitions.values() for of_one in of_topic)):
        return StickyRacks()
    return StickyRacks(racks, partitions)
