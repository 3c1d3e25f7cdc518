"""Tests of sampled offsets by partition name: they survive storing, and deleted topics are removed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.stored.sampled_offsets import (
    KEEP_UNSAMPLED_MS,
    STORED_SCHEMA,
    STORED_VERSION,
    SampledOffsets,
)
from streaming.group.codec import StateVersionError

SAMPLE = st.dictionaries(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2)), st.integers(0, 9))


def known(sampled: SampledOffsets) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Return all points by name."""
    names = [("a", number) for number in range(3)] + [("b", number) for number in range(3)]
    rows = sampled.rows(pa.array([topic for topic, _ in names]), np.array([number for _, number in names]))
    return {name: sampled.points.of_row(row) for name, row in zip(names, rows.tolist(), strict=True) if row >= 0}


@given(st.lists(SAMPLE, max_size=12), st.integers(3, 5))
def test_stored_points_are_restored_and_continue_in_the_same_way(
    samples: list[dict[tuple[str, int], int]], limit: int
) -> None:
    """A restart between any two samples gives the same points as no restart."""
    without, with_restarts = SampledOffsets(limit), SampledOffsets(limit)
    for tick, sample in enumerate(samples):
        assert without.add(sample, tick) == with_restarts.add(sample, tick)
        with_restarts = SampledOffsets.decode(*with_restarts.encode(), limit)
        assert known(with_restarts) == known(without)


def test_a_different_version_is_refused_with_the_version() -> None:
    with pytest.raises(StateVersionError, match=f"version {STORED_VERSION + 1}"):
        SampledOffsets.decode(STORED_VERSION + 1, b"", 60)


def test_the_stored_form_is_that_of_version_1() -> None:
    """Stored bytes outlive the program, so a change of the schema needs a new version."""
    sampled = SampledOffsets(60)
    sampled.add({("a", 1): 5, ("b", 0): 6}, 10)
    sampled.add({("a", 1): 7}, 20)
    version, encoded = sampled.encode()
    stored = pa.ipc.open_stream(encoded).read_all()
    assert (version, stored.schema) == (1, STORED_SCHEMA)
    assert [tuple(row.values()) for row in stored.to_pylist()] == [("a", 1, 5, 10), ("a", 1, 7, 20), ("b", 0, 6, 10)]


def test_a_partition_whose_offset_fell_is_reported_once() -> None:
    sampled = SampledOffsets(60)
    sampled.add({("a", 0): 5, ("a", 1): 5}, 10)
    assert sampled.add({("a", 0): 4, ("a", 1): 5}, 20) == [("a", 0)]
    assert sampled.add({("a", 0): 4, ("a", 1): 5}, 30) == []
    assert known(sampled) == {("a", 0): [(4, 20), (4, 30)], ("a", 1): [(5, 10), (5, 30)]}


def test_an_empty_sample_is_ignored() -> None:
    sampled = SampledOffsets(60)
    assert sampled.add({}, 10) == []
    assert len(SampledOffsets.decode(*sampled.encode(), 60)) == 0


def test_memory_does_not_grow_with_deleted_topics() -> None:
    """New topic names are used every day for a year. Topics that were not sampled for a day are removed."""
    sampled = SampledOffsets(3)
    for day in range(365):
        sampled.add({(f"day-{day}", number): 1 for number in range(20)}, day * KEEP_UNSAMPLED_MS)
    assert len(sampled) <= 80
    rows = sampled.rows(pa.array(["day-364", "day-0"]), np.array([19, 0]))
    assert sampled.points.of_row(rows[0]) == [(1, 364 * KEEP_UNSAMPLED_MS)]
    assert rows[1] == -1
    assert sampled.sampled_at(rows, 364 * KEEP_UNSAMPLED_MS).tolist() == [True, False]


@pytest.mark.parametrize(("forgotten", "left"), [(["a"], {"b"}), (["a", "b"], set()), (["c"], {"a", "b"})])
def test_a_topic_that_was_created_again_starts_without_points(forgotten: list[str], left: set[str]) -> None:
    """The points of other topics stay. A forgotten topic gets a new first point with its next sample."""
    sampled = SampledOffsets(60)
    sampled.add({("a", 0): 5, ("b", 0): 6}, 10)
    sampled.forget_topics(forgotten)
    assert sampled.topics == left
    sampled.add({("a", 0): 7, ("b", 0): 7}, 20)
    old = {topic: [(offset, 10)] for topic, offset in (("a", 5), ("b", 6)) if topic in left}
    assert known(sampled) == {(topic, 0): [*old.get(topic, []), (7, 20)] for topic in ("a", "b")}
