"""The input types and output types of all assignors.

The names of the types come from ``org.apache.kafka.coordinator.group.api.assignor`` (KIP-848). The fields of a classic
member come from ``ConsumerPartitionAssignor.Subscription`` (KIP-429, KIP-792, KIP-881).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

TopicPartition = tuple[str, int]
ReplicaRacks = tuple[tuple[str | None, ...], ...]
"""For each partition of a topic: the racks of its replicas. A rack is None if the broker of the replica has no rack."""

NO_GENERATION = -1
"""The value of a claim's generation if the claim has none (``AbstractStickyAssignor.DEFAULT_GENERATION``)."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """The subscription that a member sends when it joins: topics, rack, and the partitions that the member claims.

    ``generation_id`` is the generation of the claim. A ``sticky`` member sends its claim in the userData. Version 0 of
    the userData has no generation. ``subscription_generation`` is None if ``Subscription.generationId`` of the
    JoinGroup request is equal to ``generation_id``. An empty ``rack`` means that the member has no rack, as in Java.

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
        """Return the generation of this claim, or NO_GENERATION if the userData has version 0."""
        return self.generation_id if self.user_data_version > 0 else NO_GENERATION

    @property
    def rival_generation(self) -> int:
        """Return the generation that Java uses if it reads this claim before a rival's claim.

        The generation comes from the Subscription, not from the userData.
        """
        return self.generation_id if self.subscription_generation is None else self.subscription_generation


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """The complete input of an assignor: the members of a group and the metadata of their topics.

    ``members`` can be in any order, because assignors sort the members. ``partitions`` maps each topic to its partition
    count. A topic without metadata is missing in ``partitions`` or has the count 0. The partitions of a topic without
    metadata are not assigned. If ``racks`` does not contain a topic, the racks of this topic are unknown.
    ``lag_records`` is empty if the lag was not sampled. Only custom strategies read ``lag_records``.

    Raises ValueError if two members have the same id, or if a partition count is negative.

    >>> GroupSpec((MemberSubscription("c0", ("t0",)),), {"t0": 3}).partition_count("t1")
    0
    """

    members: tuple[MemberSubscription, ...]
    partitions: Mapping[str, int]
    racks: Mapping[str, ReplicaRacks] = field(default_factory=dict)
    lag_records: Mapping[TopicPartition, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError if the input is impossible for a real group."""
        if len({member.member_id for member in self.members}) != len(self.members):
            raise ValueError("two members have the same member_id")
        if any(count < 0 for count in self.partitions.values()):
            raise ValueError("a partition count is negative")

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of ``topic``, or 0 if the topic has no metadata."""
        return self.partitions.get(topic, 0)

    def exists(self, partition: TopicPartition) -> bool:
        """Return whether the metadata contains this partition.

        A claim can contain a partition that no longer exists, for example after the topic was deleted.
        """
        return 0 <= partition[1] < self.partitions.get(partition[0], 0)


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """The partitions of every member, sorted by (topic, partition). The members are sorted by id, in UTF-16 order."""

    members: Mapping[str, tuple[TopicPartition, ...]]


class AssignorFailedError(Exception):
    """Error: a strategy failed, or returned an invalid assignment.

    Reports show `reason`, which is a short word. The message of the error describes the failure.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class PartitionAssignor(Protocol):
    """A strategy: a name and a pure function.

    In Java, an assignor is a ``ConsumerPartitionAssignor`` without callbacks.
    """

    @property
    def name(self) -> str:
        """Return the protocol name of the strategy, for example ``range``."""
        ...

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign every partition of a subscribed, existing topic to one of its subscribers."""
        ...
