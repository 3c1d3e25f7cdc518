"""Answers a scrape of `/metrics` with the current values of all clusters as text.

1. The text contains only current values, so a deleted group has no series. The monitor reuses the text of an earlier
   scrape if the inputs have not changed (`group_texts`, `families.lag`).
2. While a cluster is not ready, `/metrics` contains only the metrics of the monitor itself. If a second monitor of
   the cluster is ready, alerts and dashboards then use the second monitor.
3. A sample older than `stale_after_ms` is stale. If the last sample is stale, the cluster is not ready.
4. One response contains all clusters. Each metric family occurs once. The metrics of this project have the label
   `cluster`. Metrics with the names of kafka-lag-exporter have the label `cluster_name`. Metrics with the names of
   kafka_exporter have the label `cluster` only if there are several clusters.
5. By default, only the K worst groups have detailed metrics. The settings can select detailed metrics for all groups
   (`metric_selection`).
6. The monitor first creates and counts all selected series. Then `series_limit` decides which series to drop.
7. The standard metrics of the process (`process_metrics`) come first, once for all clusters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streaming.evaluation.lag.lag import ClusterSample
from streaming.prometheus.counted_lines import Lines, SampleLines, requested_series
from streaming.prometheus.exposition import (
    Encoder,
    Pieces,
    Text,
    exposition,
    garbage_collection_paused,
    process_metrics,
)
from streaming.prometheus.families import health
from streaming.prometheus.families.groups import GROUP_FAMILIES
from streaming.prometheus.families.lag import COLUMN_FAMILIES, ColumnTexts
from streaming.prometheus.families.members import member_families
from streaming.prometheus.group_texts import GroupTexts
from streaming.prometheus.lines import Sample, Writer
from streaming.prometheus.metric_selection import EVERYTHING, ExportOptions
from streaming.prometheus.series_limit import NO_LIMIT, LimitEdge, SeriesLimit, decide_limit, fits_limit, largest_share
from streaming.signals import GROUP, KAFKA_EXPORTER, KAFKA_LAG_EXPORTER, MEMBER, PARTITION, SIGNALS, Signal
from streaming.signals.monitor import DROPPED_SERIES
from streaming.state.monitor_state import MonitorState
from streaming.state.reports import Reports
from streaming.state.worst_groups import Ranking


class Exporter:
    """Writes all metrics. `clusters` contains the name and the monitor state of each cluster."""

    def __init__(
        self,
        clusters: Sequence[tuple[str, MonitorState]],
        now_ms: Callable[[], int],
        stale_after_ms: int,
        options: ExportOptions = EVERYTHING,
    ) -> None:
        are_several = len(clusters) > 1
        self._clusters = [
            _Cluster(name, monitor_state, options, are_several=are_several) for name, monitor_state in clusters
        ]
        self._now_ms = now_ms
        self._stale_after_ms = stale_after_ms
        self._max_series = options.max_series

    def exposition(self, encoder: Encoder) -> Pieces:
        """Return the complete response to a scrape."""
        with garbage_collection_paused():
            memory_bytes = health.resident_bytes(health.own_processes())
            views = [cluster.collect(self._now_ms(), self._stale_after_ms, memory_bytes) for cluster in self._clusters]
            share = largest_share([view.count_series() for view in views], self._max_series)
            texts = [cluster.text(view, share) for cluster, view in zip(self._clusters, views, strict=True)]
            families = (
                (signal, [text for of_cluster in texts for text in of_cluster.get(name, ())])
                for name, signal in SIGNALS.items()
            )
            return [process_metrics(encoder), *exposition(families, encoder)]


@dataclass(frozen=True, slots=True)
class _ScrapeView:
    """The data of one cluster for one scrape. `own` contains the lines about the monitor itself.

    `lines` contains all other selected lines. `sample` is None if the cluster is not ready. `worst` contains the ids of
    the K worst groups (rule 5).
    """

    sample: ClusterSample | None
    reports: Reports
    now_ms: int
    own: Mapping[str, bytes]
    lines: Sequence[Lines]
    worst: Sequence[str] = ()

    def count_own_series(self) -> int:
        """Return the number of the monitor's own series, including `rebalance_monitor_dropped_series`."""
        return sum(text.count(b"\n") for text in self.own.values()) + 1

    def count_series(self) -> int:
        return self.count_own_series() + sum(lines.count_series() for lines in self.lines)


class _Cluster:
    """Writes the lines of one cluster. Stores the texts and the limit of a scrape for the next scrape."""

    def __init__(self, name: str, monitor_state: MonitorState, options: ExportOptions, *, are_several: bool) -> None:
        self._name = name
        self._monitor_state = monitor_state
        self._links = options.links
        self._selection = selection = options.selection
        self._are_several = are_several
        self._ranking = Ranking()
        self._edge: LimitEdge | None = None
        self._writers = {signal.name: Writer(signal, self._constant(signal)) for signal in SIGNALS.values()}
        families = (*GROUP_FAMILIES, *member_families(selection.topics))
        of_every_group = [one for one in families if selection.is_for_every_group(one.signal, one.granularity)]
        of_the_worst = [one for one in families if selection.is_for_the_worst_groups(one.signal, one.granularity)]
        self._groups = [GroupTexts(level, of_every_group, self._constant) for level in (GROUP, PARTITION, MEMBER)]
        self._worst_groups = GroupTexts(PARTITION, of_the_worst, self._constant)
        names = selection.groups, selection.topics
        columns = [one for one in COLUMN_FAMILIES if selection.is_for_every_group(one.signal)]
        columns_of_the_worst = [one for one in COLUMN_FAMILIES if selection.is_for_the_worst_groups(one.signal)]
        self._columns = ColumnTexts(columns, self._constant, *names)
        self._worst_columns = ColumnTexts(columns_of_the_worst, self._constant, *names)

    def collect(self, monitor_ms: int, stale_after_ms: int, memory_bytes: int) -> _ScrapeView:
        """Create all selected lines, before `text` applies the limit."""
        view = self._monitor_state.view()
        now_ms = view.cluster_ms(monitor_ms)
        is_fresh = view.sample is not None and now_ms - view.sample.sampled_at_ms <= stale_after_ms
        own = self._text(health.health_families(view, self._links, memory_bytes, is_fresh=is_fresh))
        reports = self._monitor_state.reports(view, is_fresh=is_fresh)
        if not health.is_ready(view, is_fresh=is_fresh):
            return _ScrapeView(None, reports, now_ms, own, [])
        group_ids = self._selection.groups.among(reports)
        worst = self._worst(view.sample, reports, group_ids, now_ms)
        recorded = [reports.recorded[group_id] for group_id in group_ids]
        lines: list[Lines] = [texts.lines(recorded) for texts in self._groups if not texts.is_empty]
        lines.append(self._worst_groups.lines([reports.recorded[group_id] for group_id in worst]))
        own |= self._text(health.cluster_families(view))
        with_findings = [reports[group_id] for group_id in self._selection.groups.among(reports.with_findings)]
        families = self._selected(health.sampled_families(view, recorded, with_findings, self._selection))
        lines += [
            self._columns.lines(view.lag, view.sample),
            self._worst_columns.lines(view.lag, view.sample, frozenset(worst)),
            SampleLines(list(families), self._writers),
        ]
        return _ScrapeView(view.sample, reports, now_ms, own, lines, worst)

    def _worst(
        self, sample: ClusterSample | None, reports: Reports, group_ids: Sequence[str], now_ms: int
    ) -> Sequence[str]:
        if self._worst_groups.is_empty:
            return ()
        order = self._ranking.worst_first(sample, reports, group_ids, now_ms)
        return [group_ids[at] for at in order[: self._selection.top_k]]

    def text(self, view: _ScrapeView, max_series: int) -> Mapping[str, Sequence[Text]]:
        limit, dropped = self._limit_series(view, max_series)
        dropped_series = [(DROPPED_SERIES, [Sample(DROPPED_SERIES.label_values["reason"], dropped)])]
        texts = defaultdict[str, list[Text]](list)
        for of_some in (view.own, self._text(dropped_series), *(one.text(limit) for one in view.lines)):
            for name, text in of_some.items():
                texts[name].append(text)
        return texts

    def _limit_series(self, view: _ScrapeView, max_series: int) -> tuple[SeriesLimit, int]:
        if fits_limit(view.count_series(), max_series, self._edge):
            self._ranking.hold(view.worst)
            self._edge = None
            return NO_LIMIT, 0
        group_ids, requested = requested_series(view.count_own_series(), view.lines)
        decision = decide_limit(
            requested,
            max_series,
            lambda: self._ranking.worst_first(view.sample, view.reports, group_ids, view.now_ms),
            self._edge,
        )
        self._edge = decision.edge
        in_full = np.flatnonzero(decision.groups == decision.groups.max(initial=0)).tolist() if decision.dropped else ()
        self._ranking.hold({*view.worst, *(group_ids[at] for at in in_full)})
        return SeriesLimit.from_decision(group_ids, decision) if decision.dropped else NO_LIMIT, decision.dropped

    def _selected(self, families: Iterable[health.FamilySamples]) -> Iterable[health.FamilySamples]:
        return ((signal, samples) for signal, samples in families if self._selection.is_for_every_group(signal))

    def _text(self, families: Iterable[health.FamilySamples]) -> dict[str, bytes]:
        return {
            signal.name: self._writers[signal.name].text(samples).encode()
            for signal, samples in self._selected(families)
        }

    def _constant(self, signal: Signal) -> Mapping[str, str]:
        if signal.family_set == KAFKA_LAG_EXPORTER:
            return {"cluster_name": self._name}
        return {} if signal.family_set == KAFKA_EXPORTER and not self._are_several else {"cluster": self._name}
