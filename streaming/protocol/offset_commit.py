"""Provides a typed view of offset commits. Code that reads whole columns of commits uses the byte positions of fields.

Key (record types 0 and 1): int16 type, int16 length and bytes of the group, int16 length and bytes of the topic, int32
partition. All numbers are big endian. No field is nullable. Two keys have the same (group, topic, partition) if their
bytes after the type are equal.

Value: int16 version, int64 committed offset, and since version 3 an int32 leader epoch. These fields have fixed
positions. A metadata string follows, so the positions of all later fields depend on its length.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streaming.protocol.primitives import ZERO_UUID
from streaming.protocol.records import RecordType

if TYPE_CHECKING:
    from streaming.protocol.records import DecodedRecord

KEY_TYPES: Final = (RecordType.OFFSET_COMMIT_LEGACY, RecordType.OFFSET_COMMIT)
"""Record types whose key is (group, topic, partition)."""

COMMITTED_OFFSET_AT: Final = 2
"""Position of the int64 committed offset in the value, in versions 0 to 4 and in legacy values."""

METADATA_LENGTH_AT: Final = {0: 10, 1: 10, 2: 10, 3: 14, 4: 14}
"""Position of the length field of the metadata string, by version.

Before version 4, the field is an int16 that contains the length. Since version 4, the field is a varint that contains
the length plus 1.
"""


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """A committed offset. A value is None if the version or the client does not provide it.

    Attributes:
        leader_epoch: the leader epoch of the last consumed record. None if the value is -1 or the version is below 3.
        expire_timestamp_ms: None if the value is -1 or the version is not 1.
        topic_id: the topic id in the form that Kafka prints. None if the id is zero or the version is below 4.

    """

    group_id: str
    topic: str
    partition: int
    committed_offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None
    topic_id: str | None


def offset_commit_key(group_id: str, topic: str, partition: int) -> bytes:
    """Return the key bytes of a commit, as current brokers write them.

    >>> offset_commit_key("g", "t", 3).hex(" ")
    '00 01 00 01 67 00 01 74 00 00 00 03'
    """
    group, name = group_id.encode(), topic.encode()
    head = struct.pack(">hh", RecordType.OFFSET_COMMIT, len(group))
    return head + group + struct.pack(">h", len(name)) + name + struct.pack(">i", partition)


def offset_commit(record: DecodedRecord) -> OffsetCommit:
    """Return the typed view of an offset commit. The record must not be a tombstone.

    Raises ValueError for a tombstone or for a record of a different type.

    >>> from streaming.protocol import decode
    >>> key = bytes.fromhex("0001 0001 67 0001 74 00000003")
    >>> commit = offset_commit(decode(key, bytes.fromhex("0000 0000000000000029 0000 0000000000000007")))
    >>> commit.committed_offset, commit.leader_epoch, commit.commit_timestamp_ms
    (41, None, 7)
    """
    key, value = record.key, record.value
    if record.key_type not in KEY_TYPES or value is None:
        raise ValueError(f"not an offset commit with a value: {record.name}, tombstone: {value is None}")
    leader_epoch, expires = value.get("leaderEpoch", -1), value.get("expireTimestamp", -1)
    topic_id = value.get("topicId", ZERO_UUID)
    return OffsetCommit(
        key["group"],
        key["topic"],
        key["partition"],
        value["offset"],
        None if leader_epoch == -1 else leader_epoch,
        value["metadata"],
        value["commitTimestamp"],
        None if expires == -1 else expires,
        None if topic_id == ZERO_UUID else topic_id,
    )
