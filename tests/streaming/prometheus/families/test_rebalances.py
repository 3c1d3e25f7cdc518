"""Tests of the metrics of rebalances and of the conditions that they show."""

from __future__ import annotations

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
