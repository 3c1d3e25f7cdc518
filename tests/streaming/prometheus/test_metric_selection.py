"""What the settings ask for."""

from __future__ import annotations

import doctest

import streaming.prometheus.metric_selection
from streaming.config.settings import MetricsSettings
from streaming.prometheus.metric_selection import select_metrics
from streaming.signals import GRANULARITIES, OWN, SIGNALS


def test_everything_of_ours_is_asked_for_by_the_finest_granularity() -> None:
    shown = select_metrics(MetricsSettings(granularity="member", compatible_with=()))
    assert shown.signals == {name for name, signal in SIGNALS.items() if signal.family_set == OWN}


def test_the_monitors_own_health_cannot_be_asked_away() -> None:
    """A scrape without it would look like a healthy one."""
    health = {name for name, one in SIGNALS.items() if (one.granularity, one.family_set) == (GRANULARITIES[0], OWN)}
    assert health <= select_metrics(MetricsSettings(granularity="group", compatible_with=())).signals


def test_unless_told_otherwise_every_group_and_topic_is_shown_by_partition() -> None:
    shown = select_metrics(MetricsSettings())
    assert shown.groups.passes_all
    assert shown.topics.passes_all
    assert {SIGNALS[name].granularity for name in shown.signals} == set(GRANULARITIES) - {"member"}


def test_what_the_docstrings_show_is_true() -> None:
    assert doctest.testmod(streaming.prometheus.metric_selection).failed == 0
