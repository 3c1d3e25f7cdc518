"""Tests of the newest sample up to which the commits were read, and of topics whose records are deleted after a commit.

The sampler is the real one. Only the brokers are simulated.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.events import POLLED_PARTITION
from streaming.run.samples.lag.commits_read import CommitsRead
from tests.streaming.run.samples.lag.test_retention_settings import Configs
from tests.streaming.run.samples.test_conditions import MINUTE_MS, Monitor

PARTITION = ("orders", 0)
GROUP = pa.chunked_array([["g"]])


def purged(root: Path, retention_ms: int = -1) -> Monitor:
    """Return a monitor of a group that commits each record, on a topic whose records are deleted after each commit."""
    monitor = Monitor(root, configs=Configs(orders=retention_ms))
    monitor.cluster.end_offsets, monitor.cluster.log_start_offsets = {PARTITION: 0}, {PARTITION: 0}
    monitor.write(monitor.generation(1))
    monitor.commit(p0=0)
    monitor.pass_minutes(1)
    return monitor


def row(monitor: Monitor) -> dict[str, Any]:
    """Return the row of the last sample."""
    lag = monitor.monitor_state.view().lag
    assert lag is not None
    (one,) = lag.rows_of("g")
    return dict(one)


def commit_and_delete(monitor: Monitor, offset: int) -> None:
    """Let the group commit, and delete all records before the commit. The next sample sees only the deletion."""
    cluster = monitor.cluster
    cluster.now_ms += MINUTE_MS
    cluster.end_offsets, cluster.log_start_offsets = {PARTITION: offset + 20}, {PARTITION: offset}
    cluster.log_end += 1
    monitor.sampler.take_sample()
    seen = row(monitor)
    cluster.log_end -= 1
    monitor.commit(p0=offset)
    assert seen["committed_offset"] < seen["log_start_offset"] == offset


def test_records_that_are_deleted_right_after_their_commit_are_not_lost(tmp_path: Path) -> None:
    """Kafka Streams deletes the records of repartition topics up to the committed offset.

    An incident reported that retention had deleted unread records. Between the deletions, a loss "in 0 s" was near.
    """
    monitor = purged(tmp_path)
    for offset in range(100, 2_000, 100):
        commit_and_delete(monitor, offset)
        assert (row(monitor)["records_lost"], row(monitor)["seconds_until_lost"]) == (0, None)
        monitor.pass_minutes(1)
        assert (row(monitor)["records_lost"], row(monitor)["seconds_until_lost"]) == (0, None)


def test_a_loss_is_shown_when_the_commits_before_it_are_read(tmp_path: Path) -> None:
    """The query is late by one sample. A loss may be shown one sample late, but it is always shown."""
    monitor = purged(tmp_path)
    cluster = monitor.cluster
    cluster.end_offsets, cluster.log_start_offsets = {PARTITION: 900}, {PARTITION: 500}
    lost = []
    for _ in range(4):
        monitor.read()
        cluster.log_end += 1  # a commit of a different group
        monitor.pass_minutes(1)
        lost.append(row(monitor)["records_lost"])
    assert lost == [0, 500, 500, 500]
    assert row(monitor)["seconds_until_lost"] == 0.0


def test_a_loss_is_shown_at_once_if_no_commit_is_unread(tmp_path: Path) -> None:
    monitor = purged(tmp_path)
    monitor.cluster.end_offsets, monitor.cluster.log_start_offsets = {PARTITION: 900}, {PARTITION: 500}
    monitor.pass_minutes(1)
    assert row(monitor)["records_lost"] == 500


def sample(sampled_at_ms: int, end: int | None) -> ClusterSample:
    """Return a sample of a cluster with one partition of `__consumer_offsets`, or without this topic if polled."""
    if end is None:
        return ClusterSample(sampled_at_ms)
    leader_ms = sampled_at_ms + 60_000
    ends = LogEnds(end, end, sampled_at_ms=leader_ms)
    return ClusterSample(sampled_at_ms, offsets_topic={0: ends}, offsets_topic_partitions=1)


@pytest.mark.parametrize(
    ("samples", "expected", "why"),
    [
        ([(100, 7, 7)], 100, "nothing is unread"),
        ([(100, 7, 6)], None, "one record is unread"),
        ([(100, 7, 6), (105, 9, 7)], 100, "up to the first sample, not up to the second"),
        ([(100, 7, 7), (105, 9, 7), (110, 11, 8)], 100, "the end of the second sample is not reached yet"),
        ([(100, 7, 7), (90, 9, 7)], None, "the clock was set back"),
        ([(100, 7, 7), (105, 9, 7), (110, 11, 0)], None, "a new checkpoint reads the log again"),
    ],
)
def test_the_commits_are_read_up_to_a_sample_if_its_end_is_reached(
    samples: list[tuple[int, int, int]], expected: int | None, why: str
) -> None:
    """Each sample has a time, an end and a position. The leader's clock is a minute ahead, which must not matter."""
    read = CommitsRead()
    for at_ms, end, position in samples:
        read.add(sample(at_ms, end), {0: position}, None, at_ms)
    assert read.times_ms(GROUP, sample(*samples[-1][:2])).to_pylist() == [expected], why


def test_the_read_time_of_a_partition_without_a_leader_is_the_last_sample_that_showed_its_end() -> None:
    """A partition without a leader gets no new commits, but the query may still read the last ones."""
    read = CommitsRead()
    read.add(sample(100, 7), {0: 6}, None, 100)
    for at_ms in (105, 110):
        read.add(replace(sample(at_ms, 7), offsets_topic={}), {0: 7}, None, at_ms)
        assert read.by_partition == {0: 100}


def test_a_poll_that_began_during_a_sample_proves_nothing_about_it() -> None:
    """A poll can read a commit before the deletion that the sample sees."""
    read = CommitsRead()
    found = []
    for at_ms, polled_at_ms in ((100, None), (105, 102), (110, 102), (115, 108), (120, 113)):
        read.add(sample(at_ms, None), {POLLED_PARTITION: 5}, polled_at_ms, at_ms + 3)
        found += read.times_ms(GROUP, sample(at_ms, None)).to_pylist()
    assert found == [None, None, None, None, 105]
