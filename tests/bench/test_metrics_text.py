"""Tests that the measured scrape contains the synthetic groups, and that its figures are complete."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families as parse_text

from streaming.prometheus.metrics import Exporter
from tests.bench.metrics_text import SyntheticMonitor, metrics_text_figures
from tests.bench.synthetic_groups import PARTITIONS, SyntheticGroups
from tests.streaming.http.answers import answer

SYNTHETIC_GROUPS = SyntheticGroups(40)


def test_the_synthetic_groups_are_shown_with_their_skew_lag_and_rebalances() -> None:
    monitor = SyntheticMonitor(SYNTHETIC_GROUPS)
    monitor.advance()
    exporter = Exporter([("bench", monitor.monitor_state)], lambda: monitor.now_ms, 60_000)
    families = {family.name: family.samples for family in parse_text(answer(exporter))}
    skewed = sum(SYNTHETIC_GROUPS.is_skewed(number) for number in range(SYNTHETIC_GROUPS.groups))
    assert len([one for one in families["rebalance_monitor_topic_skew"] if one.value]) == skewed == 10
    assert len(families["kafka_consumergroup_lag"]) == SYNTHETIC_GROUPS.groups * PARTITIONS
    generations = {one.labels["group"]: one.value for one in families["rebalance_monitor_group_generation"]}
    assert [generations[SYNTHETIC_GROUPS.group_id(number)] for number in (0, 1)] == [2, 1], "the first has rebalanced"
    assert len(families["rebalance_monitor_group_status"]) == SYNTHETIC_GROUPS.groups
    measures = {one.labels["measure"] for one in families["rebalance_monitor_imbalance_score"]}
    assert measures == {"partitions", "lag", "throughput"}


def test_both_settings_have_every_figure() -> None:
    """The run itself compares the text with that of prometheus-client."""
    figures = metrics_text_figures(SYNTHETIC_GROUPS)
    assert len(figures) == 10
    assert all(figure.value > 0 for figure in figures)
    assert {figure.verdict for figure in figures} == {""}, "a target in a run of a different size"
