"""Typed views of what one record says about a group whose assignment the coordinator makes.

KIP-848 consumer groups, KIP-932 share groups and KIP-1071 streams groups are spread over several records each: an
epoch, and for every member its metadata, its target and what it has now. Source: the record schemas, and for their
meaning ``GroupMetadataManager.replay`` and ``MemberState`` of Kafka 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ClassicProtocols", "IdPartitions", "MemberAssignment", "ModernMember", "id_partitions"]

IdPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""(topic id, partitions) pairs, in the record's order. These records name topics by id only."""

STABLE_MEMBER: Final = "Stable"
UNREVOKED_MEMBER: Final = "UnrevokedPartitions"
UNKNOWN_MEMBER_STATE: Final = "Unknown"
_MEMBER_STATES: Final = {0: STABLE_MEMBER, 1: UNREVOKED_MEMBER, 2: "UnreleasedPartitions"}
_STREAMS_MEMBER_STATES: Final = {1: STABLE_MEMBER, 2: "UnrevokedTasks", 3: "UnreleasedTasks"}
"""Streams groups have a ``MemberState`` of their own, which counts from 1."""


@dataclass(frozen=True, slots=True)
class ClassicProtocols:
    """What a member that still speaks the classic protocol brought into a KIP-848 group."""

    session_timeout_ms: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModernMember:
    """A member as it described itself.

    Attributes:
        subscribed_topics: the names it gave; empty where it gave a regular expression, and for streams members, whose
            topics are the topology's.
        rebalance_timeout_ms: None in share groups, which have none.
        server_assignor: the assignor it asked for, None where it left the choice to the coordinator.
        classic: set where the member speaks the classic protocol in a KIP-848 group.

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
    """What a member has now, and how far it is on its way to its target.

    Attributes:
        state: ``Stable``, ``UnrevokedPartitions`` (has to give some up first), ``UnreleasedPartitions`` (waits for
            others to give some up), or ``Unknown`` for a number this version of Kafka does not know. For streams
            members ``...Tasks``.
        previous_member_epoch: None in a coordinator's description, which does not tell it.
        assigned: what it may consume; empty for streams members, whose tasks are not partitions of one topic.
        pending_revocation: what it was told to give up and has not yet; None as above.

    """

    member_epoch: int
    previous_member_epoch: int | None
    state: str
    assigned: IdPartitions
    pending_revocation: IdPartitions | None


def modern_member(value: Mapping[str, Any]) -> ModernMember:
    """The member metadata of a consumer, share or streams group's record."""
    classic = value.get("classicMemberMetadata")
    return ModernMember(
        group_instance_id=value.get("instanceId"),
        rack_id=value.get("rackId") or None,
        client_id=value["clientId"],
        client_host=value["clientHost"],
        subscribed_topics=tuple(value.get("subscribedTopicNames", ())),
        subscribed_regex=value.get("subscribedTopicRegex") or None,
        rebalance_timeout_ms=value.get("rebalanceTimeoutMs"),
        server_assignor=value.get("serverAssignor"),
        classic=None if classic is None else _classic_protocols(classic),
    )


def _classic_protocols(fields: Mapping[str, Any]) -> ClassicProtocols:
    return ClassicProtocols(
        fields["sessionTimeoutMs"], tuple(protocol["name"] for protocol in fields["supportedProtocols"])
    )


def member_assignment(value: Mapping[str, Any]) -> MemberAssignment:
    """The current assignment of a consumer, share or streams group's record."""
    states = _STREAMS_MEMBER_STATES if "activeTasks" in value else _MEMBER_STATES
    return MemberAssignment(
        member_epoch=value["memberEpoch"],
        previous_member_epoch=value["previousMemberEpoch"],
        state=states.get(value["state"], UNKNOWN_MEMBER_STATE),
        assigned=id_partitions(value.get("assignedPartitions", ())),
        pending_revocation=id_partitions(value.get("partitionsPendingRevocation", ())),
    )


def id_partitions(topic_partitions: Iterable[Mapping[str, Any]]) -> IdPartitions:
    """Topic ids with their partitions, as the record has them.

    >>> id_partitions([{"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [0, 2]}])
    (('AAAAAAAAAAAAAAAAAAAAAQ', (0, 2)),)
    """
    return tuple((one["topicId"], tuple(one["partitions"])) for one in topic_partitions)
