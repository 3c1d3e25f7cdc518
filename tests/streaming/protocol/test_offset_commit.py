"""Tests of the keys of offset commits, and of the byte positions that the bulk decoder uses."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streaming.combine.commits import canonical_key
from streaming.protocol import RecordType, decode
from streaming.protocol.layouts import LEGACY_OFFSET_COMMIT, OFFSET_COMMIT, RECORD_LAYOUTS
from streaming.protocol.offset_commit import (
    COMMITTED_OFFSET_AT,
    KEY_TYPES,
    METADATA_LENGTH_AT,
    offset_commit_key,
)
from streaming.protocol.schema import Struct
from tests.bench.encoder import encode
from tests.streaming.protocol.strategies import fields_of


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
