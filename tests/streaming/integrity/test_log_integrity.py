"""Tests that a replaced log is found. The numbers are the rules of `log_integrity`."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.integrity.log_integrity
from streaming.combine.partition_state import PartitionSnapshot
from streaming.evaluation.lag.lag import LogEnds
from streaming.integrity.log_integrity import (
    count_lost_offsets,
    find_backward_positions,
    find_recreated_partitions,
    find_truncated_partitions,
)


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.integrity.log_integrity).failed == 0


@pytest.mark.parametrize(
    ("positions", "read_id", "topic_id", "another", "why"),
    [
        ({0: 9, 1: 9}, "A", "A", set(), "the topic id is the same"),
        ({0: 9, 1: 9}, "A", "B", {0, 1}, "recreated, for any present length"),
        ({0: 0, 1: 9}, "A", "B", {1}, "nothing was read from one partition, so it cannot be confused with the new one"),
        ({}, "A", "B", set(), "nothing was read at all"),
        ({0: 9}, None, "B", set(), "a checkpoint of an older monitor has no topic id"),
        (
            {0: 9},
            "A",
            None,
            set(),
            "the topic is absent at the moment, or brokers were downgraded to a version before 2.8",
        ),
        ({-1: 9}, "A", "B", set(), "answers of coordinators are not a log"),
    ],
)
def test_a_topic_with_a_different_id_is_a_different_log(
    positions: dict[int, int], read_id: str | None, topic_id: str | None, another: set[int], why: str
) -> None:
    """Rule 3: KIP-516."""
    assert find_recreated_partitions(positions, read_id, topic_id) == another, why


@pytest.mark.parametrize(
    ("last_offset", "end", "is_rewound", "why"),
    [
        (99, 100, False, "all records are read"),
        (99, 5_000, False, "more records can be read"),
        (97, 100, False, "it ends with transaction markers, which consumers do not receive"),
        (99, 99, True, "an unclean leader election cost the last record"),
        (99, 3, True, "recreated, and commits were written since"),
        (99, 0, True, "the topic was recreated"),
        (-1, 0, False, "nothing was read from it yet"),
    ],
)
def test_a_partition_that_ends_before_the_read_offset_is_a_different_one(
    last_offset: int, end: int, is_rewound: bool, why: str
) -> None:
    """Rule 1: KAFKA-3410 and every `unclean.leader.election.enable=true`."""
    partition_states = {0: PartitionSnapshot(0, last_offset=last_offset)}
    assert bool(find_truncated_partitions(partition_states, {0: LogEnds(end, end)})) == is_rewound, why


OFFSETS = st.dictionaries(st.integers(-1, 5), st.integers(0, 50))
GROWTH = st.dictionaries(st.integers(-1, 5), st.integers(0, 50))


@given(OFFSETS, GROWTH)
def test_a_log_that_only_grows_is_never_rewound_and_loses_nothing(read: dict[int, int], growth: dict[int, int]) -> None:
    """It is read up to any offset. It can grow by any number of records, and partitions can be added."""
    ends = {
        number: LogEnds(end, end, log_start=0)
        for number in {*read, *growth}
        if (end := read.get(number, 0) + growth.get(number, 0)) >= 0
    }
    partition_states = {
        number: PartitionSnapshot(number, last_offset=position - 1) for number, position in read.items()
    }
    assert not find_truncated_partitions(partition_states, ends)
    assert not find_backward_positions(read, {number: log_ends.high_watermark for number, log_ends in ends.items()})
    assert not count_lost_offsets(read, ends)


def test_positions_of_answers_are_not_a_log() -> None:
    """With `source.kind = admin-api` the monitor makes the positions from a clock, which can be set back."""
    assert not find_backward_positions({-1: 1_000}, {-1: 10})


def test_partitions_without_a_broker_answer_are_not_evaluated() -> None:
    """Rules 1 to 3: a partition without a leader has no known end, and an old broker may return no start."""
    partition_states = {0: PartitionSnapshot(0, last_offset=9)}
    assert not find_truncated_partitions(partition_states, {})
    assert count_lost_offsets({0: 10}, {0: LogEnds(50, 50)}) == {}
