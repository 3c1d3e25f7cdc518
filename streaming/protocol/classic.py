"""Typed view of a classic group's GroupMetadata record, with each member's subscription and assignment decoded.

Source: ``GroupMetadataValue.json``, ``ConsumerProtocol``, and for the meaning of absent fields
``GroupMetadataManager.replay``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streaming.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_GENERATION,
    decode_assignment,
    decode_subscription,
    sticky_user_data,
    topic_partitions,
)
from streaming.protocol.errors import UndecodableRecord
from streaming.protocol.records import RecordType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streaming.protocol.records import DecodedRecord

__all__ = [
    "Assignment",
    "ClassicMember",
    "GroupMetadata",
    "Subscription",
    "assignment_of",
    "group_metadata",
    "sticky_user_data",
    "subscription_of",
]


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member said when it joined (``ConsumerPartitionAssignor.Subscription``).

    Attributes:
        version: as on the wire; above 3 it was read as 3.
        owned: (topic, partition) pairs the member claims to own; empty before version 1.
        generation_id: the generation of that claim, -1 where unknown or before version 2.
        rack_id: None where null, empty, or before version 3.

    """

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None
    owned: tuple[tuple[str, int], ...]
    generation_id: int
    rack_id: str | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the group's leader gave a member (``ConsumerPartitionAssignor.Assignment``), pairs in wire order."""

    version: int
    partitions: tuple[tuple[str, int], ...]
    user_data: bytes | None


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """A member of a classic group.

    Attributes:
        rebalance_timeout_ms: the session timeout where the record has none (-1, or before version 1), as the
            coordinator takes it on replay. None, as the session timeout, where no record was read (DescribeGroups).
        subscription, assignment: None where their bytes are empty, or opaque because the group's protocol type is not
            ``consumer``.

    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int | None
    session_timeout_ms: int | None
    subscription: Subscription | None
    assignment: Assignment | None


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A classic group as one record shows it, or as its coordinator describes it.

    Attributes:
        generation_id, value_version: None in a description, which names neither.
        protocol: name of the chosen assignor, None in an empty group.
        current_state_timestamp_ms: when the group entered its state, None where the record does not say (-1, or
            before version 2).

    """

    group_id: str
    protocol_type: str
    generation_id: int | None
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int | None
    members: tuple[ClassicMember, ...]
    value_version: int | None


def group_metadata(record: DecodedRecord) -> GroupMetadata:
    """Return the typed view of a GroupMetadata record that is not a tombstone.

    Raises UndecodableRecord with the member in its path where a member's consumer protocol bytes are refused, and
    ValueError for any other record.

    >>> from streaming.protocol import decode
    >>> record = decode(bytes.fromhex("0002 0001 67"), bytes.fromhex("0000 0000 00000004 ffff ffff 00000000"))
    >>> empty = group_metadata(record)
    >>> empty.group_id, empty.generation_id, empty.protocol, empty.current_state_timestamp_ms, empty.members
    ('g', 4, None, None, ())
    """
    value = record.value
    if record.key_type != RecordType.GROUP_METADATA or value is None or record.value_version is None:
        raise ValueError(f"not the metadata of a classic group: {record.name}, tombstone: {value is None}")
    timestamp = value.get("currentStateTimestamp", -1)
    speaks_consumer = value["protocolType"] == CONSUMER_PROTOCOL_TYPE
    return GroupMetadata(
        record.key["group"],
        value["protocolType"],
        value["generation"],
        value["protocol"],
        value["leader"],
        None if timestamp == -1 else timestamp,
        tuple([_member(fields, index, speaks_consumer) for index, fields in enumerate(value["members"])]),
        record.value_version,
    )


def _member(fields: Mapping[str, Any], index: int, speaks_consumer: bool) -> ClassicMember:
    session_timeout_ms = fields["sessionTimeout"]
    rebalance_timeout_ms = fields.get("rebalanceTimeout", -1)
    subscription, assignment = fields["subscription"], fields["assignment"]
    place = "subscription"
    try:
        joined = subscription_of(subscription) if speaks_consumer and subscription else None
        place = "assignment"
        synced = assignment_of(assignment) if speaks_consumer and assignment else None
    except UndecodableRecord as refusal:
        raise refusal.under(f"value.members[{index}].{place}") from None
    return ClassicMember(
        fields["memberId"],
        fields.get("groupInstanceId"),
        fields["clientId"],
        fields["clientHost"],
        session_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms,
        session_timeout_ms,
        joined,
        synced,
    )


def subscription_of(raw: bytes) -> Subscription:
    """Read a member's JoinGroup bytes; raises UndecodableRecord."""
    version, fields = decode_subscription(raw)
    return Subscription(
        version,
        tuple(fields["topics"]),
        fields["userData"],
        topic_partitions(fields.get("ownedPartitions", ())),
        fields.get("generationId", UNKNOWN_GENERATION),
        fields.get("rackId") or None,
    )


def assignment_of(raw: bytes) -> Assignment:
    """Read what the leader gave a member; raises UndecodableRecord."""
    version, fields = decode_assignment(raw)
    return Assignment(version, topic_partitions(fields["assignedPartitions"]), fields["userData"])
