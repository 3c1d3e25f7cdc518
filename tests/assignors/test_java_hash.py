"""Tests of Java's hash tables, with values that OpenJDK 17 printed."""

from __future__ import annotations

import pytest

from assignors.java_hash import hash_map_order, java_string_hash, table_size, topic_partition_hash


@pytest.mark.parametrize(
    ("put", "iterated"),
    [
        ("s64236 s49164 s29485", "s49164 s64236 s29485"),
        (
            "s78044 s89380 s66254 s87968 s96649 s98850 s39534 s31200 s13712 s78708 s88911 s74495",
            "s66254 s78044 s96649 s31200 s13712 s87968 s78708 s89380 s88911 s98850 s39534 s74495",
        ),
        (
            "s89662 s12961 s50738 s71307 s38279 s57842 s43924 s58883 s77051 s98718 s62004 s5239 s37400",
            "s57842 s12961 s77051 s62004 s50738 s89662 s71307 s98718 s37400 s38279 s43924 s5239 s58883",
        ),
        ("Aa BB", "Aa BB"),
        ("BB Aa", "BB Aa"),
    ],
    ids=["three", "twelve, a table of 16", "thirteen, a table of 32", "equal hashes", "equal hashes, other order"],
)
def test_keys_come_in_the_order_of_javas_hash_map(put: str, iterated: str):
    """The order is by bucket, then by insertion. The table doubles when it is three quarters full."""
    assert hash_map_order(put.split()) == iterated.split()


def test_a_table_doubles_after_twelve_twenty_four_and_so_on():
    """``HashMap`` has a load factor of 0.75 and a smallest table of 16."""
    assert [table_size(entries) for entries in (0, 12, 13, 24, 25, 48, 49)] == [16, 16, 32, 32, 64, 64, 128]


def test_a_topic_partition_hashes_by_number_then_topic():
    """``TopicPartition.hashCode``: 31 * (31 * 1 + partition) + topic.hashCode()."""
    assert topic_partition_hash(java_string_hash("a"), 2) == 31 * 33 + 97
