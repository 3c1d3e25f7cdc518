"""Decodes the subscription and assignment bytes of a classic group's member.

Source: ``org.apache.kafka.clients.consumer.internals.ConsumerProtocol``,
``StickyAssignor.deserializeTopicPartitionAssignment``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from streaming.protocol.errors import TRUNCATED, UNKNOWN_EMBEDDED_VERSION, UndecodableRecord
from streaming.protocol.layouts import CONSUMER_PROTOCOL_ASSIGNMENT, CONSUMER_PROTOCOL_SUBSCRIPTION, STICKY_USER_DATA
from streaming.protocol.readers import Reader, compile_readers

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""The protocol type of classic groups whose members use this protocol. Groups of other types use other formats."""

KAFKA_STREAMS_PROTOCOL: Final = "stream"
"""The strategy name of classic Kafka Streams and ksqlDB. The monitor does not evaluate their task assignor."""

COPARTITIONING_PROTOCOLS: Final = frozenset({KAFKA_STREAMS_PROTOCOL, "faust", "copartition"})
"""The strategy names of Kafka Streams, Faust and Goka.

Each of these libraries gives a member the partitions with the same number of several topics. So an assignment that is
uneven can be correct, and a fairer assignment can be invalid.
"""

UNKNOWN_GENERATION: Final = -1
"""``StickyAssignor.DEFAULT_GENERATION``. This value is also used if the version of a subscription has no generation."""

_NULL_BYTES: Final = b"\xff\xff\xff\xff"

_OWNED_PARTITIONS_SINCE: Final = 1
"""The first version of a subscription that has `ownedPartitions` (KIP-429)."""

_SUBSCRIPTION_READERS: Final = compile_readers(CONSUMER_PROTOCOL_SUBSCRIPTION)
_ASSIGNMENT_READERS: Final = compile_readers(CONSUMER_PROTOCOL_ASSIGNMENT)
_STICKY_V0, _STICKY_V1 = compile_readers(STICKY_USER_DATA)


def _decode(raw: bytes, readers: Sequence[Reader]) -> tuple[int, dict[str, Any]]:
    if len(raw) < 2:
        raise UndecodableRecord(TRUNCATED, "version")
    version = int.from_bytes(raw[:2], "big", signed=True)
    if version < 0:
        raise UndecodableRecord(UNKNOWN_EMBEDDED_VERSION, "version")
    return version, readers[min(version, len(readers) - 1)](raw, 2)


def decode_subscription(raw: bytes) -> tuple[int, dict[str, Any]]:
    """Return the version number from the bytes, and the fields. Versions above 3 are read as version 3.

    Raises UndecodableRecord for a negative version and for truncated or empty bytes.

    >>> decode_subscription(bytes.fromhex("0000 00000001 0001 74 ffffffff"))
    (0, {'topics': ['t'], 'userData': None})
    """
    return _decode(raw, _SUBSCRIPTION_READERS)


def read_subscription(raw: bytes) -> tuple[int, dict[str, Any]]:
    """Decode a subscription of any client library. In every version, the bytes may end before `ownedPartitions`.

    kafka-go and Faust write a version number of 1 or more, but only the fields of version 0. Java refuses such a
    subscription, but librdkafka, sarama and franz-go read it as version 0.

    >>> read_subscription(bytes.fromhex("0001 00000001 0001 74 ffffffff"))
    (1, {'topics': ['t'], 'userData': None})
    """
    try:
        return decode_subscription(raw)
    except UndecodableRecord:
        version = int.from_bytes(raw[:2], "big", signed=True)
        if version < _OWNED_PARTITIONS_SINCE or not _ends_with_user_data(raw):
            raise
        return version, _SUBSCRIPTION_READERS[0](raw, 2)


def _ends_with_user_data(raw: bytes) -> bool:
    """Return True if the bytes end exactly after the user data. If they end earlier, they are damaged."""
    position = 6
    for _ in range(int.from_bytes(raw[2:6], "big", signed=True)):
        position += 2 + int.from_bytes(raw[position : position + 2], "big")
        if position > len(raw):
            return False
    user_data_bytes = max(0, int.from_bytes(raw[position : position + 4], "big", signed=True))
    return position + 4 + user_data_bytes == len(raw)


def decode_assignment(raw: bytes) -> tuple[int, dict[str, Any]]:
    """Return the version number and the fields, like ``decode_subscription``.

    >>> decode_assignment(bytes.fromhex("0001 00000001 0001 74 00000002 00000000 00000004 00000000"))
    (1, {'assignedPartitions': [{'topic': 't', 'partitions': [0, 4]}], 'userData': b''})
    """
    return _decode(raw, _ASSIGNMENT_READERS)


def read_assignment(raw: bytes) -> tuple[int, dict[str, Any]]:
    """Decode an assignment of any client library. The bytes may end exactly after the partitions.

    pykafka and @platformatic/kafka omit the user data. In this case, the fields contain no `userData`. Java refuses
    such an assignment.

    >>> read_assignment(bytes.fromhex("0001 00000001 0001 74 00000001 00000000"))
    (1, {'assignedPartitions': [{'topic': 't', 'partitions': [0]}]})
    """
    try:
        return decode_assignment(raw)
    except UndecodableRecord as refusal:
        if (refusal.reason, refusal.field) != (TRUNCATED, "userData") or not _ends_with_partitions(raw):
            raise
        version, fields = decode_assignment(raw + _NULL_BYTES)
        del fields["userData"]
        return version, fields


def _ends_with_partitions(raw: bytes) -> bool:
    """Return True if the bytes end exactly after the partitions. All fields before the user data must be complete."""
    position = 6
    for _ in range(int.from_bytes(raw[2:6], "big", signed=True)):
        position += 2 + int.from_bytes(raw[position : position + 2], "big")
        position += 4 + 4 * int.from_bytes(raw[position : position + 4], "big")
    return position == len(raw)


def topic_partitions(topics: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, int], ...]:
    """Convert ``{topic, partitions}`` entries to (topic, partition) pairs, in wire order, without duplicates.

    >>> topic_partitions([{"topic": "t", "partitions": [1, 0, 1]}])
    (('t', 1), ('t', 0))
    """
    return tuple(dict.fromkeys((entry["topic"], partition) for entry in topics for partition in entry["partitions"]))


def sticky_user_data(user_data: bytes | None) -> tuple[tuple[tuple[str, int], ...], int | None]:
    """Return the partitions that a member of StickyAssignor claims to own, and the generation of the claim.

    The generation is None without user data and in version 0. Like the assignor, the function ignores an invalid claim,
    and returns no partitions and the generation -1.

    >>> sticky_user_data(bytes.fromhex("00000001 0001 74 00000001 00000003 00000007"))
    ((('t', 3),), 7)
    >>> sticky_user_data(b"?")
    ((), -1)
    """
    if not user_data:
        return (), None
    for read in (_STICKY_V1, _STICKY_V0):
        try:
            fields = read(user_data, 0)
        except UndecodableRecord:
            continue
        return topic_partitions(fields["previousAssignment"]), fields.get("generation")
    return (), UNKNOWN_GENERATION


def kafka_python_sticky_user_data(user_data: bytes | None) -> tuple[tuple[tuple[str, int], ...], int | None] | None:
    """Return the claim in ``sticky`` user data of kafka-python 3, or None if the bytes have a different format.

    kafka-python writes an int16 version before the data of StickyAssignor. Java leaders cannot read this format, and
    kafka-python leaders read only this format. A claim with partitions is never valid in both formats, because
    the bytes of kafka-python's version are the upper half of Java's array length.

    >>> kafka_python_sticky_user_data(bytes.fromhex("0001 00000001 0001 74 00000001 00000003 00000007"))
    ((('t', 3),), 7)
    >>> kafka_python_sticky_user_data(b"") is None
    True
    """
    try:
        _version, fields = _decode(user_data or b"", (_STICKY_V0, _STICKY_V1))
    except UndecodableRecord:
        return None
    return topic_partitions(fields["previousAssignment"]), fields.get("generation")
