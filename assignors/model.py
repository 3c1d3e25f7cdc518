"""The values every assignor reads and writes, in Kafka's own words.

Source: ``org.apache.kafka.coordinator.group.api.assignor`` (KIP-848) for the names, and
``ConsumerPartitionAssignor.Subscription`` (KIP-429, KIP-792, KIP-881) for what a classic member reports.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

TopicPartition = tuple[str, int]
ReplicaRacks = tuple[tuple[str | None, ...], ...]
"""One entry a partition, in it the rack of every replica; None where a broker has no rack."""

NO_GENERATION = -1
"""``AbstractStickyAssignor.DEFAULT_GENERATION``: the claim says of no generation that it was made there."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """What one member said when it joined: its topics, its rack, and the partitions it claims to own.

    ``generation_id`` is the generation of the claim. For ``sticky`` the claim travels in the userData, whose version 0
    has no generation, and the JoinGroup's own ``Subscription.generationId`` can differ from it:
    ``subscription_generation`` holds that number where it does. An empty rack counts as none, as in Java.

    >>> MemberSubscription("c0", ("t0",), owned=(("t0", 1),), generation_id=4).claim_generation
    4
    """

    member_id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    rack: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    user_data_version: int = 1
    subscription_generation: int | None = None

    @property
    def claim_generation(self) -> int:
        """The generation sticky and cooperative-sticky give this claim; version 0 of the userData has none."""
        return self.generation_id if self.user_data_version > 0 else NO_GENERATION

    @property
    def rival_generation(self) -> int:
        """What Java compares a later claimant of one partition with: the Subscription's number, not the userData's."""
        return self.generation_id if self.subscription_generation is None else self.subscription_generation


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """All an assignor may know of a group: its members and the metadata of their topics.

    ``members`` come in any order: assignors sort them. A topic that is absent from ``partitions``, or has count 0, has
    no metadata and is assigned to nobody. ``racks`` may miss topics; a missing one has no rack information.
    ``lag_records`` is read by no built-in strategy: it is there for custom ones, and empty where nothing was sampled.

    Raises ValueError for two members of one id and for a negative partition count: no group can have either.

    >>> GroupSpec((MemberSubscription("c0", ("t0",)),), {"t0": 3}).partition_count("t1")
    0
    """

    members: tuple[MemberSubscription, ...]
    partitions: Mapping[str, int]
    racks: Mapping[str, ReplicaRacks] = field(default_factory=dict)
    lag_records: Mapping[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what no group can have."""
        if len({member.member_id for member in self.members}) != len(self.members):
            raise ValueError("two members have the same member_id")
        if any(count < 0 for count in self.partitions.values()):
            raise ValueError("a partition count is negative")

    def partition_count(self, topic: str) -> int:
        """Count the partitions of ``topic``; 0 where there is no metadata."""
        return self.partitions.get(topic, 0)

    def exists(self, partition: TopicPartition) -> bool:
        """Tell whether the metadata has this partition (a shrunk or deleted topic leaves claims that name none)."""
        return 0 <= partition[1] < self.partitions.get(partition[0], 0)


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """Who gets what: every member is present, in UTF-16 order, its partitions sorted by (topic, partition)."""

    members: Mapping[str, tuple[TopicPartition, ...]]


class AssignorFailedError(Exception):
    """A strategy gave no lawful assignment. `reason` is a short word for a report; the message says what it did."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class PartitionAssignor(Protocol):
    """A strategy: a name and a pure function. Kafka's ``ConsumerPartitionAssignor`` without its callbacks."""

    @property
    def name(self) -> str:
        """The protocol name members offer, for instance ``range``."""
        ...

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign every partition of a subscribed, existing topic to one of its subscribers."""
        ...
