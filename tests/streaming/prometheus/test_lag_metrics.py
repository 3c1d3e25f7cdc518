"""What a scrape says of lag: in seconds with its bound, the worst status, what retention took, and why it is silent."""

from __future__ import annotations

from streaming.evaluation.lag.lag import ClusterSample
from streaming.state.monitor_state import MonitorState
from tests.streaming.evaluation.lag.test_lag_evaluation import GROWING, evaluated
from tests.streaming.prometheus.test_metrics import NOW_MS, monitor_state_of, named, sample_of, scraped


def monitor_state_with(commits: list[tuple[str, int, list[int]]], ends: list[int], log_start: int = 0) -> MonitorState:
    """Return a registry that shows evaluated lag as the present."""
    monitor_state = MonitorState()
    monitor_state.put_sample(ClusterSample(NOW_MS), evaluated(commits, ends, log_start))
    monitor_state.put_health(ready=True, was_ready=True)
    return monitor_state


def test_a_group_shows_its_worst_partitions_seconds_and_whether_they_are_a_bound() -> None:
    series = scraped(
        monitor_state_with([("g", 0, [0, 0, 0]), ("g", 1, [30, 30, 30]), ("h", 2, [15, 15, 15])], [10, 20, 30])
    )
    assert named(series, "rebalance_monitor_group_lag_seconds", group="g") == {"": 2.0}
    assert named(series, "rebalance_monitor_group_lag_seconds_is_bound", group="g") == {"": 1}
    assert named(series, "rebalance_monitor_group_lag_seconds", group="h") == {"": 1.5}
    assert named(series, "rebalance_monitor_group_lag_seconds_is_bound", group="h") == {"": 0}


def test_a_group_shows_its_worst_status_by_name_and_how_much_it_rests_on() -> None:
    """Burrow's numbers say nothing to somebody at three in the morning."""
    series = scraped(monitor_state_with([("g", 0, [5] * 5), ("g", 1, GROWING[1:])], GROWING[1:]))
    assert named(series, "rebalance_monitor_group_status", group="g") == {"status=STALL": 1}
    assert named(series, "rebalance_monitor_group_status_completeness", group="g") == {"": 0}


def test_what_retention_took_is_shown_and_that_more_may_go_at_once() -> None:
    series = scraped(monitor_state_with([("g", 0, [3])], [50], log_start=20))
    assert named(series, "rebalance_monitor_group_records_lost", group="g") == {"": 17}
    assert named(series, "rebalance_monitor_group_seconds_until_lost", group="g") == {"": 0}


def test_an_unknown_lag_has_no_seconds_and_a_reason() -> None:
    """Rule 2: no NaN, no Inf, no last value."""
    series = scraped(monitor_state_of([], {("g", "orders", 2): 5}, sample_of()))
    assert named(series, "rebalance_monitor_lag_unknown_partitions", group="g") == {"reason=no_end_offset": 1}
    for name in ("group_lag_seconds", "group_lag_seconds_is_bound", "group_status", "group_records_lost"):
        assert named(series, f"rebalance_monitor_{name}", group="g") == {}


def test_partitions_show_their_own_lag_seconds_bound_and_status() -> None:
    """Of a group only the worst is shown; which partition that is, is asked next."""
    series = scraped(
        monitor_state_with([("g", 0, [0, 0, 0]), ("g", 1, [30, 30, 30]), ("h", 2, [15, 15, 15])], [10, 20, 30])
    )
    of_g = "group=g,partition={},topic=orders".format
    assert named(series, "rebalance_monitor_partition_lag")[of_g(0)] == 30
    assert named(series, "rebalance_monitor_partition_lag")[of_g(1)] == 0
    assert named(series, "rebalance_monitor_partition_lag_seconds")[of_g(1)] == 0
    assert named(series, "rebalance_monitor_partition_lag_seconds_is_bound") == {of_g(0): 1}, "none where it is exact"
    standing = scraped(monitor_state_with([("g", 0, [5] * 5), ("g", 1, GROWING[1:])], GROWING[1:]))
    assert named(standing, "rebalance_monitor_partition_status", group="g", partition="0") == {
        "status=STALL,topic=orders": 1
    }
    assert len(named(standing, "rebalance_monitor_partition_status")) == 2, "one status a partition"


def test_a_topics_lag_is_the_sum_of_its_partitions_or_not_known() -> None:
    """A sum without the unknown would be too small."""
    commits = {("g", "orders", 0): 90, ("g", "orders", 1): 70, ("h", "orders", 0): 90, ("h", "orders", 2): 5}
    series = scraped(monitor_state_of([], commits, sample_of()))
    assert named(series, "rebalance_monitor_topic_lag", topic="orders") == {"group=g": 40}
    assert named(series, "rebalance_monitor_partition_lag", group="h") == {"partition=0,topic=orders": 10}
