"""Tests of the metrics of lag: seconds and bound, worst status, lost records, and reasons of an unknown lag."""

from __future__ import annotations

import pyarrow as pa

from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample
from streaming.state.monitor_state import MonitorState
from tests.streaming.evaluation.lag.test_lag_evaluation import GROWING, evaluated
from tests.streaming.lags import lag_after_a_minute
from tests.streaming.prometheus.test_metrics import NOW_MS, monitor_state_of, named, sample_of, scraped


def monitor_state_with(commits: list[tuple[str, int, list[int]]], ends: list[int], log_start: int = 0) -> MonitorState:
    """Return a monitor state with this evaluated lag."""
    monitor_state = MonitorState()
    monitor_state.put_sample(ClusterSample(NOW_MS), evaluated(commits, ends, log_start))
    monitor_state.put_health(ready=True, was_ready=True)
    return monitor_state


def test_a_group_shows_the_seconds_of_its_worst_partition_and_if_they_are_a_bound() -> None:
    series = scraped(
        monitor_state_with([("g", 0, [0, 0, 0]), ("g", 1, [30, 30, 30]), ("h", 2, [15, 15, 15])], [10, 20, 30])
    )
    assert named(series, "rebalance_monitor_group_lag_seconds", group="g") == {"": 2.0}
    assert named(series, "rebalance_monitor_group_lag_seconds_is_bound", group="g") == {"": 1}
    assert named(series, "rebalance_monitor_group_lag_seconds", group="h") == {"": 1.5}
    assert named(series, "rebalance_monitor_group_lag_seconds_is_bound", group="h") == {}, "an exact value"


def test_a_group_shows_its_worst_status_by_name_and_its_completeness() -> None:
    """The label has the name of the status, because Burrow's numbers are hard to remember in an incident."""
    series = scraped(monitor_state_with([("g", 0, [5] * 5), ("g", 1, GROWING[1:])], GROWING[1:]))
    assert named(series, "rebalance_monitor_group_status", group="g") == {"status=STALL": 1}
    assert named(series, "rebalance_monitor_group_status_completeness", group="g") == {"": 0}


def test_lost_records_are_shown_and_the_time_until_the_next_loss() -> None:
    series = scraped(monitor_state_with([("g", 0, [3])], [50], log_start=20))
    assert named(series, "rebalance_monitor_group_records_lost", group="g") == {"": 17}
    assert named(series, "rebalance_monitor_group_seconds_until_lost", group="g") == {"": 0}


def test_an_unknown_lag_has_no_seconds_and_a_reason() -> None:
    """Rule 2: an unknown lag is not NaN, infinite or the last value."""
    series = scraped(monitor_state_of([], {("g", "orders", 2): 5}, sample_of()))
    assert named(series, "rebalance_monitor_lag_unknown_partitions", group="g") == {"reason=no_end_offset": 1}
    for name in ("group_lag_seconds", "group_lag_seconds_is_bound", "group_status", "group_records_lost"):
        assert named(series, f"rebalance_monitor_{name}", group="g") == {}


def test_partitions_show_their_own_lag_seconds_and_status() -> None:
    """A group shows only its worst partition. These series show which partition it is."""
    series = scraped(
        monitor_state_with([("g", 0, [0, 0, 0]), ("g", 1, [30, 30, 30]), ("h", 2, [15, 15, 15])], [10, 20, 30])
    )
    of_g = "group=g,partition={},topic=orders".format
    assert named(series, "rebalance_monitor_partition_lag")[of_g(0)] == 30
    assert named(series, "rebalance_monitor_partition_lag")[of_g(1)] == 0
    assert named(series, "rebalance_monitor_partition_lag_seconds")[of_g(1)] == 0
    stalled = scraped(monitor_state_with([("g", 0, [5] * 5), ("g", 1, GROWING[1:])], GROWING[1:]))
    assert named(stalled, "rebalance_monitor_partition_status", group="g", partition="0") == {
        "status=STALL,topic=orders": 1
    }
    assert len(named(stalled, "rebalance_monitor_partition_status")) == 2, "one status per partition"


def test_a_topics_lag_is_the_sum_of_its_partitions_or_unknown() -> None:
    """A sum without the unknown partitions would be too small."""
    commits = {("g", "orders", 0): 90, ("g", "orders", 1): 70, ("h", "orders", 0): 90, ("h", "orders", 2): 5}
    series = scraped(monitor_state_of([], commits, sample_of()))
    assert named(series, "rebalance_monitor_topic_lag", topic="orders") == {"group=g": 40}
    assert named(series, "rebalance_monitor_partition_lag", group="h") == {"partition=0,topic=orders": 10}


def test_each_topic_of_a_group_has_a_lag_or_a_number_of_partitions_with_unknown_lag() -> None:
    """The dashboard of a topic counts its groups with these two metrics. A group with an unknown lag was missing."""
    commits = {("g", "orders", 0): 90, ("g", "orders", 1): 70, ("h", "orders", 0): 90, ("h", "orders", 2): 5}
    series = scraped(monitor_state_of([], commits, sample_of()))
    assert named(series, "rebalance_monitor_topic_lag") == {"group=g,topic=orders": 40}
    assert named(series, "rebalance_monitor_topic_lag_unknown_partitions") == {"group=h,topic=orders": 1}


def test_a_group_shows_its_last_commit_its_rates_and_its_time_to_catch_up() -> None:
    """The committed offsets of the minute before the sample show 0.5 records/s, and the end offsets 0.25 records/s."""
    columns = [["g", "g"], ["orders", "orders"], [0, 1], [60, 80], [NOW_MS - 1_000, NOW_MS - 2_000]]
    sample = sample_of()
    monitor_state = MonitorState()
    commits = pa.table([pa.array(column) for column in columns], schema=pa.schema(list(LAG_SCHEMA)[:5]))
    monitor_state.put_sample(sample, lag_after_a_minute(commits, sample))
    monitor_state.put_health(ready=True, was_ready=True)
    series = scraped(monitor_state)
    shown = {
        name: named(series, f"rebalance_monitor_group_{name}", group="g").get("")
        for name in (
            "last_commit_timestamp_seconds",
            "consumed_records_per_second",
            "produced_records_per_second",
            "catch_up_seconds",
        )
    }
    assert shown == {
        "last_commit_timestamp_seconds": NOW_MS / 1000 - 1,
        "consumed_records_per_second": 1.0,
        "produced_records_per_second": 0.5,
        "catch_up_seconds": 120.0,
    }


def test_unknown_rates_have_no_series() -> None:
    """After a start of the monitor, the rates are unknown for one minute, and not 0. The last commit is known."""
    series = scraped(monitor_state_of([], {("g", "orders", 0): 5}, sample_of()))
    assert named(series, "rebalance_monitor_group_last_commit_timestamp_seconds", group="g") == {"": 0.001}
    for name in ("consumed_records_per_second", "produced_records_per_second", "catch_up_seconds"):
        assert named(series, f"rebalance_monitor_group_{name}", group="g") == {}
