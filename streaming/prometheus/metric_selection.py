"""Selects the metrics, groups and topics that `/metrics` contains, as the settings define.

1. `/metrics` contains a metric for every group if the metric is as coarse as the setting `granularity`, or coarser.
   Metrics with the names of other exporters do not depend on `granularity`.
2. For the K worst groups (`top_k`), `/metrics` also contains all metrics of this project down to the granularity
   `partition`.
3. `/metrics` contains each metric in `include` for every group. `/metrics` never contains the metrics in `exclude`.
4. By default, a healthy group has at most 15 series, plus one series per topic. A rebalance in progress adds one
   series. A lag that is only a lower bound also adds one series. Only groups with troubles have other additional
   series.
5. Totals include values that are not selected. For example, the lag of a group includes the lag of topics that are not
   selected. The metrics of the monitor itself count all groups and topics.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from streaming.config.links import LinkSettings
from streaming.config.names import EVERY_NAME, NameFilter
from streaming.config.settings import MetricsSettings
from streaming.prometheus.series_limit import UNLIMITED
from streaming.signals import FAMILY_SETS, GRANULARITIES, MEMBER, OWN, PARTITION, Granularity, Signal


@dataclass(frozen=True, slots=True)
class MetricSelection:
    """The selected metrics, groups and topics. The default selects everything.

    `family_sets` contains the exporters whose metric names are selected. `topics` filters series with a topic label.
    `groups` filters series with a group label. If a series has both labels, both filters apply.
    """

    granularity: Granularity = MEMBER
    top_k: int = 0
    include: AbstractSet[str] = frozenset()
    exclude: AbstractSet[str] = frozenset()
    family_sets: AbstractSet[str] = frozenset(FAMILY_SETS)
    groups: NameFilter = EVERY_NAME
    topics: NameFilter = EVERY_NAME

    def is_for_every_group(self, signal: Signal, granularity: Granularity | None = None) -> bool:
        """Return True if `/metrics` contains this metric for every group (rules 1 and 3).

        If `granularity` is set, use it instead of the granularity of the metric.

        >>> from streaming.signals.partitions import PARTITION_LAG, TOPIC_LAG
        >>> lean = MetricSelection("topic", top_k=20)
        >>> lean.is_for_every_group(TOPIC_LAG), lean.is_for_every_group(PARTITION_LAG)
        (True, False)
        """
        if signal.name in self.exclude:
            return False
        if signal.name in self.include:
            return True
        if signal.family_set != OWN:
            return signal.family_set in self.family_sets
        return _level(granularity or signal.granularity) <= _level(self.granularity)

    def is_for_the_worst_groups(self, signal: Signal, granularity: Granularity | None = None) -> bool:
        """Return True if `/metrics` contains this metric only for the worst groups (rule 2)."""
        return (
            self.top_k > 0
            and signal.family_set == OWN
            and signal.name not in self.exclude
            and not self.is_for_every_group(signal, granularity)
            and _level(granularity or signal.granularity) <= _level(PARTITION)
        )


def _level(granularity: Granularity) -> int:
    return GRANULARITIES.index(granularity)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """All settings of `/metrics`. The default selects everything, without a limit.

    `max_series` is the maximum number of series. `links` contains the addresses for the links in alerts.
    """

    selection: MetricSelection = MetricSelection()
    max_series: int = UNLIMITED
    links: LinkSettings = field(default_factory=LinkSettings)


EVERYTHING = ExportOptions()


def export_options(metrics: MetricsSettings, links: LinkSettings) -> ExportOptions:
    """Return the options that the settings define."""
    selection = MetricSelection(
        granularity=metrics.granularity,
        top_k=metrics.top_k,
        include=frozenset(metrics.include),
        exclude=frozenset(metrics.exclude),
        family_sets=frozenset((OWN, *metrics.compatible_with)),
        groups=NameFilter(metrics.groups_allow, metrics.groups_deny),
        topics=NameFilter(metrics.topics_allow, metrics.topics_deny),
    )
    return ExportOptions(selection, metrics.max_series, links)
