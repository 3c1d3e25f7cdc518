"""Input and output types of every assignor, with Kafka's names.

The names come from ``org.apache.kafka.coordinator.group.api.assignor`` (KIP-848). The fields of a classic member come
from ``ConsumerPartitionAssignor.Subscription`` (KIP-429, KIP-792, KIP-881).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

TopicPartition = tuple[str, int]
ReplicaRacks = tuple[tuple[str | None, ...], ...]
"""One entry per partition, with the rack of each replica. A rack is None if the replica's broker has no rack."""

NO_GENERATION = -1
"""``AbstractStickyAssignor.DEFAULT_GENERATION``: the claim has no generation."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """The subscription that one member sent when it joined: topics, rack, and the partitions that it claims to own.

    ``generation_id`` is the generation of the claim. A ``sticky`` member sends its claim in the userData. Version 0 of
    the userData has no generation. ``Subscription.generationId`` in the JoinGroup request can be a different number. If
    it is different, ``subscription_generation`` has the number from the request. An empty rack means no rack, as in
    Java.

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
        """Return the generation of this claim for sticky and cooperative-sticky.

        Version 0 of the userData has no generation.
        """
        return self.generation_id if self.user_data_version > 0 else NO_GENERATION

    @property
    def rival_generation(self) -> int:
        """Return the generation that Java uses for this claim when a second member claims the same partition.

        This is the generation of the Subscription, not of the userData.
        """
        return self.generation_id if self.subscription_generation is None else self.subscription_generation


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """The complete input of an assignor: the members of a group and the metadata of their topics.

    ``members`` can have any order, because assignors sort them. A topic that is absent from ``partitions``, or has
    count 0, has no metadata. Its partitions are not assigned. A topic that is absent from ``racks`` has no rack
    information. ``lag_records`` is for custom strategies. No built-in strategy reads it. It is empty if lag was not
    sampled.

    Raises ValueError if two members have the same id, or if a partition count is negative.

    >>> GroupSpec((MemberSubscription("c0", ("t0",)),), {"t0": 3}).partition_count("t1")
    0
    """

    members: tuple[MemberSubscription, ...]
    partitions: Mapping[str, int]
    racks: Mapping[str, ReplicaRacks] = field(default_factory=dict)
    lag_records: Mapping[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for input that is impossible in a real group."""
        if len({member.member_id for member in self.members}) != len(self.members):
            raise ValueError("two members have the same member_id")
        if any(count < 0 for count in self.partitions.values()):
            raise ValueError("a partition count is negative")

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of ``topic``, or 0 if the topic has no metadata."""
        return self.partitions.get(topic, 0)

    def exists(self, partition: TopicPartition) -> bool:
        """Return whether the metadata contains this partition.

        If a topic was deleted, or was created again with fewer partitions, a claim can contain partitions that do not
        exist.
        """
        return 0 <= partition[1] < self.partitions.get(partition[0], 0)


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """The partitions of each member, sorted by (topic, partition). Contains every member, in UTF-16 order."""

    members: Mapping[str, tuple[TopicPartition, ...]]


class AssignorFailedError(Exception):
    """A strategy returned no valid assignment.

    `reason` is a short word for a report. The message of the error describes the failure.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class PartitionAssignor(Protocol):
    """A strategy: a name and a pure function. Corresponds to ``ConsumerPartitionAssignor`` without its callbacks."""

    @property
    def name(self) -> str:
        """Return the protocol name that members offer, for example ``range``."""
        ...

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign every partition of a subscribed, existing topic to one of its subscribers."""
        ...
