"""Tests that the measured scrape contains the synthetic groups, and that its figures are complete."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families as parse_text

from streaming.config.links import LinkSettings
from streaming.config.settings import MetricsSettings
from streaming.prometheus.metric_selection import export_options
from streaming.prometheus.metrics import Exporter
from tests.bench.metrics_text import MOST_BYTES, MOST_SERIES, SyntheticMonitor, metrics_text_figures
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


def test_a_scrape_with_default_settings_is_lean() -> None:
    """Issue 14: at most 250,000 series and 30 MB with 10,000 groups and 100,000 partitions.

    Also in a cluster of 400 groups, the descriptions and the monitor's own series are a small part of the scrape.
    """
    groups = SyntheticGroups(400)
    share = groups.groups / SyntheticGroups().groups
    monitor = SyntheticMonitor(groups)
    options = export_options(MetricsSettings(top_k=1), LinkSettings())
    text = answer(Exporter([("bench", monitor.monitor_state)], lambda: monitor.now_ms, 60_000, options))
    assert sum(not line.startswith("#") for line in text.splitlines()) <= MOST_SERIES.limit * share
    assert len(text.encode()) <= MOST_BYTES.limit * share


def test_both_settings_have_every_figure() -> None:
    """The run itself compares the text with that of prometheus-client."""
    figures = metrics_text_figures(SYNTHETIC_GROUPS)
    assert len(figures) == 10
    assert all(figure.value > 0 for figure in figures)
    assert {figure.verdict for figure in figures} == {""}, "a target in a run of a different size"
