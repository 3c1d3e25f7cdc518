"""Tests with 200,000 damaged records from fixed seeds. Each is decoded or refused with a reason, with limited memory.

The input is hostile: any client with write permission, and any member of a group, can choose these bytes.
"""

from __future__ import annotations

import tracemalloc
from collections import Counter
from random import Random

import pytest

from streaming.protocol import RecordType, UndecodableRecord, decode
from streaming.protocol import errors as reasons
from streaming.protocol.classic import Refusal, group_metadata
from streaming.protocol.offset_commit import KEY_TYPES
from streaming.protocol.record_json import render_record
from tests.bench.encoder import varint
from tests.streaming.protocol.mutations import mutate_record
from tests.streaming.protocol.records import golden_lines, raw_record, sample_records

SEEDS = range(20261121, 20261131)
RECORDS_PER_SEED = 20_000
REASONS = {getattr(reasons, name) for name in dir(reasons) if name.isupper()}

# The most expensive bytes are structs of a few empty fields. Each becomes a dict and lists of up to 90 times the size.
MEMORY_PER_BYTE = 120
MEMORY_PER_RECORD = 16_384


def _whole_records() -> list[tuple[bytes, bytes | None]]:
    """Return the real sample and the golden records that Kafka accepted, with every type and version."""
    golden = [raw_record(line["input"]) for line in golden_lines("records") if "key" in line["kafka"]]
    return sample_records() + golden


WHOLE = _whole_records()


def _outcome(key: bytes, value: bytes | None) -> str:
    """Decode like the monitor, with typed views. Return the reason of a refusal or the reached step.

    A refusal of only one member's bytes is also counted.
    """
    refusals: list[Refusal] = []
    try:
        record = decode(key, value)
        if record.value is None:
            return "tombstone"
        if record.key_type == RecordType.GROUP_METADATA:
            group_metadata(record, refusals)
        elif record.key_type in KEY_TYPES:
            assert isinstance(record.value["offset"], int)
    except UndecodableRecord as refusal:
        return refusal.reason
    return refusals[0][1].reason if refusals else "decoded"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_record_is_decoded_or_refused_with_its_reason(seed: int) -> None:
    random = Random(seed)
    outcomes = Counter(_outcome(*mutate_record(random, WHOLE)) for _ in range(RECORDS_PER_SEED))
    assert set(outcomes) <= REASONS | {"tombstone", "decoded"}
    assert outcomes["decoded"] > RECORDS_PER_SEED / 10, "enough damaged records are still decodable"


def test_the_damaged_records_reach_every_reason() -> None:
    """A reason that no damaged record reaches is untested or dead code. The two exceptions have their own tests."""
    random = Random(SEEDS[0])
    reached = {_outcome(*mutate_record(random, WHOLE)) for _ in range(3 * RECORDS_PER_SEED)}
    assert REASONS - reached <= {reasons.MISSING_KEY, reasons.UNKNOWN_EMBEDDED_VERSION}


def test_a_damaged_record_as_json_is_a_result_or_an_error() -> None:
    random = Random(SEEDS[1])
    for _ in range(RECORDS_PER_SEED):
        answer = render_record(*mutate_record(random, WHOLE))
        assert answer.keys() in ({"error", "field"}, {"record", "key", "value"}, {"record", "key", "value", "decoded"})


def test_no_damaged_record_takes_more_memory_than_its_size_justifies() -> None:
    random = Random(SEEDS[2])
    damaged = [mutate_record(random, WHOLE) for _ in range(RECORDS_PER_SEED // 4)]
    for key, value in damaged:
        _assert_within_budget(key, value)


@pytest.mark.parametrize("length", ["7fffffff", "00ffffff", "0000ffff"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("0002 0001 67", "0003 0000 00000001 ffff ffff 0000000000000007 {length}"),
        (
            "0002 0001 67",
            (
                "0003 0008 636f6e73756d6572 00000001 ffff ffff 0000000000000007 00000001 "
                "0001 6d ffff 0001 63 0001 68 00000001 00000001 0000000a 0003 {length} 00000000 00000000"
            ),
        ),
    ],
    ids=["members", "topics of an embedded subscription"],
)
def test_a_length_that_no_record_can_have_is_refused_before_memory_is_allocated(
    key: str, value: str, length: str
) -> None:
    raw = bytes.fromhex(value.format(length=length))
    assert _outcome(bytes.fromhex(key), raw) == reasons.ARRAY_TOO_LONG
    _assert_within_budget(bytes.fromhex(key), raw)


def test_the_most_expensive_record_stays_within_the_memory_limit() -> None:
    """It has 5,000 empty copartition groups of four bytes each. Every group becomes a dict and three lists."""
    groups = bytes.fromhex("01 01 01 00") * 5000
    value = bytes.fromhex("0000 00000001 02 01 01 01 01 01 01") + varint(5001) + groups + bytes(2)
    key = bytes.fromhex("0017 0001 67")
    assert _outcome(key, value) == "decoded"
    _assert_within_budget(key, value)


@pytest.mark.parametrize("count", ["ffffffff07", "ffffffff0f"])
def test_a_tag_count_that_no_record_can_have_allocates_nothing(count: str) -> None:
    """The record announces 2,147,483,647 tags but has none. A count of -1 means no tags."""
    raw = bytes.fromhex(f"0000 00000005 {count}")
    assert _outcome(bytes.fromhex("0003 0001 67"), raw) in {reasons.TRUNCATED, "decoded"}
    _assert_within_budget(bytes.fromhex("0003 0001 67"), raw)


def _assert_within_budget(key: bytes, value: bytes | None) -> None:
    tracemalloc.start()
    try:
        _outcome(key, value)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= MEMORY_PER_RECORD + MEMORY_PER_BYTE * len(key + (value or b"")), (key, value)
