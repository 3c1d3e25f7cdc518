"""Tests of the metrics of commit gaps."""

from __future__ import annotations

from streaming.combine.gaps import GapTotals
from streaming.combine.partition_state import GapsClosed
from tests.streaming.groups import tombstoned, written
from tests.streaming.prometheus.test_metrics import monitor_state_of, named, record, scraped

FAMILY = "rebalance_monitor_commit_gap_seconds"


def test_known_commit_gaps_of_a_group_are_a_histogram() -> None:
    """Buckets are cumulative, as in Prometheus. The sum is in seconds."""
    monitor_state = monitor_state_of([record("g", [written(0, 1)])])
    monitor_state.put_gap_totals([GapsClosed((), {"g": GapTotals((1, 0, 2, *[0] * 7, 1), 400_500)})])
    series = scraped(monitor_state)
    assert named(series, f"{FAMILY}_bucket", group="g") == {
        **dict.fromkeys(("le=1.0", "le=2.0"), 1),
        **dict.fromkeys(("le=3.0", "le=5.0", "le=7.0", "le=10.0", "le=15.0", "le=30.0", "le=60.0", "le=300.0"), 3),
        "le=+Inf": 4,
    }
    assert named(series, f"{FAMILY}_count", group="g") == {"": 4}
    assert named(series, f"{FAMILY}_sum", group="g") == {"": 400.5}


def test_a_group_without_a_known_gap_and_a_deleted_group_have_no_series() -> None:
    """Rule: an unknown value is never 0."""
    monitor_state = monitor_state_of(
        [record("unknown", [written(0, 1)]), record("over", [written(0, 1), tombstoned(1)])]
    )
    monitor_state.put_gap_totals([GapsClosed((), {"unknown": GapTotals(), "over": GapTotals((1, *[0] * 10), 1)})])
    assert not [series for series in scraped(monitor_state) if series[0].startswith(FAMILY)]


def test_totals_put_twice_count_once_and_disappear_with_the_group() -> None:
    """Rule: nothing twice. A batch that runs again has the same absolute totals."""
    monitor_state = monitor_state_of([record("g", [written(0, 1)])])
    for _ in range(2):
        monitor_state.put_gap_totals([GapsClosed((), {"g": GapTotals((1, *[0] * 10), 500)})])
    assert monitor_state.view().gap_totals == {"g": GapTotals((1, *[0] * 10), 500)}
    monitor_state.put_gap_totals([GapsClosed((), {"g": None})])
    assert monitor_state.view().gap_totals == {}
