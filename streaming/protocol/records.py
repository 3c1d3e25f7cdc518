"""Decodes the key and value bytes of a ``__consumer_offsets`` record.

Source: ``CoordinatorRecordSerde.deserialize`` and ``CoordinatorRecordType`` of Kafka 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from streaming.protocol.errors import (
    MISSING_KEY,
    TRUNCATED,
    UNKNOWN_RECORD_TYPE,
    UNKNOWN_VALUE_VERSION,
    UndecodableRecord,
)
from streaming.protocol.layouts import RECORD_LAYOUTS
from streaming.protocol.readers import compile_reader, compile_readers


class RecordType(IntEnum):
    """The record types. Each value is the int16 at the start of a key. The names are from ``CoordinatorRecordType``."""

    OFFSET_COMMIT_LEGACY = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """A record with the fields of Kafka's JSON converters. Byte fields are ``bytes``.

    Topic ids have the text form that Kafka prints. ``name`` is Kafka's record name without the suffix Key or Value.
    ``value_version`` and ``value`` are None for a tombstone. ``key`` and ``value`` map the camelCase names of fields to
    values, without fields that the version does not have, and without tagged fields that have their default value.
    """

    name: str
    key_type: int
    value_version: int | None
    key: Mapping[str, Any]
    value: Mapping[str, Any] | None


_READERS: Final = {
    layout.key_type: (layout.name, compile_reader(layout.key, 0), compile_readers(layout.value))
    for layout in RECORD_LAYOUTS
}


def decode(key: bytes | None, value: bytes | None) -> DecodedRecord:
    """Decode one record. If ``value`` is None, the record is a tombstone.

    Raises UndecodableRecord if Kafka's reader refuses the bytes, and no other exception.

    >>> record = decode(bytes.fromhex("0003 0001 67"), bytes.fromhex("0000 00000005 00"))
    >>> record.name, record.key, record.value
    ('ConsumerGroupMetadata', {'groupId': 'g'}, {'epoch': 5})
    >>> decode(bytes.fromhex("0003 0001 67"), None).value is None
    True
    """
    if key is None:
        raise UndecodableRecord(MISSING_KEY)
    key_type = _leading_int16(key, "key")
    known = _READERS.get(key_type)
    if known is None:
        raise UndecodableRecord(UNKNOWN_RECORD_TYPE, "key")
    name, read_key, value_readers = known
    try:
        key_fields = read_key(key, 2)
    except UndecodableRecord as refusal:
        raise refusal.under("key") from None
    if value is None:
        return DecodedRecord(name, key_type, None, key_fields, None)
    version = _leading_int16(value, "value")
    if not 0 <= version < len(value_readers):
        raise UndecodableRecord(UNKNOWN_VALUE_VERSION, "value")
    try:
        return DecodedRecord(name, key_type, version, key_fields, value_readers[version](value, 2))
    except UndecodableRecord as refusal:
        raise refusal.under("value") from None


def _leading_int16(raw: bytes, field: str) -> int:
    if len(raw) < 2:
        raise UndecodableRecord(TRUNCATED, field)
    return int.from_bytes(raw[:2], "big", signed=True)
