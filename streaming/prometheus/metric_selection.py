"""Selects metrics by granularity and family set, and groups and topics by name, as the settings define.

Values that are not selected still count in totals. For example, a group's lag includes topics that are not shown.
Metrics of the monitor itself are always shown, and they count all groups and topics.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from streaming.config.names import EVERY_NAME, NameFilter
from streaming.config.settings import MetricsSettings
from streaming.signals import GRANULARITIES, OWN, SIGNALS


@dataclass(frozen=True, slots=True)
class MetricSelection:
    """The selected metrics (names of `SIGNALS`), groups and topics. The default selects everything.

    `topics` applies to series with a topic. `groups` applies to series with a group. If a series has both, both apply.
    """

    signals: AbstractSet[str] = frozenset(SIGNALS)
    groups: NameFilter = EVERY_NAME
    topics: NameFilter = EVERY_NAME


EVERY_METRIC = MetricSelection()


def select_metrics(metrics: MetricsSettings) -> MetricSelection:
    """Return the selection of the settings.

    >>> "kafka_consumergroup_lag" in select_metrics(MetricsSettings(granularity="topic")).signals
    False
    """
    finest, sets = GRANULARITIES.index(metrics.granularity), {OWN, *metrics.compatible_with}
    return MetricSelection(
        frozenset(
            name
            for name, signal in SIGNALS.items()
            if GRANULARITIES.index(signal.granularity) <= finest and signal.family_set in sets
        ),
        NameFilter(metrics.groups_allow, metrics.groups_deny),
        NameFilter(metrics.topics_allow, metrics.topics_deny),
    )
