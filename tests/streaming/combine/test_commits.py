"""The bulk rules vouch only for what the exact decoder reads alike, and for all that brokers write."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streaming.combine.commits import TOMBSTONE, canonical_key, check_commits
from streaming.combine.wire import BinaryColumn
from streaming.protocol import UndecodableRecord, decode
from streaming.protocol.primitives import uuid_text
from tests.streaming.combine.strategies import ANY_RECORD, Bytes, commits
from tests.streaming.log_records import commit_key, commit_value, group_key
from tests.streaming.protocol.mutations import mutate_record
from tests.streaming.protocol.records import sample_records

TOPIC_ID = uuid_text(bytes(range(16)))
HEADER_V4 = commit_value(41, 4)[:14]


def vouched(records: list[Bytes]) -> list[int | None]:
    """Return the committed offset of each record the bulk rules vouch for, None for the others."""
    keys, values = (pa.array(list(column), pa.binary()) for column in zip(*records, strict=True))
    check = check_commits(BinaryColumn.of(keys), BinaryColumn.of(values))
    rows = zip(check.is_sound.tolist(), check.committed_offset.tolist(), strict=True)
    return [committed if sound else None for sound, committed in rows]


def agrees(record: Bytes, committed_offset: int) -> bool:
    """Say whether the exact decoder reads the commit that was vouched for."""
    key, value = record
    try:
        decoded = decode(key, value)
    except UndecodableRecord:
        return False
    exact = TOMBSTONE if decoded.value is None else decoded.value["offset"]
    return decoded.name == "OffsetCommit" and exact == committed_offset and canonical_key(key or b"") == key


@given(st.lists(ANY_RECORD, min_size=1, max_size=20))
def test_what_is_vouched_for_the_exact_decoder_reads_alike(records: list[Bytes]) -> None:
    for record, committed in zip(records, vouched(records), strict=True):
        assert committed is None or agrees(record, committed)


def test_what_is_vouched_for_among_damaged_records_the_exact_decoder_reads_alike() -> None:
    """20,000 real records damaged by a recorded seed, side by side in one buffer, as neighbours are in Arrow."""
    random = Random(20261121)
    sampled = [(key, value) for key, value in sample_records() if key[:2] in (b"\x00\x00", b"\x00\x01")]
    records: list[Bytes] = [mutate_record(random, sampled) for _ in range(20_000)]
    answers = vouched(records)
    assert [
        record for record, one in zip(records, answers, strict=True) if one is not None and not agrees(record, one)
    ] == []
    assert 1_000 < sum(one is not None for one in answers) < 15_000, "both sides of the rules were reached"


@given(commits())
def test_no_prefix_of_a_commit_is_vouched_for(record: Bytes) -> None:
    """Bytes cut off at any place: what stands behind them in the buffer is another record's."""
    key, value = record
    assume(value is not None)
    cut: list[Bytes] = [(key, (value or b"")[:end]) for end in range(len(value or b""))]
    cut += [((key or b"")[:end], value) for end in range(len(key or b""))]
    assert set(vouched(cut)) <= {None}


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        *[(commit_key("g"), commit_value(41, version), f"value version {version}") for version in range(5)],
        *[(commit_key("g"), commit_value(41, version, "é" * 50), "metadata beyond ASCII") for version in range(5)],
        (commit_key("g"), commit_value(41, 4, "x" * 126), "the longest metadata with a length of one byte"),
        (commit_key("g"), commit_value(41, 4, topic_id=TOPIC_ID), "a topic id (Kafka 4.1)"),
        (commit_key("g"), commit_value(41, 3, "x" * 4096), "metadata of the broker's limit"),
        (commit_key("", ""), commit_value(41), "empty names are names"),
        (commit_key("g" * 32767, "t" * 249), commit_value(41), "the longest group id"),
        (commit_key("\N{ROCKET}", partition=2**31 - 1), commit_value(41), "names beyond the BMP"),
    ],
)
def test_what_brokers_write_takes_the_fast_way(key: bytes, value: bytes, why: str) -> None:
    """The firehose must not fall to one Python call a record because somebody likes long names."""
    assert vouched([(key, value), (key, None)]) == [41, TOMBSTONE], why


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (None, commit_value(41), "no key"),
        (b"", commit_value(41), "an empty key"),
        (b"\x00", commit_value(41), "half a record type"),
        (group_key("g"), None, "a group's tombstone is no commit's"),
        (commit_key("g", legacy=True), commit_value(41, 0), "legacy keys are spelled anew by the exact way"),
        (commit_key("g") + b"\x00", commit_value(41), "bytes behind the key"),
        (commit_key("g"), commit_value(41) + b"\x00", "bytes behind the value"),
        (commit_key("g"), b"", "an empty value is no tombstone"),
        (commit_key("g"), commit_value(41, 4, "x" * 127), "a length of two bytes"),
        (
            commit_key("g"),
            HEADER_V4 + b"\x90" + b"\x80" * 143 + bytes(9),
            "a length that never ends, of a fitting first byte",
        ),
        (commit_key("g"), commit_value(-1), "no committed offset"),
        (commit_key("g"), b"\x00\x05" + commit_value(41)[2:], "value version 5"),
        (b"\x00\x01\xff\xff\x00\x01t\x00\x00\x00\x00", None, "a null group"),
        (b"\x00\x01\x7f\xff\x00\x01t\x00\x00\x00\x00", None, "a group longer than the key"),
    ],
)
def test_what_is_unusual_is_left_to_the_exact_decoder(key: bytes | None, value: bytes | None, why: str) -> None:
    assert vouched([(key, value), (commit_key("g"), commit_value(7))]) == [None, 7], why


@given(commits(), st.binary(max_size=4), st.booleans())
def test_one_name_has_one_canonical_key(record: Bytes, tail: bytes, legacy: bool) -> None:
    key = record[0] or b""
    respelled = (b"\x00\x00" if legacy else b"\x00\x01") + key[2:] + tail
    assert canonical_key(respelled) == canonical_key(key) == b"\x00\x01" + key[2:]
    assert decode(respelled, None).key == decode(canonical_key(key), None).key
