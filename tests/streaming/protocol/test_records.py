"""Tests of whole records: refusals with their reason and field, and the real sample."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.protocol import DecodedRecord, RecordType, UndecodableRecord, decode
from tests.streaming.protocol.records import sample_records

COMMIT_KEY = bytes.fromhex("0001 0001 67 0001 74 00000003")
COMMIT_V4 = bytes.fromhex("0004 0000000000000029 00000001 01 0000000000000007")
GROUP_KEY = bytes.fromhex("0002 0001 67")
GROUP_V3 = bytes.fromhex("0003 0000 00000001 ffff ffff 0000000000000007")
MEMBER_KEY = bytes.fromhex("0005 0001 67 0001 6d")
TARGET_KEY = bytes.fromhex("0007 0001 67 0001 6d")

REFUSALS = [
    ("a record without a key", None, b"", "missing_key", None),
    ("an empty key", b"", None, "truncated", "key"),
    ("half a record type", b"\x00", None, "truncated", "key"),
    ("a record type that 4.2 does not use", bytes.fromhex("0009 0001 67"), None, "unknown_record_type", "key"),
    ("a negative record type", bytes.fromhex("ffff 0001 67"), None, "unknown_record_type", "key"),
    ("a key cut in its string", COMMIT_KEY[:4], None, "truncated", "key.group"),
    ("a key cut before its partition", COMMIT_KEY[:8], None, "truncated", "key.partition"),
    ("a null group", bytes.fromhex("0001 ffff"), None, "null_field", "key.group"),
    ("an empty value, which is not a tombstone", COMMIT_KEY, b"", "truncated", "value"),
    ("half a value version", COMMIT_KEY, b"\x00", "truncated", "value"),
    ("a future value version", COMMIT_KEY, b"\x00\x05", "unknown_value_version", "value"),
    ("a negative value version", COMMIT_KEY, b"\xff\xff", "unknown_value_version", "value"),
    ("the first of two fixed fields is cut", COMMIT_KEY, COMMIT_V4[:9], "truncated", "value.offset"),
    ("the second of two fixed fields is cut", COMMIT_KEY, COMMIT_V4[:12], "truncated", "value.leaderEpoch"),
    ("no tag count", COMMIT_KEY, COMMIT_V4, "truncated", "value.taggedFields"),
    ("a truncated topic id", COMMIT_KEY, COMMIT_V4 + bytes.fromhex("01 00 10 aabb"), "truncated", "value.topicId"),
    (
        "a truncated unknown tag",
        COMMIT_KEY,
        COMMIT_V4 + bytes.fromhex("01 07 02 aa"),
        "truncated",
        "value.taggedFields",
    ),
    (
        "an unknown tag of a negative size",
        COMMIT_KEY,
        COMMIT_V4 + bytes.fromhex("01 07 ffffffff0f"),
        "negative_size",
        "value.taggedFields",
    ),
    (
        "a tag number of six bytes",
        COMMIT_KEY,
        COMMIT_V4 + bytes.fromhex("01 808080808001"),
        "bad_varint",
        "value.taggedFields",
    ),
    (
        "a compact string over 32,767 bytes",
        COMMIT_KEY,
        COMMIT_V4[:14] + bytes.fromhex("818002") + bytes(32768),
        "string_too_long",
        "value.metadata",
    ),
    (
        "a member's field",
        GROUP_KEY,
        GROUP_V3 + bytes.fromhex("00000001 0001 6d ffff ffff"),
        "null_field",
        "value.members[0].clientId",
    ),
    (
        "the second member's field",
        GROUP_KEY,
        GROUP_V3
        + bytes.fromhex("00000002 0001 6d ffff 0000 0000 00000001 00000001 00000000 00000000 0001 6e ffff 0000 0001"),
        "truncated",
        "value.members[1].clientHost",
    ),
    ("more members than bytes", GROUP_KEY, GROUP_V3 + bytes.fromhex("7fffffff 00"), "array_too_long", "value.members"),
    (
        "an element of an array inside an array",
        TARGET_KEY,
        bytes.fromhex("0000 02") + bytes(16) + bytes.fromhex("03 00000001 0000"),
        "truncated",
        "value.topicPartitions[0].partitions",
    ),
    (
        "an array of strings",
        MEMBER_KEY,
        bytes.fromhex("0000 00 00 01 01 03 02 61 00"),
        "null_field",
        "value.subscribedTopicNames[1]",
    ),
    (
        "a struct inside a tagged field",
        MEMBER_KEY,
        bytes.fromhex("0000 00 00 01 01 01 00 00000001 00 01 00 07 01 00000000 02 02 72 05"),
        "truncated",
        "value.classicMemberMetadata.supportedProtocols[0].metadata",
    ),
]


@pytest.mark.parametrize(("why", "key", "value", "reason", "field"), REFUSALS, ids=[row[0] for row in REFUSALS])
def test_a_refusal_has_its_reason_and_field(
    why: str, key: bytes | None, value: bytes | None, reason: str, field: str | None
) -> None:
    with pytest.raises(UndecodableRecord) as caught:
        decode(key, value)
    assert (caught.value.reason, caught.value.field) == (reason, field), why
    assert str(caught.value) == (reason if field is None else f"{reason} at {field}")


@given(st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=80))
def test_any_key_and_value_are_decoded_or_refused(key: bytes | None, value: bytes | None) -> None:
    try:
        assert isinstance(decode(key, value), DecodedRecord)
    except UndecodableRecord as refusal:
        assert refusal.reason  # noqa: PT017 - without a refusal the test returns


@given(st.sampled_from(sorted(RecordType)), st.binary(max_size=80))
def test_any_bytes_after_a_known_record_type_are_decoded_or_refused(record_type: int, rest: bytes) -> None:
    value = b"\x00\x00" + rest
    key = record_type.to_bytes(2, "big") + bytes.fromhex("0001 67 0001 6d 00000003")
    try:
        assert decode(key, value).value is not None
    except UndecodableRecord as refusal:
        assert str(refusal.field).startswith("value")  # noqa: PT017 - without a refusal the test returns


@pytest.mark.parametrize("record_type", sorted(RecordType))
def test_a_tombstone_of_each_type_is_decoded_from_its_key(record_type: int) -> None:
    """In all keys the string fields come first and a partition last. This key is long enough for each type."""
    record = decode(record_type.to_bytes(2, "big") + bytes.fromhex("0001 67 0001 6d 00000003"), None)
    assert (record.key_type, record.value_version, record.value) == (record_type, None, None)
    assert "g" in record.key.values()


def test_the_real_sample_decodes_without_a_refusal() -> None:
    """1,910 records of real clients, of 19 of the 22 record types."""
    records = [decode(key, value) for key, value in sample_records()]
    names = Counter(record.name for record in records)
    assert len(records) == 1910
    assert names["OffsetCommit"] == 878
    assert names["GroupMetadata"] == 252
    assert len(names) == 19
    assert sum(record.value is None for record in records) == 399


def test_a_refusal_survives_pickling_between_worker_and_driver() -> None:
    """Spark pickles the results and exceptions of its Python workers."""
    refusal = pickle.loads(pickle.dumps(UndecodableRecord("truncated", "value.offset")))  # noqa: S301 - our own bytes
    assert (refusal.reason, refusal.field) == ("truncated", "value.offset")


def test_a_decoded_record_is_frozen() -> None:
    record = decode(COMMIT_KEY, None)
    with pytest.raises(AttributeError):
        record.name = "another"  # type: ignore[misc]
