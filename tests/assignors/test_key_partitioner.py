"""Tests of the default partitioner, with the partitions that Kafka 4.2.0's own class computed."""

from __future__ import annotations

from base64 import b64decode

import pytest

from assignors.key_partitioner import murmur2, partition_for_key, share_of_moved_keys, to_positive
from tests.assignors.golden import golden_lines

PARTITION_COUNTS = [1, 2, 3, 7, 24, 100, 2_147_483_647]
"""Partition counts in the golden file. The largest one shows nearly the whole hash."""


def test_kafka_writes_random_keys_to_the_same_partitions():
    """``BuiltInPartitioner.partitionForKey`` for 10,000 keys of 0 to 24 bytes."""
    lines = golden_lines("key-partitions")
    assert len(lines) == 10_000
    different = [
        key
        for key, partitions in lines
        if [partition_for_key(b64decode(key), count) for count in PARTITION_COUNTS] != partitions
    ]
    assert different == []


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_the_hash_of_kafkas_own_test(key: bytes, hashed: int):
    """The table of ``UtilsTest.testMurmur2``. The hash is signed, as in Java."""
    assert murmur2(key) == hashed


@pytest.mark.parametrize(
    ("number", "positive", "why"),
    [
        (0, 0, "not negative"),
        (2_147_483_647, 2_147_483_647, "the largest number"),
        (-1, 2_147_483_647, "only the sign bit is cleared; the absolute value is 1"),
        (-2_147_483_648, 0, "the smallest number has no absolute value"),
    ],
)
def test_a_negative_hash_loses_its_sign_bit(number: int, positive: int, why: str):
    """``Utils.toPositive``. ``Utils.abs``, which chooses a group's coordinator, is a different function."""
    assert to_positive(number) == positive, why


def test_a_topic_without_partitions_has_no_partition_for_a_key():
    """The function raises an error and does not return partition 0."""
    with pytest.raises(ValueError, match="at least one partition"):
        partition_for_key(b"key", 0)


@pytest.mark.parametrize(
    ("before", "after", "percent", "why"),
    [
        (12, 24, 50, "a multiple: half of the keys of each partition stay"),
        (1, 10, 90, "one partition stays one of ten"),
        (10, 12, 83, "no multiple: two partitions more move most keys"),
        (7, 8, 88, "no common divisor: one key of eight stays"),
        (5, 5, 0, "the same count"),
    ],
)
def test_the_share_of_moved_keys_is_the_share_that_the_partitioner_moves(
    before: int, after: int, percent: int, why: str
):
    """The rule follows from the remainders. The partitioner moves the same share of 10,000 random keys, +/- 2 %."""
    assert round(share_of_moved_keys(before, after) * 100) == percent, why
    keys = [b64decode(key) for key, _ in golden_lines("key-partitions")]
    moved = sum(partition_for_key(key, before) != partition_for_key(key, after) for key in keys)
    assert moved / len(keys) == pytest.approx(float(share_of_moved_keys(before, after)), abs=0.02)


@pytest.mark.parametrize(("before", "after"), [(3, 2), (0, 2)])
def test_a_topic_cannot_shrink(before: int, after: int):
    """Kafka refuses to reduce the number of partitions."""
    with pytest.raises(ValueError, match="cannot change"):
        share_of_moved_keys(before, after)
