"""Selects metrics (by granularity and family set), groups (by name) and topics (by name), as the settings define.

Totals also include groups and topics that are not selected. For example, the lag of a group includes the lag of topics
that are not shown. Metrics of the monitor itself are always shown. Their values count all groups and topics.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from streaming.config.names import EVERY_NAME, NameFilter
from streaming.config.settings import MetricsSettings
from streaming.signals import GRANULARITIES, OWN, SIGNALS


@dataclass(frozen=True, slots=True)
class MetricSelection:
    """The selected metrics (names from `SIGNALS`), groups and topics. The default selects everything.

    `topics` applies to series with a topic label. `groups` applies to series with a group label. If a series has both
    labels, both filters apply.
    """

    signals: AbstractSet[str] = frozenset(SIGNALS)
    groups: NameFilter = EVERY_NAME
    topics: NameFilter = EVERY_NAME


EVERY_METRIC = MetricSelection()


def select_metrics(metrics: MetricsSettings) -> MetricSelection:
    """Return the selection that the settings define.

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
