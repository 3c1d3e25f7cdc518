"""The scrape that is measured is one of the crowd it claims, and the figures fit together."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families as parse_text

from streaming.prometheus.metrics import Exporter
from tests.bench.metrics_text import ShownSyntheticGroups, metrics_text_figures
from tests.bench.synthetic_groups import PARTITIONS, SyntheticGroups
from tests.streaming.http.answers import answer

SYNTHETIC_GROUPS = SyntheticGroups(40)


def test_the_crowd_is_shown_with_its_skew_its_lag_and_its_rebalances() -> None:
    shown = ShownSyntheticGroups(SYNTHETIC_GROUPS)
    shown.go_on()
    exporter = Exporter([("bench", shown.monitor_state)], lambda: shown.now_ms, 60_000)
    families = {family.name: family.samples for family in parse_text(answer(exporter))}
    skewed = sum(SYNTHETIC_GROUPS.is_skewed(number) for number in range(SYNTHETIC_GROUPS.groups))
    assert len([one for one in families["rebalance_monitor_topic_skew"] if one.value]) == skewed == 10
    assert len(families["kafka_consumergroup_lag"]) == SYNTHETIC_GROUPS.groups * PARTITIONS
    generations = {one.labels["group"]: one.value for one in families["rebalance_monitor_group_generation"]}
    assert [generations[SYNTHETIC_GROUPS.group_id(number)] for number in (0, 1)] == [2, 1], "the first has rebalanced"
    assert len(families["rebalance_monitor_group_status"]) == SYNTHETIC_GROUPS.groups
    measures = {one.labels["measure"] for one in families["rebalance_monitor_imbalance_score"]}
    assert measures == {"partitions", "lag", "throughput"}


def test_what_is_measured_is_what_prometheus_client_would_have_written() -> None:
    """The run itself compares the texts; here: that every figure is there, for both settings."""
    figures = metrics_text_figures(SYNTHETIC_GROUPS)
    assert len(figures) == 10
    assert all(figure.value > 0 for figure in figures)
    assert {figure.verdict for figure in figures} == {""}, "a bar beside a run of another size"
