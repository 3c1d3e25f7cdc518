"""Tests of rates from commits and samples to the report of a group, with the real sampler and simulated brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.evaluation.facts import GroupLag
from tests.streaming.run.samples.test_conditions import SHARED, Monitor


def lag_of_group(monitor: Monitor) -> GroupLag:
    """Return the lag in the report of the group."""
    return monitor.monitor_state.reports(monitor.monitor_state.view(), is_fresh=True)["g"].lag


def run(monitor: Monitor, minutes: int, *, produced: int, consumed: int) -> None:
    """Let time pass. The group commits once a minute, both partitions by the same number of records."""
    for _ in range(minutes):
        committed = next(iter(monitor.committed_offsets.view().commits["committed_offset"].to_pylist()), 0)
        monitor.commit(p0=committed + consumed, p1=committed + consumed)
        monitor.pass_minutes(1, records_a_minute=produced)


@pytest.fixture
def monitor(tmp_path: Path) -> Monitor:
    """A group with two members, and 60,000 unread records in each partition."""
    started = Monitor(tmp_path)
    started.cluster.end_offsets = {("orders", 0): 60_000, ("orders", 1): 60_000}
    started.write(started.generation(1))
    started.sampler.take_sample()
    return started


def test_a_group_that_catches_up_shows_both_rates_and_the_time_until_its_lag_is_gone(monitor: Monitor) -> None:
    """Each minute, producers write 600 records to each partition, and the group reads 3,000 of each partition."""
    run(monitor, 8, produced=600, consumed=3_000)
    lag = lag_of_group(monitor)
    assert lag.consumed_records_per_second == pytest.approx(100)
    assert lag.produced_records_per_second == pytest.approx(20)
    assert lag.records == 2 * (60_000 + 8 * 600 - 8 * 3_000)
    assert lag.catch_up_seconds == pytest.approx(lag.records / 80)
    assert lag.last_commit_ms == monitor.cluster.now_ms - 60_000


def test_after_a_restart_the_consume_rate_is_unknown_and_then_correct(monitor: Monitor) -> None:
    """Law 2: unknown, not 0 and not too fast. End offsets are stored, so the produce rate is known at once."""
    run(monitor, 8, produced=600, consumed=3_000)
    monitor.sampler.lag_watch.store()
    monitor.start()
    monitor.sampler.lag_watch.restore()
    monitor.sampler.take_sample()
    found = [lag_of_group(monitor)]
    for _ in range(4):
        run(monitor, 1, produced=600, consumed=3_000)
        found.append(lag_of_group(monitor))
    assert [lag.consumed_records_per_second for lag in found] == [None, *[pytest.approx(100)] * 4]
    assert [lag.produced_records_per_second for lag in found] == [pytest.approx(20)] * 5


def test_a_group_that_stopped_keeps_the_time_of_its_last_commit_and_consumes_nothing(monitor: Monitor) -> None:
    run(monitor, 8, produced=600, consumed=3_000)
    stopped_ms = monitor.cluster.now_ms - 60_000
    monitor.pass_minutes(12, records_a_minute=600)
    lag = lag_of_group(monitor)
    assert (lag.consumed_records_per_second, lag.catch_up_seconds) == (0, None)
    assert lag.produced_records_per_second == pytest.approx(20)
    assert lag.last_commit_ms == stopped_ms


def test_the_worst_partition_and_its_owner_are_known(monitor: Monitor) -> None:
    """Partition 1 is read to its end. Partition 0 waits."""
    monitor.commit(p0=10, p1=60_000)
    monitor.pass_minutes(1)
    report = monitor.monitor_state.reports(monitor.monitor_state.view(), is_fresh=True)["g"]
    assert report.lag.worst == ("orders", 0)
    owner = report.members.owners["orders", 0]
    assert (owner.client_id, owner.client_host) == (SHARED[0].client_id, SHARED[0].client_host)
    assert report.membership.coordinator == 1
