"""Tests of a topic that is deleted and created again, with the real sampler and simulated brokers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streaming.evaluation.facts import GroupLag
from tests.streaming.run.samples.lag.test_retention_settings import Configs
from tests.streaming.run.samples.test_conditions import Monitor

OLD, NEW = "B3BDgJhtR2mEJtC2VAyvIQ", "Yzm9gVTsQ7GnpBNcXPE4Bw"
MINUTES = 20


def lag_of_group(monitor: Monitor) -> GroupLag:
    """Return the lag in the report of the group."""
    return monitor.monitor_state.reports(monitor.monitor_state.view(), is_fresh=True)["g"].lag


def row(monitor: Monitor) -> dict[str, Any]:
    """Return the evaluated row of partition 0."""
    lag = monitor.monitor_state.view().lag
    assert lag is not None
    return dict(lag.rows_of("g")[0])


def monitor_of_old_topic(root: Path, topic_id: str | None) -> Monitor:
    """Watch 20 minutes in which the topic grows to 1,000 records, and the group reads all of them."""
    monitor = Monitor(root, configs=Configs(orders=3_600_000))
    monitor.cluster.topic_id = topic_id
    for _ in range(MINUTES):
        monitor.pass_minutes(1, records_a_minute=50)
        monitor.commit(p0=monitor.cluster.end_offsets["orders", 0])
    return monitor


def recreate(monitor: Monitor, topic_id: str | None) -> None:
    """Create the topic again with 3,000 records in each partition. The group starts again and commits 400."""
    monitor.cluster.topic_id = topic_id
    monitor.cluster.end_offsets = {("orders", 0): 3_000, ("orders", 1): 3_000}
    monitor.cluster.now_ms += 1_000
    monitor.commit(p0=400)


@dataclass(frozen=True)
class Between:
    """What happens between the last sample of the old topic and the first sample of the new topic."""

    why: str
    happens: Callable[[Monitor], None] = lambda _: None


def _is_gone(monitor: Monitor) -> None:
    monitor.cluster.topic_id, monitor.cluster.partitions, monitor.cluster.end_offsets = None, 0, {}
    monitor.pass_minutes(3)
    monitor.cluster.partitions = 2


def _is_gone_and_restarts(monitor: Monitor) -> None:
    _is_gone(monitor)
    monitor.restart()


@pytest.mark.parametrize(
    "between",
    [
        Between("no sample sees that the topic is gone"),
        Between("the topic is gone for three samples", _is_gone),
        Between("the monitor is restarted", Monitor.restart),
        Between("the topic is gone, then the monitor is restarted", _is_gone_and_restarts),
    ],
    ids=lambda between: between.why,
)
def test_a_topic_that_is_created_again_keeps_nothing_of_its_old_log(tmp_path: Path, between: Between) -> None:
    """The records were 1 s old. The lag was "at least 1,200 s", because record 400 of the old log was that old.

    It caused an incident. The produce rate was the growth from the old log to the new log.
    """
    monitor = monitor_of_old_topic(tmp_path, OLD)
    between.happens(monitor)
    recreate(monitor, NEW)
    monitor.sampler.take_sample()
    lag = lag_of_group(monitor)
    assert (lag.records, lag.seconds, lag.produced_records_per_second) == (2_600, 0, None)
    assert row(monitor)["lag_seconds_kind"] == "at_least"
    assert row(monitor)["consumed_records_per_second"] is None
    assert row(monitor)["status"] != "REWIND", "the group did not go back in this log"
    monitor.pass_minutes(2, records_a_minute=60)
    assert lag_of_group(monitor).seconds == 120
    assert lag_of_group(monitor).produced_records_per_second == 1


def test_without_topic_ids_only_a_lower_end_offset_shows_a_new_log(tmp_path: Path) -> None:
    """Brokers before 2.8 have no topic ids. Brokers that are upgraded give an id to a topic that stays the same."""
    monitor = monitor_of_old_topic(tmp_path, None)
    monitor.commit(p0=500)
    monitor.cluster.topic_id = OLD
    monitor.pass_minutes(1)
    assert row(monitor)["lag_seconds_kind"] == "exact"
    monitor.cluster.topic_id = None
    monitor.pass_minutes(1)
    assert row(monitor)["lag_seconds_kind"] == "exact"


def test_a_sample_file_of_an_earlier_version_has_no_topic_ids_and_is_used(tmp_path: Path) -> None:
    monitor = monitor_of_old_topic(tmp_path, None)
    monitor.cluster.topic_id = OLD
    monitor.commit(p0=500)
    monitor.restart()
    monitor.pass_minutes(1)
    assert row(monitor)["lag_seconds_kind"] == "exact"


def test_each_new_log_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    monitor = monitor_of_old_topic(tmp_path, OLD)
    recreate(monitor, NEW)
    with caplog.at_level(logging.INFO, logger="streaming.run.samples.lag.lag_watch"):
        monitor.pass_minutes(2)
    assert caplog.messages == [
        "prod: the topic orders was deleted and created again. The monitor does not use its old offsets any more"
    ]


def test_the_retention_of_the_old_topic_is_forgotten(tmp_path: Path) -> None:
    """The setting is requested once per hour. The estimate of a loss used the setting of the deleted topic."""
    monitor = monitor_of_old_topic(tmp_path, OLD)
    monitor.commit(p0=500)
    monitor.pass_minutes(1)
    before = len(monitor.configs.topic_requests)
    recreate(monitor, NEW)
    monitor.pass_minutes(1)
    assert monitor.configs.topic_requests[before:] == [["orders"]]


def test_the_consume_rate_does_not_continue_from_the_old_log(tmp_path: Path) -> None:
    """The group commits a higher offset in the new log. It did not read the records between the two offsets."""
    monitor = monitor_of_old_topic(tmp_path, OLD)
    monitor.pass_minutes(1)
    assert row(monitor)["consumed_records_per_second"] == pytest.approx(50 / 60)
    recreate(monitor, NEW)
    monitor.commit(p0=2_000)
    monitor.sampler.take_sample()
    assert row(monitor)["consumed_records_per_second"] is None


def test_a_fetch_of_the_old_log_shows_nothing_about_the_new_log(tmp_path: Path) -> None:
    """The last 10 offsets of the old log were markers. In the new log, they are records."""
    monitor = monitor_of_old_topic(tmp_path, OLD)
    monitor.commit(p0=990)
    monitor.cluster.next_records["orders", 0] = 1_000
    monitor.pass_minutes(2)
    assert row(monitor)["lag"] == 0
    monitor.cluster.topic_id, monitor.cluster.next_records = NEW, {}
    monitor.pass_minutes(2)
    assert row(monitor)["lag"] == 10


def test_a_loss_in_the_new_log_does_not_begin_in_the_old_log(tmp_path: Path) -> None:
    monitor = monitor_of_old_topic(tmp_path, OLD)
    monitor.commit(p0=400)
    monitor.cluster.log_start_offsets = {("orders", 0): 900}
    monitor.pass_minutes(2)
    assert row(monitor)["records_lost"] == 500
    monitor.cluster.topic_id = NEW
    monitor.pass_minutes(1)
    assert row(monitor)["records_lost"] == 500
    assert row(monitor)["lost_since_ms"] == monitor.cluster.now_ms
