"""Provides typed views of the records of KIP-848 consumer groups, KIP-932 share groups and KIP-1071 streams groups.

A consumer, share or streams group has several records. Some records contain an epoch of the group. Other records
contain the metadata, the target assignment or the current assignment of one member. Sources: the record schemas of
Kafka 4.2. ``GroupMetadataManager.replay`` and ``MemberState`` define the meaning of the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

IdPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""(topic id, partitions) pairs, in the same order as in the record. The records have no topic names."""

STABLE_MEMBER: Final = "Stable"
UNREVOKED_MEMBER: Final = "UnrevokedPartitions"
UNKNOWN_MEMBER_STATE: Final = "Unknown"
UNRELEASED_MEMBER: Final = "UnreleasedPartitions"
UNRELEASED_STREAMS_MEMBER: Final = "UnreleasedTasks"
_MEMBER_STATES: Final = {0: STABLE_MEMBER, 1: UNREVOKED_MEMBER, 2: UNRELEASED_MEMBER}
_STREAMS_MEMBER_STATES: Final = {1: STABLE_MEMBER, 2: "UnrevokedTasks", 3: UNRELEASED_STREAMS_MEMBER}
"""Streams groups have a different ``MemberState``, whose numbers start at 1."""


@dataclass(frozen=True, slots=True)
class ClassicProtocols:
    """The session timeout and protocols of a member that uses the classic protocol in a KIP-848 group."""

    session_timeout_ms: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModernMember:
    """The metadata of a member.

    ``subscribed_topics`` contains the topic names in the subscription. A regular expression has no topic names, and the
    topics of streams members are in the topology. ``rebalance_timeout_ms`` is None in share groups. If
    ``server_assignor`` is None, the coordinator chooses the assignor.
    """

    group_instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topics: tuple[str, ...]
    subscribed_regex: str | None
    rebalance_timeout_ms: int | None
    server_assignor: str | None
    classic: ClassicProtocols | None


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """The current assignment of a member, and its progress towards the target assignment.

    In the state ``UnrevokedPartitions`` (``UnrevokedTasks``), a member must first revoke partitions. In the state
    ``UnreleasedPartitions`` (``UnreleasedTasks``), it waits for partitions that other members must release. ``Unknown``
    means that Kafka 4.2 does not define the state number. ``assigned`` contains the partitions that the member may
    consume. ``pending_revocation`` contains the partitions that it must still revoke. Both are empty for streams
    members, which have tasks. In a coordinator's description, ``previous_member_epoch`` and ``pending_revocation`` are
    None.
    """

    member_epoch: int
    previous_member_epoch: int | None
    state: str
    assigned: IdPartitions
    pending_revocation: IdPartitions | None


def modern_member(value: Mapping[str, Any]) -> ModernMember:
    """Return the member metadata in a record of a consumer, share or streams group."""
    classic = None
    if (fields := value.get("classicMemberMetadata")) is not None:
        names = tuple(protocol["name"] for protocol in fields["supportedProtocols"])
        classic = ClassicProtocols(fields["sessionTimeoutMs"], names)
    return ModernMember(
        group_instance_id=value.get("instanceId"),
        rack_id=value.get("rackId") or None,
        client_id=value["clientId"],
        client_host=value["clientHost"],
        subscribed_topics=tuple(value.get("subscribedTopicNames", ())),
        subscribed_regex=value.get("subscribedTopicRegex") or None,
        rebalance_timeout_ms=value.get("rebalanceTimeoutMs"),
        server_assignor=value.get("serverAssignor"),
        classic=classic,
    )


def member_assignment(value: Mapping[str, Any]) -> MemberAssignment:
    """Return the current assignment in a record of a consumer, share or streams group."""
    states = _STREAMS_MEMBER_STATES if "activeTasks" in value else _MEMBER_STATES
    return MemberAssignment(
        member_epoch=value["memberEpoch"],
        previous_member_epoch=value["previousMemberEpoch"],
        state=states.get(value["state"], UNKNOWN_MEMBER_STATE),
        assigned=id_partitions(value.get("assignedPartitions", ())),
        pending_revocation=id_partitions(value.get("partitionsPendingRevocation", ())),
    )


def id_partitions(topic_partitions: Iterable[Mapping[str, Any]]) -> IdPartitions:
    """Return topic ids with their partitions, in the order of the record.

    >>> id_partitions([{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [0, 2]}])
    (('AAAAAAAAAAAAAAAAAAAAAQ', (0, 2)),)
    """
    return tuple((one["topicId"], tuple(one["partitions"])) for one in topic_partitions)
