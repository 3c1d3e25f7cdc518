"""Tests of the metrics that the settings select for every group and for the worst groups."""

from __future__ import annotations

import doctest

import pytest
from pydantic import ValidationError

import streaming.prometheus.metric_selection
from streaming.config.links import LinkSettings
from streaming.config.settings import MetricsSettings
from streaming.prometheus.metric_selection import MetricSelection, export_options
from streaming.signals import CLUSTER, GROUP, KAFKA_EXPORTER, OWN, PARTITION, SIGNALS, TOPIC, Signal
from streaming.signals.fairness import DRIFT_PARTITIONS, IMBALANCE_SCORE
from streaming.signals.groups import GROUP_INFO
from streaming.signals.kafka_exporter import CONSUMERGROUP_LAG
from streaming.signals.partitions import PARTITION_LAG, TOPIC_LAG

EVERY, WORST, NONE = "every group", "the worst groups", "no group"


def selected_by(**settings: object) -> MetricSelection:
    return export_options(MetricsSettings.model_validate(settings), LinkSettings()).selection


def exported_for(selection: MetricSelection, signal: Signal) -> str:
    """Return the groups for which a metric is exported."""
    if selection.is_for_every_group(signal):
        assert not selection.is_for_the_worst_groups(signal), "its series would appear twice"
        return EVERY
    return WORST if selection.is_for_the_worst_groups(signal) else NONE


CASES: list[tuple[dict[str, object], Signal, str, str]] = [
    ({}, GROUP_INFO, EVERY, "default: what alerts need"),
    ({}, TOPIC_LAG, EVERY, "default: one series per group and topic"),
    ({}, PARTITION_LAG, WORST, "default: partitions of the worst groups only, as 100,000 partitions cost too much"),
    ({}, IMBALANCE_SCORE, WORST, "rule 1: a score explains a group in detail, although it has no label `partition`"),
    ({}, CONSUMERGROUP_LAG, NONE, "default: no names of other exporters"),
    ({"granularity": "partition"}, PARTITION_LAG, EVERY, "full detail is one setting away"),
    ({"granularity": "partition"}, IMBALANCE_SCORE, EVERY, "full detail is one setting away"),
    ({"granularity": "group"}, TOPIC_LAG, WORST, "rule 2: the worst groups have full detail with each granularity"),
    ({"granularity": "group", "top_k": 0}, TOPIC_LAG, NONE, "top_k = 0: no group has details"),
    ({"compatible_with": ["kafka_exporter"]}, CONSUMERGROUP_LAG, EVERY, "rule 1: dashboards need every partition"),
    (
        {"compatible_with": ["kafka_exporter"], "granularity": "group", "top_k": 0},
        CONSUMERGROUP_LAG,
        EVERY,
        "rule 1: independent of the granularity",
    ),
    ({"include": [IMBALANCE_SCORE.name]}, IMBALANCE_SCORE, EVERY, "rule 3: one family more"),
    ({"include": [CONSUMERGROUP_LAG.name]}, CONSUMERGROUP_LAG, EVERY, "rule 3: one family of a different exporter"),
    ({"exclude": [TOPIC_LAG.name]}, TOPIC_LAG, NONE, "rule 3: one family less"),
    ({"exclude": [PARTITION_LAG.name]}, PARTITION_LAG, NONE, "rule 3: not for the worst groups either"),
    (
        {"exclude": [CONSUMERGROUP_LAG.name], "compatible_with": ["kafka_exporter"]},
        CONSUMERGROUP_LAG,
        NONE,
        "rule 3: exclude has precedence over compatible_with",
    ),
]


@pytest.mark.parametrize(("settings", "signal", "expected", "why"), CASES)
def test_a_metric_is_exported_for_these_groups(
    settings: dict[str, object], signal: Signal, expected: str, why: str
) -> None:
    assert exported_for(selected_by(**settings), signal) == expected, why


def test_the_finest_granularity_selects_all_metrics_of_the_monitor_for_every_group() -> None:
    selection = selected_by(granularity="member")
    for signal in SIGNALS.values():
        assert selection.is_for_every_group(signal) == (signal.family_set == OWN)


def test_members_are_no_detail_of_the_worst_groups() -> None:
    """A member gets a new id at each start, so each start would begin new series."""
    selection = selected_by()
    assert not [
        name for name, one in SIGNALS.items() if "member" in one.labels and exported_for(selection, one) != NONE
    ]


@pytest.mark.parametrize("granularity", [GROUP, TOPIC, PARTITION])
def test_the_monitors_own_health_is_always_selected(granularity: str) -> None:
    """A scrape without the health metrics would look healthy."""
    health = [one for one in SIGNALS.values() if (one.granularity, one.family_set) == (CLUSTER, OWN)]
    assert {exported_for(selected_by(granularity=granularity), one) for one in health} == {EVERY}


def test_kafka_exporters_families_are_complete_with_one_setting() -> None:
    """The issue of families: its dashboards work unchanged."""
    selection = selected_by(compatible_with=["kafka_exporter"])
    families = [one for one in SIGNALS.values() if one.family_set == KAFKA_EXPORTER]
    assert len(families) > 5
    assert {exported_for(selection, one) for one in families} == {EVERY}


def test_drift_from_other_strategies_is_a_detail_of_the_same_metric() -> None:
    selection = selected_by()
    assert exported_for(selection, DRIFT_PARTITIONS) == EVERY
    assert not selection.is_for_every_group(DRIFT_PARTITIONS, PARTITION)
    assert selection.is_for_the_worst_groups(DRIFT_PARTITIONS, PARTITION)


def test_the_misspelled_name_of_a_metric_is_refused_with_the_names_that_are_near() -> None:
    """A name that matches nothing would export nothing, and no error would show it."""
    with pytest.raises(ValidationError, match="did you mean rebalance_monitor_imbalance_score"):
        MetricsSettings.model_validate({"include": ["rebalance_monitor_imbalance_scores"]})
    with pytest.raises(ValidationError, match=r"no such metric: dashboards/METRICS\.md lists all names"):
        MetricsSettings.model_validate({"exclude": ["up"]})


def test_a_metric_that_is_included_and_excluded_is_refused() -> None:
    with pytest.raises(ValidationError, match="include and exclude both contain rebalance_monitor_topic_lag"):
        MetricsSettings.model_validate({"include": [TOPIC_LAG.name], "exclude": [TOPIC_LAG.name]})


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.prometheus.metric_selection).failed == 0
