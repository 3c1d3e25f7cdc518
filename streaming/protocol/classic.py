"""Provides a typed view of a classic group's GroupMetadata record, with decoded subscriptions and assignments.

Sources: ``GroupMetadataValue.json`` and ``ConsumerProtocol``. ``GroupMetadataManager.replay`` defines what an absent
field means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from streaming.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_GENERATION,
    read_assignment,
    read_subscription,
    topic_partitions,
)
from streaming.protocol.errors import UndecodableRecord
from streaming.protocol.records import DecodedRecord, RecordType

Refusal = tuple[bytes, UndecodableRecord]
"""Undecodable bytes of one member, and the error. The ``field`` of the error identifies the member."""

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Subscription:
    """The subscription that a member sent when it joined the group (``ConsumerPartitionAssignor.Subscription``).

    ``version`` is the version number in the bytes. ``owned`` contains the (topic, partition) pairs that the member
    claims to own. ``generation_id`` is the generation of this claim, or -1 if unknown (always in versions 0 and 1).
    ``ends_before_owned`` is True if the version has ``ownedPartitions`` but the bytes end before this field.
    """

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None
    owned: tuple[tuple[str, int], ...]
    generation_id: int
    rack_id: str | None
    ends_before_owned: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """The assignment that the group's leader computed for a member (``ConsumerPartitionAssignor.Assignment``).

    Partitions are in wire order. ``version`` is None if the leader wrote no bytes for the member, or if the bytes end
    before the user data. So such an assignment does not identify the leader's library.
    """

    version: int | None
    partitions: tuple[tuple[str, int], ...]
    user_data: bytes | None


NOTHING_ASSIGNED: Final = Assignment(None, (), None)
"""The assignment of a member that the leader omitted. sarama, KafkaJS and kafka-go omit members without partitions."""


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """A member of a classic group.

    If a record has no rebalance timeout, ``rebalance_timeout_ms`` is the session timeout, as in the coordinator's
    replay. Both timeouts are None if the source is DescribeGroups. ``subscription`` and ``assignment`` are None if
    their bytes are undecodable, or if the protocol type is not ``consumer``. Empty subscription bytes also mean None,
    because no client writes an empty subscription. Empty assignment bytes mean NOTHING_ASSIGNED.
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
    """A classic group, decoded from a record or from a coordinator's description of the group.

    In a coordinator's description, ``generation_id`` and ``value_version`` are None. ``protocol`` is None if the group
    is empty. ``current_state_timestamp_ms`` is the time when the group entered its current state.
    """

    group_id: str
    protocol_type: str
    generation_id: int | None
    protocol: str | None
    leader: str | None
    current_state_timestamp_ms: int | None
    members: tuple[ClassicMember, ...]
    value_version: int | None


def group_metadata(record: DecodedRecord, refusals: list[Refusal] | None = None) -> GroupMetadata:
    """Return the typed view of a GroupMetadata record. The record must not be a tombstone.

    If a subscription or an assignment cannot be decoded, the result contains None, and ``refusals`` contains the bytes.
    Raises ValueError for a tombstone or for a record of a different type.

    >>> from streaming.protocol import decode
    >>> record = decode(bytes.fromhex("0002 0001 67"), bytes.fromhex("0000 0000 00000004 ffff ffff 00000000"))
    >>> empty = group_metadata(record)
    >>> empty.group_id, empty.generation_id, empty.protocol, empty.current_state_timestamp_ms, empty.members
    ('g', 4, None, None, ())
    """
    value = record.value
    if record.key_type != RecordType.GROUP_METADATA or value is None or record.value_version is None:
        raise ValueError(f"not a GroupMetadata record with a value: {record.name}, tombstone: {value is None}")
    timestamp = value.get("currentStateTimestamp", -1)
    speaks_consumer = value["protocolType"] == CONSUMER_PROTOCOL_TYPE
    refusals = [] if refusals is None else refusals
    return GroupMetadata(
        record.key["group"],
        value["protocolType"],
        value["generation"],
        value["protocol"],
        value["leader"],
        None if timestamp == -1 else timestamp,
        tuple([_member(fields, index, speaks_consumer, refusals) for index, fields in enumerate(value["members"])]),
        record.value_version,
    )


def _member(fields: Mapping[str, Any], index: int, speaks_consumer: bool, refusals: list[Refusal]) -> ClassicMember:
    session_timeout_ms = fields["sessionTimeout"]
    rebalance_timeout_ms = fields.get("rebalanceTimeout", -1)
    place = f"value.members[{index}]"
    return ClassicMember(
        fields["memberId"],
        fields.get("groupInstanceId"),
        fields["clientId"],
        fields["clientHost"],
        session_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms,
        session_timeout_ms,
        member_subscription(fields["subscription"], place, refusals) if speaks_consumer else None,
        member_assignment(fields["assignment"], place, refusals) if speaks_consumer else None,
    )


def member_subscription(raw: bytes | None, place: str, refusals: list[Refusal]) -> Subscription | None:
    """Decode a member's subscription. If the decoding fails, return None and add the bytes to ``refusals``.

    ``place`` is the path of the member, for example ``value.members[0]``. For empty bytes, the result is also None.
    """
    return _read(raw, _subscription, f"{place}.subscription", refusals) if raw else None


def member_assignment(raw: bytes | None, place: str, refusals: list[Refusal]) -> Assignment | None:
    """Decode a member's assignment. If the decoding fails, return None and add the bytes to ``refusals``."""
    return _read(raw, _assignment, f"{place}.assignment", refusals) if raw else NOTHING_ASSIGNED


def _read(raw: bytes, read: Callable[[bytes], Read], place: str, refusals: list[Refusal]) -> Read | None:
    try:
        return read(raw)
    except UndecodableRecord as refusal:
        refusals.append((raw, refusal.under(place)))
        return None


def _subscription(raw: bytes) -> Subscription:
    version, fields = read_subscription(raw)
    return Subscription(
        version,
        tuple(fields["topics"]),
        fields["userData"],
        topic_partitions(fields.get("ownedPartitions", ())),
        fields.get("generationId", UNKNOWN_GENERATION),
        fields.get("rackId") or None,
        ends_before_owned=version > 0 and "ownedPartitions" not in fields,
    )


def _assignment(raw: bytes) -> Assignment:
    version, fields = read_assignment(raw)
    ends_early = "userData" not in fields
    partitions = topic_partitions(fields["assignedPartitions"])
    return Assignment(None if ends_early else version, partitions, fields.get("userData"))
