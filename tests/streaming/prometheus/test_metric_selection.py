"""Tests of the metrics that the settings select."""

from __future__ import annotations

import doctest

import streaming.prometheus.metric_selection
from streaming.config.settings import MetricsSettings
from streaming.prometheus.metric_selection import select_metrics
from streaming.signals import GRANULARITIES, OWN, SIGNALS


def test_the_finest_granularity_selects_all_metrics_of_the_monitor() -> None:
    shown = select_metrics(MetricsSettings(granularity="member", compatible_with=()))
    assert shown.signals == {name for name, signal in SIGNALS.items() if signal.family_set == OWN}


def test_the_monitors_own_health_is_always_selected() -> None:
    """A scrape without the health metrics would look healthy."""
    health = {name for name, one in SIGNALS.items() if (one.granularity, one.family_set) == (GRANULARITIES[0], OWN)}
    assert health <= select_metrics(MetricsSettings(granularity="group", compatible_with=())).signals


def test_by_default_every_group_and_topic_is_shown_by_partition() -> None:
    shown = select_metrics(MetricsSettings())
    assert shown.groups.passes_all
    assert shown.topics.passes_all
    assert {SIGNALS[name].granularity for name in shown.signals} == set(GRANULARITIES) - {"member"}


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.prometheus.metric_selection).failed == 0
