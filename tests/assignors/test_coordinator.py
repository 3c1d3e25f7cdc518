"""Tests of the coordinator's decisions, with values from Java 17 and Kafka 4.2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.coordinator import (
    InconsistentGroupProtocolError,
    coordinator_partition,
    select_protocol,
)
from assignors.java_hash import java_string_hash


@pytest.mark.parametrize(
    ("group_id", "hash_code", "partition_of_50", "why"),
    [
        ("", 0, 0, "the empty group id hashes to 0"),
        ("a", 97, 47, "one character is its own hash"),
        ("my-group", -1906497762, 12, "a negative hash: its absolute value counts; masking the sign bit would give 36"),
        ("polygenelubricants", -2147483648, 0, "the smallest integer has no absolute value: Kafka uses 0"),
        ("gr\u00fcppe", -1233264812, 12, "the hash uses code units, not UTF-8 bytes"),
        ("\U0001f600 emoji", -1572615351, 1, "a supplementary character is two code units"),
        ("\ud83d", 55357, 7, "a lone surrogate is a normal code unit"),
        ("console-consumer-99999", 166058136, 36, "a group id of the console consumer"),
        ("\ufffd\ue000", 2088867, 17, "the end of the basic plane"),
    ],
)
def test_javas_hash_decides_the_partition_of_a_group(group_id: str, hash_code: int, partition_of_50: int, why: str):
    """``Utils.abs(groupId.hashCode()) % offsets.topic.num.partitions``."""
    assert (java_string_hash(group_id), coordinator_partition(group_id, 50)) == (hash_code, partition_of_50), why


@given(st.text(st.characters()), st.integers(1, 1000))
def test_every_group_has_a_partition(group_id: str, partitions: int):
    """Any group id gives a valid partition."""
    assert 0 <= coordinator_partition(group_id, partitions) < partitions


def test_a_topic_without_partitions_holds_no_group():
    """The function raises an error and does not return partition 0."""
    with pytest.raises(ValueError, match="at least one partition"):
        coordinator_partition("g", 0)


@pytest.mark.parametrize(
    ("preferences", "chosen", "why"),
    [
        ([["range"]], "range", "one member, one strategy"),
        ([["sticky", "range"], ["range"]], "range", "sticky is not offered by all"),
        ([["sticky", "range"], ["sticky", "range"], ["range", "sticky"]], "sticky", "two votes win against one"),
        ([["range", "roundrobin"], ["roundrobin", "range"]], "range", "equal votes: range is first in a HashMap"),
        ([["roundrobin", "range"], ["range", "roundrobin"]], "range", "the order of members does not matter"),
        ([["sticky", "range"], ["range", "sticky"]], "sticky", "sticky precedes range in a HashMap"),
        (
            [["cooperative-sticky", "range"], ["range", "cooperative-sticky"]],
            "range",
            "range precedes cooperative-sticky",
        ),
        (
            [["roundrobin", "cooperative-sticky"], ["cooperative-sticky", "roundrobin"]],
            "roundrobin",
            "roundrobin is first",
        ),
        ([["Aa", "BB"], ["BB", "Aa"]], "Aa", "equal hashes: the first vote cast comes first"),
        ([["BB", "Aa"], ["Aa", "BB"]], "BB", "equal hashes: the first vote cast comes first"),
    ],
)
def test_members_vote_for_the_strategy(preferences: list[list[str]], chosen: str, why: str):
    """``ClassicGroup.selectProtocol``: each member votes for its first common strategy, and most votes win."""
    assert select_protocol(preferences) == chosen, why


def test_the_tie_rule_holds_in_a_hash_map_that_grew():
    """Thirteen entries double Java's table from 16 to 32 buckets, which changes the order (values of OpenJDK 17)."""
    names = (
        "s89662 s12961 s50738 s71307 s38279 s57842 s43924 s58883 s77051 s98718 s62004 s5239 s37400".split()  # noqa: SIM905 - a table row
    )
    preferences = [names[first:] + names[:first] for first in range(len(names))]
    assert select_protocol(preferences) == "s57842"


@pytest.mark.parametrize("preferences", [[], [["range"], ["sticky"]], [["range"], []]])
def test_a_group_with_nothing_in_common_has_no_strategy(preferences: list[list[str]]):
    """The coordinator rejects such a join (INCONSISTENT_GROUP_PROTOCOL). The function raises an error, too."""
    with pytest.raises(InconsistentGroupProtocolError):
        select_protocol(preferences)
