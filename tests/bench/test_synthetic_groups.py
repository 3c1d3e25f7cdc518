"""Tests that the records of synthetic groups are those of a coordinator, and that expected values follow from them."""

from __future__ import annotations

import doctest
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

import tests.bench.synthetic_groups
from streaming.protocol import decode
from streaming.protocol.classic import GroupMetadata, group_metadata
from tests.bench.synthetic_groups import (
    BEHIND_RECORDS,
    FIRST_GENERATION,
    FIRST_OFFSET,
    PARTITIONS,
    SyntheticGroups,
    commit_value,
)

NUMBERS, GENERATIONS = st.integers(0, 9_999), st.integers(1, 50)


def _read(number: int, generation_id: int) -> GroupMetadata:
    return group_metadata(decode(*SyntheticGroups().generation(number, generation_id, 1_000)))


def _held(group: GroupMetadata) -> list[tuple[tuple[str, int], ...]]:
    """Return the partitions of each member."""
    return [member.assignment.partitions for member in group.members if member.assignment is not None]


@given(NUMBERS, GENERATIONS)
def test_a_generation_assigns_every_partition_of_the_group_once(number: int, generation_id: int) -> None:
    """Rules 1 and 2. The monitor's decoder reads the records."""
    group = _read(number, generation_id)
    assert (group.group_id, group.generation_id, group.protocol) == (
        SyntheticGroups().group_id(number),
        generation_id,
        "range",
    )
    assert len(group.members) == (6 if generation_id % 2 == 0 else 5)
    held = [partition for partitions in _held(group) for partition in partitions]
    assert sorted(held) == sorted(SyntheticGroups().partitions(number))
    assert len(held) == PARTITIONS
    assert all(count == SyntheticGroups().topics[topic] for topic, count in Counter(topic for topic, _ in held).items())


@given(NUMBERS)
def test_each_member_that_joins_has_a_new_member_id(number: int) -> None:
    """Rule 2. Brokers, too, create a new member id for each join."""
    ids = [{member.member_id for member in _read(number, generation_id).members} for generation_id in range(1, 8)]
    assert all(stays == ids[0] for stays in ids[2::2])
    newcomers = [joined - ids[0] for joined in ids[1::2]]
    assert [len(joined) for joined in newcomers] == [1, 1, 1]
    assert len(set.union(*newcomers)) == 3


def test_every_fourth_group_is_skewed() -> None:
    """Rule 1. The first two members get the two partitions of each topic."""
    shares = Counter[tuple[bool, tuple[int, ...]]]()
    for number in range(40):
        held = tuple(sorted(len(partitions) for partitions in _held(_read(number, 1))))
        shares[SyntheticGroups().is_skewed(number), held] += 1
    assert shares == {(True, (0, 0, 0, 5, 5)): 10, (False, (2, 2, 2, 2, 2)): 30}


@given(st.integers(1, 12), st.integers(0, 400))
def test_lag_is_what_the_order_of_growth_and_commits_leaves(groups: int, commits: int) -> None:
    """Rule 4, computed step by step: topics grow before each round, then partitions are committed one by one."""
    synthetic_groups, keys = SyntheticGroups(groups), groups * PARTITIONS
    end, committed = FIRST_OFFSET + BEHIND_RECORDS, [FIRST_OFFSET] * keys
    for commit in range(commits):
        end += commit % keys == 0
        committed[commit % keys] = FIRST_OFFSET + 1 + commit // keys
    for number in range(groups):
        of_group = committed[number * PARTITIONS : (number + 1) * PARTITIONS]
        assert synthetic_groups.lag(number, commits) == sum(end - offset for offset in of_group)


@given(st.integers(1, 12), st.integers(0, 60))
def test_the_last_generation_is_that_of_the_last_rebalance(groups: int, rebalances: int) -> None:
    """Rule 3. No group has a second rebalance before every group had its first."""
    synthetic_groups, generations = SyntheticGroups(groups), [FIRST_GENERATION] * groups
    for k in range(rebalances):
        one = synthetic_groups.rebalance(k)
        assert one.generation_id == generations[one.number] + 1
        generations[one.number] = one.generation_id
    assert [synthetic_groups.last_generation(number, rebalances) for number in range(groups)] == generations
    assert max(generations) - min(generations) <= 1


def test_the_decoder_reads_a_commit() -> None:
    record = decode(SyntheticGroups().commit_key(7, ("bench-wide-7", 3)), commit_value(12, 1_000))
    assert record.key == {"group": "bench-synthetic-00007", "topic": "bench-wide-7", "partition": 3}
    assert record.value is not None
    assert (record.value["offset"], record.value["commitTimestamp"]) == (12, 1_000)


def test_the_docstring_examples_are_correct() -> None:
    assert doctest.testmod(tests.bench.synthetic_groups).failed == 0
