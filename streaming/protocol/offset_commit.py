"""The key bytes of an offset commit, and the byte positions of fields in the value.

Key (record types 0 and 1): int16 type, int16 length and bytes of the group, int16 length and bytes of the topic, int32
partition. All numbers are big endian. No field is nullable. Two keys have the same (group, topic, partition) if their
bytes after the type are equal.

Value: int16 version, int64 committed offset, and since version 3 an int32 leader epoch. A metadata string follows, so
the positions of all later fields depend on its length.
"""

from __future__ import annotations

import struct
from typing import Final

from streaming.protocol.records import RecordType

KEY_TYPES: Final = (RecordType.OFFSET_COMMIT_LEGACY, RecordType.OFFSET_COMMIT)
"""Record types whose key is (group, topic, partition)."""

COMMITTED_OFFSET_AT: Final = 2
"""Position of the int64 committed offset in the value, in versions 0 to 4 and in legacy values."""

METADATA_LENGTH_AT: Final = {0: 10, 1: 10, 2: 10, 3: 14, 4: 14}
"""Position of the length of the metadata string, by version: an int16, since 4 a varint of the length plus 1."""


def offset_commit_key(group_id: str, topic: str, partition: int) -> bytes:
    """Return the key bytes of a commit, as current brokers write them.

    >>> offset_commit_key("g", "t", 3).hex(" ")
    '00 01 00 01 67 00 01 74 00 00 00 03'
    """
    group, name = group_id.encode(), topic.encode()
    head = struct.pack(">hh", RecordType.OFFSET_COMMIT, len(group))
    return head + group + struct.pack(">h", len(name)) + name + struct.pack(">i", partition)
