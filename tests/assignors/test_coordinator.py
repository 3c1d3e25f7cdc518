"""The coordinator's choices, against values that Java 17 and Kafka 4.2's rule gave."""

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
        ("my-group", -1906497762, 12, "a negative hash takes its absolute value; masking the sign bit would give 36"),
        ("polygenelubricants", -2147483648, 0, "the smallest integer has no absolute value: Kafka says 0"),
        ("gr\u00fcppe", -1233264812, 12, "beyond ASCII it is code units, not UTF-8 bytes"),
        ("\U0001f600 emoji", -1572615351, 1, "a supplementary character is two code units"),
        ("\ud83d", 55357, 7, "a lone surrogate is a code unit like any other"),
        ("console-consumer-99999", 166058136, 36, "the console consumer's kind of name"),
        ("\ufffd\ue000", 2088867, 17, "the end of the basic plane"),
    ],
)
def test_a_group_lives_in_the_partition_javas_hash_says(group_id: str, hash_code: int, partition_of_50: int, why: str):
    """``Utils.abs(groupId.hashCode()) % offsets.topic.num.partitions``."""
    assert (java_string_hash(group_id), coordinator_partition(group_id, 50)) == (hash_code, partition_of_50), why


@given(st.text(st.characters()), st.integers(1, 1000))
def test_every_group_has_a_partition(group_id: str, partitions: int):
    """No group id, however odd, falls outside the topic."""
    assert 0 <= coordinator_partition(group_id, partitions) < partitions


def test_a_topic_without_partitions_holds_no_group():
    """Rather an error than partition 0 of nothing."""
    with pytest.raises(ValueError, match="at least one partition"):
        coordinator_partition("g", 0)


@pytest.mark.parametrize(
    ("preferences", "chosen", "why"),
    [
        ([["range"]], "range", "one member, one strategy"),
        ([["sticky", "range"], ["range"]], "range", "sticky is not offered by all"),
        ([["sticky", "range"], ["sticky", "range"], ["range", "sticky"]], "sticky", "two votes beat one"),
        ([["range", "roundrobin"], ["roundrobin", "range"]], "range", "a tie goes by HashMap order: range is first"),
        ([["roundrobin", "range"], ["range", "roundrobin"]], "range", "and the order of members does not matter"),
        ([["sticky", "range"], ["range", "sticky"]], "sticky", "sticky precedes range in a HashMap"),
        (
            [["cooperative-sticky", "range"], ["range", "cooperative-sticky"]],
            "range",
            "range precedes cooperative-sticky",
        ),
        ([["roundrobin", "cooperative-sticky"], ["cooperative-sticky", "roundrobin"]], "roundrobin", "likewise"),
        ([["Aa", "BB"], ["BB", "Aa"]], "Aa", "equal hashes: the first vote cast comes first"),
        ([["BB", "Aa"], ["Aa", "BB"]], "BB", "equal hashes: the first vote cast comes first"),
    ],
)
def test_members_vote_for_the_strategy(preferences: list[list[str]], chosen: str, why: str):
    """``ClassicGroup.selectProtocol``: candidates are common to all, each member votes its first, most votes win."""
    assert select_protocol(preferences) == chosen, why


def test_the_tie_rule_holds_in_a_hash_map_that_grew():
    """Thirteen entries double Java's table from 16 buckets to 32, and the order with it (read off OpenJDK 17)."""
    names = (
        "s89662 s12961 s50738 s71307 s38279 s57842 s43924 s58883 s77051 s98718 s62004 s5239 s37400".split()  # noqa: SIM905 - a table row
    )
    preferences = [names[first:] + names[:first] for first in range(len(names))]
    assert select_protocol(preferences) == "s57842"


@pytest.mark.parametrize("preferences", [[], [["range"], ["sticky"]], [["range"], []]])
def test_a_group_with_nothing_in_common_has_no_strategy(preferences: list[list[str]]):
    """The coordinator refuses such a join (INCONSISTENT_GROUP_PROTOCOL); we refuse to guess."""
    with pytest.raises(InconsistentGroupProtocolError):
        select_protocol(preferences)
