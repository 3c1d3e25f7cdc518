"""Racks as the sticky strategies see them (KIP-881; ``AbstractStickyAssignor.RackInfo``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assignors.racks import member_rack, racks_matter, racks_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assignors.model import GroupSpec, MemberSubscription, TopicPartition


@dataclass(frozen=True, slots=True)
class StickyRacks:
    """Racks by member position and of each partition's replicas; both empty where racks do not matter.

    Sticky asks once for the whole group whether they do, range once for each topic.
    """

    members: Mapping[int, str] = field(default_factory=dict)
    partitions: Mapping[str, Sequence[frozenset[str]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether racks matter for this group."""
        return bool(self.members)

    def near(self, member: int, partition: TopicPartition) -> bool:
        """Tell whether a replica is in the member's rack; a member without a rack is near everything."""
        rack = self.members.get(member)
        return rack is None or rack in self.partitions[partition[0]][partition[1]]

    def scarce_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Sort partitions by how many members are in a rack of theirs: who is near few members chooses first."""
        population: dict[str, int] = {}
        for rack in self.members.values():
            population[rack] = population.get(rack, 0) + 1
        near = {
            racks: sum(population.get(rack, 0) for rack in racks)
            for racks in {racks for of_topic in self.partitions.values() for racks in of_topic}
        }
        return sorted(partitions, key=lambda partition: near[self.partitions[partition[0]][partition[1]]])


def sticky_racks(group: GroupSpec, members: Sequence[MemberSubscription], topics: Sequence[str]) -> StickyRacks:
    """Read the racks of ``members`` and of the partitions of ``topics``, where they matter."""
    racks = {position: rack for position, member in enumerate(members) if (rack := member_rack(member))}
    if not racks:
        return StickyRacks()
    partitions = {topic: racks_of(group, topic) for topic in topics}
    if not racks_matter(racks.values(), (of_one for of_topic in partitions.values() for of_one in of_topic)):
        return StickyRacks()
    return StickyRacks(racks, partitions)
