"""Tests of the metrics of rebalances, of the conditions that they show, and of commit gaps."""

from __future__ import annotations

from streaming.combine.gaps import GapTotals
from streaming.combine.partition_state import GapsClosed
from streaming.evaluation.conditions.condition_tracker import Condition
from tests.streaming.groups import member, tombstoned, written
from tests.streaming.prometheus.test_metrics import (
    NOW_MS,
    STALE_AFTER_MS,
    monitor_state_of,
    named,
    record,
    sample_of,
    scraped,
)

COMMIT_GAPS = "rebalance_monitor_commit_gap_seconds"


def test_rebalances_are_counted_by_cause_and_moves_by_necessity() -> None:
    """The totals are part of the group's state. So a batch that runs again counts nothing twice."""
    both = [member("m", {"orders": [0, 1]}), member("n", {"orders": [2, 3]})]
    swapped = [member("m", {"orders": [2, 1]}), member("n", {"orders": [0, 3]})]
    alone = [member("m", {"orders": [0, 1, 2, 3]})]
    events = [written(5, 3, both), written(6, 4, swapped), written(7, 5, alone), written(7, 5, alone)]
    series = scraped(monitor_state_of([record("g", events)]))
    assert named(series, "rebalance_monitor_rebalances_by_cause_total", group="g") == {
        "cause=unexplained": 1,
        "cause=member_gone": 1,
    }
    assert named(series, "rebalance_monitor_moved_partitions_total", group="g") == {
        "necessary=false": 2,
        "necessary=true": 2,
    }


def test_each_condition_that_was_active_at_the_last_sample_is_one_series() -> None:
    """The table `group_conditions` names the flapping member. A label would add one series per member."""
    monitor_state = monitor_state_of([record("g", [written(5, 3)]), record("h", [written(5, 3)])])
    condition = "rebalance_monitor_group_condition"
    assert named(scraped(monitor_state), condition) == {}
    flapping, storm = (Condition(name, 5, "pod-3") for name in ("flapping_member", "rebalance_storm"))
    monitor_state.put_conditions({"g": (flapping, storm), "h": (storm,)})
    assert named(scraped(monitor_state), condition) == {
        "condition=flapping_member,group=g": 1,
        "condition=rebalance_storm,group=g": 1,
        "condition=rebalance_storm,group=h": 1,
    }
    assert not [labels for _, labels in scraped(monitor_state) if "pod-3" in str(labels)]
    since = named(scraped(monitor_state), "rebalance_monitor_group_condition_timestamp_seconds", group="g")
    assert since == {"condition=flapping_member": 0.005, "condition=rebalance_storm": 0.005}


def test_a_group_deleted_after_the_last_sample_has_no_conditions() -> None:
    monitor_state = monitor_state_of([record("g", [written(5, 3)])])
    monitor_state.put_conditions(
        {"g": (Condition("rebalance_storm", 5, ""),), "h": (Condition("rebalance_storm", 5, ""),)}
    )
    monitor_state.put_batch([record("g", [written(5, 3), tombstoned(6)])], [])
    assert named(scraped(monitor_state), "rebalance_monitor_group_condition") == {}


def test_a_stale_sample_shows_no_conditions() -> None:
    monitor_state = monitor_state_of([record("g", [written(5, 3)])], sample=sample_of(NOW_MS - STALE_AFTER_MS - 1))
    monitor_state.put_conditions({"g": (Condition("rebalance_storm", 5, ""),)})
    assert named(scraped(monitor_state), "rebalance_monitor_group_condition") == {}


def test_known_commit_gaps_of_a_group_are_a_histogram() -> None:
    """Buckets are cumulative, as in Prometheus. The sum is in seconds."""
    monitor_state = monitor_state_of([record("g", [written(0, 1)])])
    monitor_state.put_gap_totals([GapsClosed((), {"g": GapTotals((1, 0, 2, *[0] * 7, 1), 400_500)})])
    series = scraped(monitor_state)
    assert named(series, f"{COMMIT_GAPS}_bucket", group="g") == {
        **dict.fromkeys(("le=1.0", "le=2.0"), 1),
        **dict.fromkeys(("le=3.0", "le=5.0", "le=7.0", "le=10.0", "le=15.0", "le=30.0", "le=60.0", "le=300.0"), 3),
        "le=+Inf": 4,
    }
    assert named(series, f"{COMMIT_GAPS}_count", group="g") == {"": 4}
    assert named(series, f"{COMMIT_GAPS}_sum", group="g") == {"": 400.5}


def test_a_group_without_a_known_gap_and_a_deleted_group_have_no_series() -> None:
    """Rule: an unknown value is never 0."""
    monitor_state = monitor_state_of(
        [record("unknown", [written(0, 1)]), record("over", [written(0, 1), tombstoned(1)])]
    )
    monitor_state.put_gap_totals([GapsClosed((), {"unknown": GapTotals(), "over": GapTotals((1, *[0] * 10), 1)})])
    assert not [series for series in scraped(monitor_state) if series[0].startswith(COMMIT_GAPS)]


def test_totals_put_twice_count_once_and_disappear_with_the_group() -> None:
    """Rule: nothing twice. A batch that runs again has the same absolute totals."""
    monitor_state = monitor_state_of([record("g", [written(0, 1)])])
    for _ in range(2):
        monitor_state.put_gap_totals([GapsClosed((), {"g": GapTotals((1, *[0] * 10), 500)})])
    assert monitor_state.view().gap_totals == {"g": GapTotals((1, *[0] * 10), 500)}
    monitor_state.put_gap_totals([GapsClosed((), {"g": None})])
    assert monitor_state.view().gap_totals == {}
