"""Tests of readiness.

A cluster is ready if the log is read to its end at the start, the query is alive, and verdicts are computed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.incidents.evidence import LEADERLESS_MS
from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.run.cluster_clock import ClusterClock
from streaming.run.samples.readiness import (
    EVALUATED_WITHIN_SAMPLES,
    Readiness,
    is_caught_up,
    log_ends,
    max_unread_seconds,
)

ENDS = {0: 10, 1: 0, 2: 7}
MAX_UNREAD_MS, INTERVAL_MS = 1000 * max_unread_seconds(trigger_seconds=2), 5_000
"""The values with the default settings."""


def sample(
    ends: Mapping[int, int], partitions: int | None = None, hidden_records: int = 0, at_ms: int = 0
) -> ClusterSample:
    """Return a sample with these last stable offsets. The high watermark is `hidden_records` higher."""
    known = {partition: LogEnds(end + hidden_records, end) for partition, end in ends.items()}
    count = len(ends) if partitions is None else partitions
    leaders = dict.fromkeys(range(count), 1)
    return ClusterSample(at_ms, offsets_topic=known, offsets_topic_partitions=count, offsets_topic_leaders=leaders)


def ready(
    positions: Mapping[int, int], known: ClusterSample, readiness: Readiness | None = None, *, evaluated: bool = True
) -> bool:
    """Evaluate readiness after one sample."""
    return (readiness or Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)).after(
        positions, known, is_evaluated=evaluated
    )


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
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    assert not ready({0: 5}, sample({0: 10}, partitions=2), readiness), "an incomplete sample sets no target"
    assert not ready({0: 5, 1: 0}, sample({0: 20, 1: 0}), readiness)
    assert not ready({0: 19, 1: 0}, sample({0: 500, 1: 0}), readiness)
    assert ready({0: 20, 1: 0}, sample({0: 900, 1: 0}), readiness)
    assert ready({0: 21, 1: 0}, sample({}, partitions=2), readiness), "a target that was reached stays reached"


def test_a_dead_query_is_not_ready() -> None:
    alive = [True]
    readiness = Readiness("prod", lambda: alive[0], log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    assert ready({0: 10}, sample({0: 10}), readiness)
    alive[0] = False
    assert not ready({0: 10}, sample({0: 10}), readiness)


def test_a_log_with_a_partition_without_leader_is_not_ready() -> None:
    """A broker died, and one partition has no replica. Spark reads no partition, so commits of all groups are old."""
    readiness, whole = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS), sample({0: 10, 1: 5})
    assert ready({0: 10, 1: 5}, whole, readiness)
    for leaders in ({0: 1}, {}):
        lost = replace(whole, offsets_topic_leaders=leaders)
        assert ready({0: 10, 1: 5}, lost, readiness), "a new leader is usually elected in a second"
        assert not ready({0: 10, 1: 5}, replace(lost, sampled_at_ms=LEADERLESS_MS), readiness)
        later = sample({0: 10, 1: 9_000})
        assert not ready({0: 10, 1: 5}, later, readiness), "the broker is back, but the new commits are not read"
        assert ready({0: 10, 1: 9_000}, later, readiness)
    polled = Readiness(
        "prod", lambda: True, lambda one: {0: one.offsets_topic[0].last_stable_offset}, MAX_UNREAD_MS, INTERVAL_MS
    )
    lost = replace(whole, offsets_topic_leaders={0: 1})
    assert ready({0: 10, 1: 5}, lost, polled)
    assert ready({0: 10, 1: 5}, replace(lost, sampled_at_ms=LEADERLESS_MS), polled), "polling does not read the log"


def test_after_a_suspension_a_cluster_is_not_ready_until_the_query_has_read_the_log_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The machine was suspended for an hour. Then each healthy group had a lag of an hour, and an incident.

    After a suspension, a first sample without all ends is usual, because the old connections are dead.
    """
    readiness, hour_ms = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS), 3_600_000
    assert ready({0: 10}, sample({0: 10}), readiness)
    assert not ready({0: 10}, sample({}, partitions=1, at_ms=hour_ms), readiness)
    assert not ready({0: 10}, sample({0: 99}, at_ms=hour_ms + 1_000), readiness)
    assert not ready({0: 98}, sample({0: 120}, at_ms=hour_ms + 5_000), readiness)
    (message,) = caplog.messages
    assert message.startswith("prod: the last sample was 3600 seconds old, so commits can be missing. Until")
    assert ready({0: 99}, sample({0: 140}, at_ms=hour_ms + 10_000), readiness)


@pytest.mark.parametrize("interval_seconds", [1, 5, 15])
def test_a_query_that_hangs_is_found_within_two_minutes(
    interval_seconds: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Then the newest commits are missing, and healthy groups look late."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    is_ready = {
        second: ready({0: min(second, 300) - 3}, sample({0: second}, at_ms=1000 * second), readiness)
        for second in range(10, 900, interval_seconds)
    }
    found = min(second for second in is_ready if second > 300 and not is_ready[second])
    assert 300 + MAX_UNREAD_MS / 1000 < found <= 420
    assert not any(is_ready[second] for second in is_ready if second >= found)
    (message,) = caplog.messages
    behind_seconds = int(message.removeprefix("prod: the monitor is at least ").partition(" ")[0])
    assert MAX_UNREAD_MS / 1000 <= behind_seconds <= found - 297, "the true value is known to be at least this"


@pytest.mark.parametrize(
    ("starts", "why"),
    [
        ([0, 5, 10, 60, 65, 70, 75], "the sample at 10 took 50 seconds"),
        ([0, 5, 10, 70, 71, 75, 80], "the request before the end offsets took a minute"),
        (list(range(0, 600, 60)), "every sample took a minute"),
    ],
)
def test_slow_brokers_do_not_make_a_healthy_query_late(
    starts: list[int], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The ends of a slow sample are newer than the sample. A query that is 8 s behind seemed to be a minute behind."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    ready({0: 0}, sample({0: 0}), readiness)
    for start, next_start in pairwise(starts):
        assert ready({0: start - 8}, sample({0: next_start}, at_ms=1000 * start), readiness), why
    assert not caplog.messages


def test_after_a_minute_without_a_sample_only_the_age_of_the_sample_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The query was 3 s behind, and the log said 70 s. The runbook then says that the monitor needs more cores."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    starts = (5, 10, 80, 85)
    ready({0: 0}, sample({0: 0}), readiness)
    is_ready = [ready({0: start - 3}, sample({0: start}, at_ms=1000 * start), readiness) for start in starts]
    assert is_ready == [True, True, False, True], "the sample of second 10 was stale already"
    (message,) = caplog.messages
    assert "the last sample was 70 seconds old" in message
    assert "behind" not in message


def test_at_an_interval_of_a_minute_an_old_sample_and_a_query_that_hangs_are_found_within_minutes() -> None:
    """The limits grew with the interval: 12 minutes after the first unread record, the cluster was still ready."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, 60_000)
    ready({0: 0}, sample({0: 0}), readiness)
    assert all(ready({0: at - 3}, sample({0: at}, at_ms=1000 * at), readiness) for at in range(60, 660, 60))
    assert not ready({0: 600}, sample({0: 800}, at_ms=800_000), readiness), "a suspension of more than two minutes"
    assert ready({0: 855}, sample({0: 860}, at_ms=860_000), readiness)
    is_ready = [ready({0: 860}, sample({0: at}, at_ms=1000 * at), readiness) for at in range(920, 1_400, 60)]
    assert is_ready == [True] * 4 + [False] * 4


def test_a_target_that_an_unclean_election_removed_does_not_keep_the_cluster_not_ready() -> None:
    """The log was cut from 1,000 to 950 during the first read. The partition was idle, so no record had offset 999."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    assert not ready({0: 500, 1: 7}, sample({0: 1_000, 1: 7}), readiness)
    assert not ready({0: 900, 1: 7}, sample({0: 950}, partitions=2, at_ms=5_000), readiness)
    assert ready({0: 950, 1: 7}, sample({0: 950, 1: 7}, at_ms=10_000), readiness)


def test_a_removed_record_does_not_make_a_healthy_query_late(caplog: pytest.LogCaptureFixture) -> None:
    """The query had not read the last records when an unclean leader election removed them. It seemed to be late."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    assert ready({0: 900}, sample({0: 900}), readiness)
    assert ready({0: 900}, sample({0: 1_000}, at_ms=5_000), readiness)
    assert ready({0: 920}, sample({0: 1_010}, at_ms=10_000), readiness)
    assert all(ready({0: 950}, sample({0: 950}, at_ms=1000 * at), readiness) for at in range(15, 200, 5))
    assert not caplog.messages


def test_an_unknown_end_of_one_partition_does_not_make_a_healthy_query_late(caplog: pytest.LogCaptureFixture) -> None:
    """One leader returned no end for three minutes. The cluster was not ready, although the query had read all."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    for second in range(0, 400, 5):
        ends = {0: second} if 20 <= second < 200 else {0: second, 1: 0}
        assert ready({0: second - 3, 1: 0}, sample(ends, 2, at_ms=1000 * second), readiness) == (second > 0)
    assert not caplog.messages


@pytest.mark.parametrize("step_seconds", [3_600, -3_600])
@pytest.mark.parametrize("hangs", [False, True])
def test_a_step_of_the_clock_neither_hides_nor_invents_a_late_query(
    step_seconds: int, hangs: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The clock was set by an hour. A healthy query seemed to be late, or a hanging query stayed ready for an hour."""
    clock, readiness = (
        _SteppedClock(step_seconds),
        Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS),
    )
    ready({0: 0}, clock.sample({0: 0}, 0), readiness)
    is_ready = {
        second: ready({0: (min(second, 30) if hangs else second) - 3}, clock.sample({0: second}, second), readiness)
        for second in range(5, 300, 5)
    }
    assert {second for second in is_ready if not is_ready[second]} == (set(range(105, 300, 5)) if hangs else set())
    assert len([message for message in caplog.messages if "behind" in message]) == hangs


@pytest.mark.parametrize("step_seconds", [3_600, -3_600])
def test_a_step_of_the_clock_does_not_change_the_time_without_a_leader(step_seconds: int) -> None:
    readiness, clock = (
        Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS),
        _SteppedClock(step_seconds),
    )
    assert ready({0: 10}, clock.sample({0: 10}, 0), readiness)
    is_ready = [
        ready({0: 10}, replace(clock.sample({0: 10}, second), offsets_topic_leaders={}), readiness)
        for second in (10, 20, 35, 40)
    ]
    assert is_ready == [True, True, True, False]


class _SteppedClock:
    """A real cluster clock. In second 20, the monitor's clock is set."""

    def __init__(self, step_seconds: int) -> None:
        self._step_ms, self._second = 1000 * step_seconds, 0
        self._clock = ClusterClock("prod", lambda: self._boot_ms() + 1000 * self._second, self._boot_ms)

    def sample(self, ends: Mapping[int, int], second: int) -> ClusterSample:
        """Return a sample that was taken at this number of seconds after the boot of the machine."""
        self._second = second
        return self._clock.take_sample(sample(ends, at_ms=self._clock.now_ms()))

    def _boot_ms(self) -> int:
        return 1_790_000_000_000 + (self._step_ms if self._second >= 20 else 0)


@pytest.mark.parametrize(("batch_seconds", "is_ready"), [(3, True), (28, True), (60, False)])
def test_a_query_with_slow_batches_stays_ready(batch_seconds: int, is_ready: bool) -> None:
    """A batch reads the records that were in the log at its start. So a record waits for up to two batches."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    batch_starts = [max(0, second - second % batch_seconds - batch_seconds) for second in range(0, 600, 5)]
    is_ready_by_sample = [
        ready({0: started}, sample({0: second}, at_ms=1000 * second), readiness)
        for second, started in zip(range(0, 600, 5), batch_starts, strict=True)
    ]
    assert all(is_ready_by_sample) == is_ready


def test_no_record_of_an_open_transaction_makes_a_query_late() -> None:
    """Kafka Connect kept a transaction open for hours. No client can read its records, so no record waits."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    assert all(
        ready({0: 10}, sample({0: 10}, hidden_records=hour, at_ms=3_600_000 * hour), readiness) for hour in range(5)
    )


def test_a_restarted_query_has_to_catch_up_again() -> None:
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    assert ready({0: 10}, sample({0: 10}), readiness)
    readiness.start_over()
    assert not ready({0: 10}, sample({0: 15}), readiness)
    assert ready({0: 15}, sample({0: 99}), readiness)


def test_readiness_waits_for_verdicts_but_not_for_ever() -> None:
    """If new groups appear all the time, some group always waits for a fact."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    results = [ready({0: 10}, sample({0: 10}), readiness, evaluated=False) for _ in range(EVALUATED_WITHIN_SAMPLES)]
    assert results == [False] * (EVALUATED_WITHIN_SAMPLES - 1) + [True]
    readiness.start_over()
    assert not ready({0: 5}, sample({0: 10}), readiness, evaluated=False), "the wait starts when the log is read"
    assert ready({0: 10}, sample({0: 10}), readiness, evaluated=True)


def test_a_sample_changes_nothing_from_the_first_target_until_the_log_is_read() -> None:
    """2 million records took 20 s to read. The sampler took a sample per second in this time, for nothing."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
    reading = [readiness.is_reading_log]
    for position in (0, 5, 10):
        ready({0: position}, sample({0: 10}), readiness, evaluated=False)
        reading.append(readiness.is_reading_log)
    assert reading == [False, True, True, False], "before the first sample, and while verdicts are missing: False"


def test_progress_before_and_during_a_wait_ends_the_wait_once() -> None:
    """Otherwise, the cluster could be ready for several seconds before a sample shows it."""
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
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
    readiness = Readiness("prod", lambda: True, lambda _: targets[0] if targets else None, MAX_UNREAD_MS, INTERVAL_MS)
    assert not ready({-1: 9}, sample({}), readiness)
    targets.append({-1: 10})
    assert not ready({-1: 9}, sample({}), readiness)
    assert ready({-1: 10}, sample({}), readiness)


def test_each_reset_asks_the_source_for_a_new_target() -> None:
    """In the polling mode, the old target was reached long ago. So a sample right after a suspension was ready."""
    targets: dict[int, int] = {-1: 10}
    readiness = Readiness(
        "prod", lambda: True, lambda _: dict(targets) or None, MAX_UNREAD_MS, INTERVAL_MS, targets.clear
    )
    assert ready({-1: 10}, sample({}), readiness)
    assert not ready({-1: 10}, sample({}, at_ms=3_600_000), readiness)
    targets[-1] = 20
    assert not ready({-1: 10}, sample({}, at_ms=3_605_000), readiness)
    assert ready({-1: 20}, sample({}, at_ms=3_610_000), readiness)
    readiness.start_over()
    assert not ready({-1: 20}, sample({}, at_ms=3_615_000), readiness)


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
    readiness = Readiness("prod", lambda: True, log_ends, MAX_UNREAD_MS, INTERVAL_MS)
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
