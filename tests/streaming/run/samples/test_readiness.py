"""Tests of readiness.

A cluster is ready if the log is read to its end at the start, the query is alive, and verdicts are computed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.incidents.evidence import LEADERLESS_MS
from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.run.samples.readiness import EVALUATED_WITHIN_SAMPLES, Readiness, is_caught_up, log_ends

ENDS = {0: 10, 1: 0, 2: 7}


def sample(ends: Mapping[int, int], partitions: int | None = None, hidden_records: int = 0) -> ClusterSample:
    """Return a sample with these last stable offsets. The high watermark is `hidden_records` higher."""
    known = {partition: LogEnds(end + hidden_records, end) for partition, end in ends.items()}
    count = len(ends) if partitions is None else partitions
    leaders = dict.fromkeys(range(count), 1)
    return ClusterSample(0, offsets_topic=known, offsets_topic_partitions=count, offsets_topic_leaders=leaders)


def ready(
    positions: Mapping[int, int], known: ClusterSample, readiness: Readiness | None = None, *, evaluated: bool = True
) -> bool:
    """Evaluate readiness after one sample."""
    return (readiness or Readiness(lambda: True, log_ends)).after(positions, known, is_evaluated=evaluated)


@pytest.mark.parametrize(
    ("positions", "known", "is_ready", "why"),
    [
        ({0: 10, 1: 0, 2: 7}, sample(ENDS), True, "every partition is read to its end"),
        ({0: 12, 2: 9}, sample(ENDS), True, "some are read further, and partition 1 has no record"),
        ({0: 9, 1: 0, 2: 7}, sample(ENDS), False, "one record is missing"),
        ({0: 10, 1: 0}, sample(ENDS), False, "no record of partition 2 was read"),
        (
            {0: 10, 1: 0, 2: 7},
            sample(ENDS, hidden_records=5),
            True,
            "records after the start of an open transaction cannot be read",
        ),
        ({}, sample({0: 0, 1: 0}), True, "an empty log needs no reading"),
        ({}, sample({}), False, "no end offset is known; this once counted as ready although nothing was read"),
        ({}, sample({}, partitions=50), False, "the topic has 50 partitions, and no end offset is known"),
        ({0: 10}, sample({0: 10}, partitions=2), False, "the end offset of one partition is unknown"),
    ],
)
def test_a_cluster_is_ready_when_the_log_is_read_to_its_end(
    positions: Mapping[int, int], known: ClusterSample, is_ready: bool, why: str
) -> None:
    assert ready(positions, known) == is_ready, why


def test_the_target_is_the_end_offsets_of_the_first_complete_sample() -> None:
    """With newer targets, a log that grows all the time would never be read to its target."""
    readiness = Readiness(lambda: True, log_ends)
    assert not ready({0: 5}, sample({0: 10}, partitions=2), readiness), "an incomplete sample sets no target"
    assert not ready({0: 5, 1: 0}, sample({0: 20, 1: 0}), readiness)
    assert not ready({0: 19, 1: 0}, sample({0: 500, 1: 0}), readiness)
    assert ready({0: 20, 1: 0}, sample({0: 900, 1: 0}), readiness)
    assert ready({0: 21, 1: 0}, sample({}, partitions=2), readiness), "a target that was reached stays reached"


def test_a_dead_query_is_not_ready() -> None:
    alive = [True]
    readiness = Readiness(lambda: alive[0], log_ends)
    assert ready({0: 10}, sample({0: 10}), readiness)
    alive[0] = False
    assert not ready({0: 10}, sample({0: 10}), readiness)


def test_a_log_with_a_partition_without_leader_is_not_ready() -> None:
    """A broker died, and one partition has no replica. Spark reads no partition, so commits of all groups are old."""
    readiness, whole = Readiness(lambda: True, log_ends), sample({0: 10, 1: 5})
    assert ready({0: 10, 1: 5}, whole, readiness)
    for leaders in ({0: 1}, {}):
        lost = replace(whole, offsets_topic_leaders=leaders)
        assert ready({0: 10, 1: 5}, lost, readiness), "a new leader is usually elected in a second"
        assert not ready({0: 10, 1: 5}, replace(lost, sampled_at_ms=LEADERLESS_MS), readiness)
        later = sample({0: 10, 1: 9_000})
        assert not ready({0: 10, 1: 5}, later, readiness), "the broker is back, but the new commits are not read"
        assert ready({0: 10, 1: 9_000}, later, readiness)
    polled = Readiness(lambda: True, lambda one: {0: one.offsets_topic[0].last_stable_offset})
    lost = replace(whole, offsets_topic_leaders={0: 1})
    assert ready({0: 10, 1: 5}, lost, polled)
    assert ready({0: 10, 1: 5}, replace(lost, sampled_at_ms=LEADERLESS_MS), polled), "polling does not read the log"


def test_a_restarted_query_has_to_catch_up_again() -> None:
    readiness = Readiness(lambda: True, log_ends)
    assert ready({0: 10}, sample({0: 10}), readiness)
    readiness.start_over()
    assert not ready({0: 10}, sample({0: 15}), readiness)
    assert ready({0: 15}, sample({0: 99}), readiness)


def test_readiness_waits_for_verdicts_but_not_for_ever() -> None:
    """If new groups appear all the time, some group always waits for a fact."""
    readiness = Readiness(lambda: True, log_ends)
    results = [ready({0: 10}, sample({0: 10}), readiness, evaluated=False) for _ in range(EVALUATED_WITHIN_SAMPLES)]
    assert results == [False] * (EVALUATED_WITHIN_SAMPLES - 1) + [True]
    readiness.start_over()
    assert not ready({0: 5}, sample({0: 10}), readiness, evaluated=False), "the wait starts when the log is read"
    assert ready({0: 10}, sample({0: 10}), readiness, evaluated=True)


def test_a_sample_changes_nothing_from_the_first_target_until_the_log_is_read() -> None:
    """2 million records took 20 s to read. The sampler took a sample per second in this time, for nothing."""
    readiness = Readiness(lambda: True, log_ends)
    reading = [readiness.is_reading_log]
    for position in (0, 5, 10):
        ready({0: position}, sample({0: 10}), readiness, evaluated=False)
        reading.append(readiness.is_reading_log)
    assert reading == [False, True, True, False], "before the first sample, and while verdicts are missing: False"


def test_progress_before_and_during_a_wait_ends_the_wait_once() -> None:
    """Otherwise, the cluster could be ready for several seconds before a sample shows it."""
    readiness = Readiness(lambda: True, log_ends)
    readiness.start_over()
    waits = [waited_seconds(readiness, 30), waited_seconds(readiness, 0.05)]
    threading.Timer(0.05, readiness.report_progress).start()
    waits.append(waited_seconds(readiness, 30))
    assert waits[0] < 10 > waits[2]
    assert waits[1] >= 0.05, "each report ends one wait"


def waited_seconds(readiness: Readiness, at_most_seconds: float) -> float:
    started = time.monotonic()
    readiness.wait_for_progress(at_most_seconds)
    return time.monotonic() - started


def test_the_source_sets_the_target_and_without_a_target_nothing_is_ready() -> None:
    """In polling mode the end offsets of the log are unknown. The first poll is the target instead."""
    targets: list[Mapping[int, int]] = []
    readiness = Readiness(lambda: True, lambda _: targets[0] if targets else None)
    assert not ready({-1: 9}, sample({}), readiness)
    targets.append({-1: 10})
    assert not ready({-1: 9}, sample({}), readiness)
    assert ready({-1: 10}, sample({}), readiness)


class _Interrupted(dict[int, int]):
    """Positions that let a different thread restart the query when they are first read."""

    def __init__(self, positions: Mapping[int, int], readiness: Readiness) -> None:
        super().__init__(positions)
        self.restart = threading.Thread(target=readiness.start_over)

    def get(self, partition: int, default: int = 0) -> int:  # type: ignore[override]
        """Let the other thread run first."""
        if not self.restart.is_alive():
            self.restart.start()
            self.restart.join(0.1)
        return super().get(partition, default)


def test_a_query_restarted_during_an_evaluation_is_not_ready_by_the_old_target() -> None:
    """The sampler evaluates the old query in one thread while another thread restarts it. Its result must not count."""
    readiness = Readiness(lambda: True, log_ends)
    positions = _Interrupted({0: 10}, readiness)
    ready(positions, sample({0: 10}), readiness)
    positions.restart.join()
    assert not ready({0: 10}, sample({0: 15}), readiness)


OFFSETS = st.dictionaries(st.integers(0, 5), st.integers(0, 9))


@given(OFFSETS, OFFSETS)
def test_reading_further_never_makes_a_query_less_caught_up(positions: dict[int, int], targets: dict[int, int]) -> None:
    further = {partition: position + 1 for partition, position in positions.items()}
    assert is_caught_up(positions, targets) <= is_caught_up(further, targets)
    assert is_caught_up(targets, targets)
