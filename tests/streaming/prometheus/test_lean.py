"""Tests that `/metrics` has few series by default. A user pays for each series, also for those that nobody reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from streaming.config.links import LinkSettings
from streaming.config.settings import MetricsSettings
from streaming.prometheus.metric_selection import export_options
from streaming.prometheus.metrics import Exporter
from tests.streaming.http.answers import answer
from tests.streaming.situations import CLUSTER, GROUP, NOW_MS, SITUATIONS, Situation, shown

LEAN = export_options(MetricsSettings(top_k=0), LinkSettings())
"""The default settings, for a group that is not one of the worst groups."""
STALE_AFTER_MS = 30_000
NOT_STEADY = (
    "rebalance_monitor_group_rebalance_start_timestamp_seconds",
    "rebalance_monitor_group_lag_seconds_is_bound",
)
"""Series of a group that is in a rebalance, or whose lag is older than every stored sample. Each adds one series."""
MOST_OF_A_HEALTHY_GROUP = 15
MOST_OF_A_TROUBLE = 7
"""A trouble adds at most this number of series: conditions with their start, drift, owners, and reasons."""


def series_of(situation: Situation) -> Mapping[str, int]:
    """Return the number of series of the group by metric name, for the default settings."""
    exporter = Exporter([(CLUSTER, shown(situation).monitor_state)], lambda: NOW_MS, STALE_AFTER_MS, LEAN)
    samples = (sample for family in parse_text(answer(exporter)) for sample in family.samples)
    return Counter(sample.name for sample in samples if sample.labels.get("group") == GROUP)


def troubles_of(situation: Situation) -> int:
    """Return the number of troubles of the group."""
    monitor_state = shown(situation).monitor_state
    is_fresh = situation.sampled_ago_ms <= STALE_AFTER_MS
    report = monitor_state.reports(monitor_state.view(), is_fresh=is_fresh).get(GROUP)
    return 0 if report is None else len(report.troubles)


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_healthy_group_has_at_most_15_series_and_one_per_topic(name: str) -> None:
    """Issue 14: series that only describe a trouble are absent until the group has this trouble."""
    situation = SITUATIONS[name]
    series = dict(series_of(situation))
    topics = series.pop("rebalance_monitor_topic_lag", 0)
    assert topics <= len(situation.topics)
    assert all(series.pop(name, 1) == 1 for name in NOT_STEADY)
    assert sum(series.values()) <= MOST_OF_A_HEALTHY_GROUP + MOST_OF_A_TROUBLE * troubles_of(situation), series


ALWAYS = {
    "rebalance_monitor_group_info",
    "rebalance_monitor_group_limit",
    "rebalance_monitor_group_members",
    "rebalance_monitor_group_lag",
    "rebalance_monitor_group_lag_seconds",
    "rebalance_monitor_assignment_verdict",
    "rebalance_monitor_excess_partitions",
    "rebalance_monitor_rebalances_total",
    "rebalance_monitor_topic_lag",
}
AFTER_SOME_COMMITS = {
    "rebalance_monitor_group_status",
    "rebalance_monitor_group_last_commit_timestamp_seconds",
    "rebalance_monitor_group_consumed_records_per_second",
    "rebalance_monitor_group_produced_records_per_second",
}


def test_the_series_of_a_healthy_group_are_those_that_alerts_and_overviews_read() -> None:
    """Each further series costs every user, so these lists change only on purpose."""
    series = set(series_of(SITUATIONS["stable"]))
    assert ALWAYS <= series <= ALWAYS | AFTER_SOME_COMMITS


def test_several_situations_are_healthy() -> None:
    """Without a healthy situation, the first test would not test the limit."""
    assert sum(troubles_of(one) == 0 for one in SITUATIONS.values()) >= 5
