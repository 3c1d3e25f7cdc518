"""What of all that is known was asked for: metrics by granularity and whose names they have, groups and topics by name.

What is not asked for is counted all the same: in the totals of what stands above it (a group's lag has in it that of
topics that are not shown), and in what the monitor says of itself, which is shown always.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from streaming.config.names import EVERY_NAME, NameFilter
from streaming.config.settings import MetricsSettings
from streaming.signals import GRANULARITIES, OWN, SIGNALS


@dataclass(frozen=True, slots=True)
class MetricSelection:
    """The metrics (names of `SIGNALS`), groups and topics that are shown; by default all.

    `topics` decides on series that are told of a topic or a partition, `groups` on all that are told of a group, too.
    """

    signals: AbstractSet[str] = frozenset(SIGNALS)
    groups: NameFilter = EVERY_NAME
    topics: NameFilter = EVERY_NAME


EVERY_METRIC = MetricSelection()


def select_metrics(metrics: MetricsSettings) -> MetricSelection:
    """What the settings ask for.

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
