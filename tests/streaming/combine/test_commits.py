"""Tests that the bulk rules agree with the exact decoder, and accept all records that brokers write."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streaming.combine.big_endian import BinaryColumn
from streaming.combine.commits import TOMBSTONE, canonical_key, check_commits
from streaming.protocol import UndecodableRecord, decode
from streaming.protocol.primitives import uuid_text
from tests.streaming.combine.strategies import ANY_RECORD, Bytes, commits
from tests.streaming.log_records import commit_key, commit_value, group_key
from tests.streaming.protocol.mutations import mutate_record
from tests.streaming.protocol.records import sample_records

TOPIC_ID = uuid_text(bytes(range(16)))
HEADER_V4 = commit_value(41, 4)[:14]


def accepted_offsets(records: list[Bytes]) -> list[int | None]:
    """Return the committed offset of each record that the bulk rules accept, and None for each other record."""
    keys, values = (pa.array(list(column), pa.binary()) for column in zip(*records, strict=True))
    is_sound, committed_offset = check_commits(BinaryColumn.of(keys), BinaryColumn.of(values))
    rows = zip(is_sound.tolist(), committed_offset.tolist(), strict=True)
    return [committed if sound else None for sound, committed in rows]


def exact_decoder_agrees(record: Bytes, committed_offset: int) -> bool:
    """Return True if the exact decoder reads the same commit."""
    key, value = record
    try:
        decoded = decode(key, value)
    except UndecodableRecord:
        return False
    exact = TOMBSTONE if decoded.value is None else decoded.value["offset"]
    return decoded.name == "OffsetCommit" and exact == committed_offset and canonical_key(key or b"") == key


@given(st.lists(ANY_RECORD, min_size=1, max_size=20))
def test_the_exact_decoder_agrees_with_every_accepted_record(records: list[Bytes]) -> None:
    for record, committed in zip(records, accepted_offsets(records), strict=True):
        assert committed is None or exact_decoder_agrees(record, committed)


def test_the_exact_decoder_agrees_with_every_accepted_record_among_damaged_records() -> None:
    """The buffer has 20,000 real records, damaged with a fixed seed. They are adjacent, as in an Arrow array."""
    random = Random(20261121)
    sampled = [(key, value) for key, value in sample_records() if key[:2] in (b"\x00\x00", b"\x00\x01")]
    records: list[Bytes] = [mutate_record(random, sampled) for _ in range(20_000)]
    answers = accepted_offsets(records)
    assert [
        record
        for record, one in zip(records, answers, strict=True)
        if one is not None and not exact_decoder_agrees(record, one)
    ] == []
    assert 1_000 < sum(one is not None for one in answers) < 15_000, "the records include accepted and refused ones"


@given(commits())
def test_no_prefix_of_a_commit_is_accepted(record: Bytes) -> None:
    """A commit is truncated at any position. The bytes after it in the buffer belong to the next record."""
    key, value = record
    assume(value is not None)
    cut: list[Bytes] = [(key, (value or b"")[:end]) for end in range(len(value or b""))]
    cut += [((key or b"")[:end], value) for end in range(len(key or b""))]
    assert set(accepted_offsets(cut)) <= {None}


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        *[(commit_key("g"), commit_value(41, version), f"value version {version}") for version in range(5)],
        *[(commit_key("g"), commit_value(41, version, "é" * 50), "metadata beyond ASCII") for version in range(5)],
        (commit_key("g"), commit_value(41, 4, "x" * 126), "the longest metadata with a length of one byte"),
        (commit_key("g"), commit_value(41, 4, topic_id=TOPIC_ID), "a topic id (Kafka 4.1)"),
        (commit_key("g"), commit_value(41, 3, "x" * 4096), "metadata of the broker's limit"),
        (commit_key("", ""), commit_value(41), "empty names are valid names"),
        (commit_key("g" * 32767, "t" * 249), commit_value(41), "the longest group id"),
        (commit_key("\N{ROCKET}", partition=2**31 - 1), commit_value(41), "names beyond the BMP"),
    ],
)
def test_records_that_brokers_write_use_the_bulk_rules(key: bytes, value: bytes, why: str) -> None:
    """Valid but unusual names must not need one Python call per record."""
    assert accepted_offsets([(key, value), (key, None)]) == [41, TOMBSTONE], why


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (None, commit_value(41), "no key"),
        (b"", commit_value(41), "an empty key"),
        (b"\x00", commit_value(41), "half a record type"),
        (group_key("g"), None, "the tombstone of a group, not of a commit"),
        (commit_key("g", legacy=True), commit_value(41, 0), "the exact decoder normalises legacy keys"),
        (commit_key("g") + b"\x00", commit_value(41), "extra bytes after the key"),
        (commit_key("g"), commit_value(41) + b"\x00", "extra bytes after the value"),
        (commit_key("g"), b"", "an empty value is not a tombstone"),
        (commit_key("g"), commit_value(41, 4, "x" * 127), "the metadata length needs two bytes"),
        (
            commit_key("g"),
            HEADER_V4 + b"\x90" + b"\x80" * 143 + bytes(9),
            "a varint length that never ends, with a plausible first byte",
        ),
        (commit_key("g"), commit_value(-1), "no committed offset"),
        (commit_key("g"), b"\x00\x05" + commit_value(41)[2:], "value version 5"),
        (b"\x00\x01\xff\xff\x00\x01t\x00\x00\x00\x00", None, "a null group"),
        (b"\x00\x01\x7f\xff\x00\x01t\x00\x00\x00\x00", None, "the group length is larger than the key"),
    ],
)
def test_unusual_records_are_left_to_the_exact_decoder(key: bytes | None, value: bytes | None, why: str) -> None:
    assert accepted_offsets([(key, value), (commit_key("g"), commit_value(7))]) == [None, 7], why


@given(commits(), st.binary(max_size=4), st.booleans())
def test_one_name_has_one_canonical_key(record: Bytes, tail: bytes, legacy: bool) -> None:
    key = record[0] or b""
    respelled = (b"\x00\x00" if legacy else b"\x00\x01") + key[2:] + tail
    assert canonical_key(respelled) == canonical_key(key) == b"\x00\x01" + key[2:]
    assert decode(respelled, None).key == decode(canonical_key(key), None).key
