"""Converts a record to one JSON object, as Kafka's JSON converters do, with decoded subscriptions and assignments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streaming.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    kafka_python_sticky_user_data,
    read_assignment,
    read_subscription,
    sticky_user_data,
)
from streaming.protocol.errors import UndecodableRecord
from streaming.protocol.records import DecodedRecord, RecordType, decode

STICKY_ASSIGNOR_NAME: Final = "sticky"
"""The protocol name of ``StickyAssignor``. Members that use this assignor send user data."""


def render_record(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """Return ``{record, key, value}`` as in Kafka's JSON converters, or ``{error, field}`` if Kafka refuses the record.

    Bytes in the result have the type ``bytes``. If the record contains bytes of the consumer protocol, ``decoded``
    contains their fields, or ``{error, field}`` if they cannot be decoded.

    >>> render_record(bytes.fromhex("0003 0001 67"), None)
    {'record': 'ConsumerGroupMetadata', 'key': {'groupId': 'g'}, 'value': None}
    >>> render_record(bytes.fromhex("0003 0001"), None)
    {'error': 'truncated', 'field': 'key.groupId'}
    """
    try:
        record = decode(key, value)
    except UndecodableRecord as refusal:
        return _refused(refusal)
    shown = {"record": record.name, "key": record.key, "value": record.value}
    decoded = _decoded(record)
    return {**shown, "decoded": decoded} if decoded else shown


def _refused(refusal: UndecodableRecord) -> dict[str, Any]:
    return {"error": refusal.reason, "field": refusal.field}


def _decoded(record: DecodedRecord) -> dict[str, Any] | None:
    value = record.value
    if value is None:
        return None
    if record.key_type == RecordType.GROUP_METADATA and value["protocolType"] == CONSUMER_PROTOCOL_TYPE:
        return {"members": [_classic_member(member, value["protocol"]) for member in value["members"]]}
    classic_member = value.get("classicMemberMetadata")
    if classic_member is None:
        return None
    protocols = classic_member["supportedProtocols"]
    return {
        "supportedProtocols": [
            {"name": one["name"], "metadata": _subscription(one["metadata"], one["name"])} for one in protocols
        ]
    }


def _classic_member(member: Mapping[str, Any], protocol: str | None) -> dict[str, Any]:
    return {
        "memberId": member["memberId"],
        "subscription": _subscription(member["subscription"], protocol),
        "assignment": _embedded(member["assignment"], read_assignment),
    }


def _subscription(raw: bytes, protocol: str | None) -> dict[str, Any] | None:
    subscription = _embedded(raw, read_subscription)
    if subscription and protocol == STICKY_ASSIGNOR_NAME and subscription.get("userData"):
        user_data = subscription["userData"]
        in_own_form = kafka_python_sticky_user_data(user_data)  # an empty claim in Java's form also matches
        owned, generation = in_own_form if in_own_form and in_own_form[0] else sticky_user_data(user_data)
        subscription["stickyUserData"] = {"partitions": owned, "generation": generation}
    return subscription


def _embedded(raw: bytes, read: Callable[[bytes], tuple[int, dict[str, Any]]]) -> dict[str, Any] | None:
    if not raw:
        return None
    try:
        version, fields = read(raw)
    except UndecodableRecord as refusal:
        return _refused(refusal)
    return {"version": version, **fields}
