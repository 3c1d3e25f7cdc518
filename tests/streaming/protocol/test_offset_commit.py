"""Tests of the typed view of an offset commit, and of the byte positions that the bulk decoder uses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.combine.commits import canonical_key
from streaming.protocol import RecordType, decode
from streaming.protocol.layouts import LEGACY_OFFSET_COMMIT, OFFSET_COMMIT, RECORD_LAYOUTS
from streaming.protocol.offset_commit import (
    COMMITTED_OFFSET_AT,
    KEY_TYPES,
    METADATA_LENGTH_AT,
    OffsetCommit,
    offset_commit,
    offset_commit_key,
)
from streaming.protocol.schema import Struct
from tests.bench.encoder import encode
from tests.streaming.protocol.strategies import fields_of

KEY = bytes.fromhex("0001 0001 67 0001 74 00000003")
FIELDS = {"offset": 41, "leaderEpoch": 5, "metadata": "m", "commitTimestamp": 7, "expireTimestamp": 8}
TOPIC_ID = "ABEiM0RVZneImaq7zN3u_w"


def _value(version: int, **changes: object) -> bytes:
    return version.to_bytes(2, "big") + encode(OFFSET_COMMIT.value, version, {**FIELDS, **changes})


@pytest.mark.parametrize(
    ("version", "leader_epoch", "expire_timestamp_ms", "topic_id"),
    [
        (0, None, None, None),
        (1, None, 8, None),  # the only version with an expiry field
        (2, None, None, None),
        (3, 5, None, None),  # KIP-320: leader epoch
        (4, 5, None, TOPIC_ID),
    ],
)
def test_each_version_gives_its_fields_and_none_for_the_others(
    version: int, leader_epoch: int | None, expire_timestamp_ms: int | None, topic_id: str | None
) -> None:
    commit = offset_commit(decode(KEY, _value(version, topicId=TOPIC_ID)))
    assert commit == OffsetCommit("g", "t", 3, 41, leader_epoch, "m", 7, expire_timestamp_ms, topic_id)


def test_a_legacy_commit_has_the_same_view() -> None:
    commit = offset_commit(decode(b"\x00\x00" + KEY[2:], _value(0)))
    assert commit == OffsetCommit("g", "t", 3, 41, None, "m", 7, None, None)


def test_minus_one_and_the_zero_topic_id_mean_none() -> None:
    assert offset_commit(decode(KEY, _value(1, expireTimestamp=-1))).expire_timestamp_ms is None
    commit = offset_commit(decode(KEY, _value(4, leaderEpoch=-1, topicId="A" * 22)))
    assert (commit.leader_epoch, commit.topic_id) == (None, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [(KEY, None), (bytes.fromhex("0003 0001 67"), bytes.fromhex("0000 00000001 00"))],
    ids=["a tombstone", "another record type"],
)
def test_only_an_offset_commit_has_this_view(key: bytes, value: bytes | None) -> None:
    with pytest.raises(ValueError, match="not an offset commit"):
        offset_commit(decode(key, value))


@given(st.integers(0, 4), st.data())
def test_the_byte_positions_are_the_same_in_every_version(version: int, data: st.DataObject) -> None:
    """The bulk decoder reads these positions from whole columns without decoding."""
    fields: dict[str, Any] = data.draw(fields_of(Struct(OFFSET_COMMIT.value.fields), version))
    value = version.to_bytes(2, "big") + encode(OFFSET_COMMIT.value, version, fields)
    offset = int.from_bytes(value[COMMITTED_OFFSET_AT : COMMITTED_OFFSET_AT + 8], "big", signed=True)
    assert offset == fields["offset"]
    at = METADATA_LENGTH_AT[version]
    raw = fields["metadata"].encode()
    text_at = at + 2 if version < 4 else at + (1 if len(raw) < 127 else 2)
    assert value[text_at : text_at + len(raw)] == raw


NAMES = st.text(max_size=40).filter(lambda name: name.isascii() or not any("\ud800" <= c <= "\udfff" for c in name))


@given(NAMES, NAMES, st.integers(0, 2**31 - 1))
def test_a_key_made_for_a_polled_commit_equals_the_key_that_a_broker_writes(
    group_id: str, topic: str, partition: int
) -> None:
    """A reader must not see a difference from a record of the log."""
    key = offset_commit_key(group_id, topic, partition)
    assert decode(key, None).key == {"group": group_id, "topic": topic, "partition": partition}
    assert canonical_key(key) == key


def test_the_record_types_equal_those_of_the_layouts() -> None:
    commits = [layout for layout in RECORD_LAYOUTS if layout in (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT)]
    assert sorted(RecordType(one.key_type) for one in commits) == list(KEY_TYPES)
    assert OFFSET_COMMIT.value.highest_version == max(METADATA_LENGTH_AT)
