"""What a scrape says of a group's rebalances and of what its last ones show together."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from streaming.sinks.metrics import MonitorCollector
from tests.streaming.groups import member, written
from tests.streaming.sinks.test_metrics import (
    NOW_MS,
    STALE_AFTER_MS,
    named,
    record,
    registry_of,
    sample_of,
    scraped,
)


def test_rebalances_are_counted_by_cause_and_moves_by_whether_they_had_to_be() -> None:
    """The totals are the group's own: a batch that is run again counts nothing twice."""
    both = [member("m", {"orders": [0, 1]}), member("n", {"orders": [2, 3]})]
    swapped = [member("m", {"orders": [2, 1]}), member("n", {"orders": [0, 3]})]
    alone = [member("m", {"orders": [0, 1, 2, 3]})]
    events = [written(5, 3, both), written(6, 4, swapped), written(7, 5, alone), written(7, 5, alone)]
    series = scraped(registry_of([record("g", events)]))
    assert named(series, "rebalance_monitor_rebalances_by_cause_total", group="g") == {
        "cause=unexplained": 1,
        "cause=member_gone": 1,
    }
    assert named(series, "rebalance_monitor_moved_partitions_total", group="g") == {
        "necessary=false": 2,
        "necessary=true": 2,
    }


def test_a_storm_is_shown_as_of_the_time_the_log_was_read_up_to() -> None:
    """A backlog that is still being read is no storm, nor was it quiet: no condition until its end was reached."""
    stormy = record("g", [written(offset, offset, [member("m", {"orders": [0]})]) for offset in range(990, 999)])
    registry = registry_of([stormy])
    condition = "rebalance_monitor_group_condition"
    assert named(scraped(registry), condition, group="g") == {}, "partition 0 ended at 20, read up to 0"
    registry.put_health(positions={0: 20})
    assert named(scraped(registry), condition, group="g") == {"condition=rebalance_storm": 1}
    registry.put_sample(sample_of(NOW_MS + 3_600_000), None)
    quiet = CollectorRegistry(auto_describe=False)
    quiet.register(MonitorCollector("prod", registry, lambda: NOW_MS + 3_600_000, STALE_AFTER_MS))
    assert "rebalance_storm" not in generate_latest(quiet).decode(), "an hour later, all read"
