"""200,000 damaged records, by recorded seeds: each is decoded or refused with its reason, and none takes undue memory.

The input is hostile: anybody who may write to the topic, or to a group's metadata, chooses these bytes.
"""

from __future__ import annotations

import tracemalloc
from collections import Counter
from random import Random

import pytest

from streaming.protocol import RecordType, UndecodableRecord, decode
from streaming.protocol import errors as reasons
from streaming.protocol.classic import Refusal, group_metadata
from streaming.protocol.offset_commit import offset_commit
from streaming.protocol.record_json import render_record
from tests.bench.encoder import varint
from tests.streaming.protocol.mutations import mutate_record
from tests.streaming.protocol.records import golden_lines, raw_record, sample_records

SEEDS = range(20261121, 20261131)
RECORDS_PER_SEED = 20_000
REASONS = {getattr(reasons, name) for name in dir(reasons) if name.isupper()}

# The dearest bytes are those of structs of a few empty fields, a dict and some lists each: up to 90 times their size.
MEMORY_PER_BYTE = 120
MEMORY_PER_RECORD = 16_384


def _whole_records() -> list[tuple[bytes, bytes | None]]:
    """Return the real sample and what Kafka accepted of the golden records: every type and version."""
    golden = [raw_record(line["input"]) for line in golden_lines("records") if "key" in line["kafka"]]
    return sample_records() + golden


WHOLE = _whole_records()


def _outcome(key: bytes, value: bytes | None) -> str:
    """Decode as the monitor does, typed views included; return the reason of a refusal or how far it came.

    A refusal of one member's bytes, which does not cost the record, counts too.
    """
    refusals: list[Refusal] = []
    try:
        record = decode(key, value)
        if record.value is None:
            return "tombstone"
        if record.key_type == RecordType.GROUP_METADATA:
            group_metadata(record, refusals)
        elif record.key_type in (RecordType.OFFSET_COMMIT_LEGACY, RecordType.OFFSET_COMMIT):
            offset_commit(record)
    except UndecodableRecord as refusal:
        return refusal.reason
    return refusals[0][1].reason if refusals else "decoded"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_record_is_decoded_or_refused_with_its_reason(seed: int) -> None:
    random = Random(seed)
    outcomes = Counter(_outcome(*mutate_record(random, WHOLE)) for _ in range(RECORDS_PER_SEED))
    assert set(outcomes) <= REASONS | {"tombstone", "decoded"}
    assert outcomes["decoded"] > RECORDS_PER_SEED / 10, "damage that nothing survives tests little"


def test_every_reason_is_reached_by_the_damage() -> None:
    """A reason that no damaged record reaches would be untested, or dead; these two have tests of their own."""
    random = Random(SEEDS[0])
    reached = {_outcome(*mutate_record(random, WHOLE)) for _ in range(3 * RECORDS_PER_SEED)}
    assert REASONS - reached <= {reasons.MISSING_KEY, reasons.UNKNOWN_EMBEDDED_VERSION}


def test_a_damaged_record_spelled_out_is_an_answer_or_an_error() -> None:
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
def test_a_length_no_record_can_hold_is_refused_before_anything_is_made(key: str, value: str, length: str) -> None:
    raw = bytes.fromhex(value.format(length=length))
    assert _outcome(bytes.fromhex(key), raw) == reasons.ARRAY_TOO_LONG
    _assert_within_budget(bytes.fromhex(key), raw)


def test_the_dearest_record_stays_within_the_budget() -> None:
    """5,000 empty copartition groups of four bytes each: a dict and three lists for every one."""
    groups = bytes.fromhex("01 01 01 00") * 5000
    value = bytes.fromhex("0000 00000001 02 01 01 01 01 01 01") + varint(5001) + groups + bytes(2)
    key = bytes.fromhex("0017 0001 67")
    assert _outcome(key, value) == "decoded"
    _assert_within_budget(key, value)


@pytest.mark.parametrize("count", ["ffffffff07", "ffffffff0f"])
def test_a_tag_count_no_record_can_hold_costs_nothing(count: str) -> None:
    """2,147,483,647 tags are announced and none comes; -1 tags are none."""
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
