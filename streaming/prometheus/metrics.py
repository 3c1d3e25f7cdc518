"""Answers a scrape of `/metrics` with the current values of all clusters as text.

Rules:

1. The text shows only current values, so a deleted group has no series. Text from an earlier scrape is used again only
   if its inputs have not changed (`group_texts`, `families.lag`).
2. Until the monitor has read a cluster's log to the end for the first time, it shows only the metrics of the monitor
   itself. A verdict that depends on only a part of the log can be wrong.
3. A sample that is older than `stale_after_ms` is stale. If the last sample is stale, values that depend on this sample
   are not shown, and the monitor is not ready.
4. One response contains the metrics of all clusters. Each metric family occurs once. The metrics of this project have
   the label `cluster`. Metrics that use the metric names of kafka-lag-exporter have the label `cluster_name`. Metrics
   that use the metric names of kafka_exporter have the label `cluster` only if there are several clusters.
5. All selected series (`metric_selection`) are created and counted first. Then `series_limit` decides which of these
   series are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from streaming.evaluation.lag.lag import ClusterSample
from streaming.prometheus.counted_lines import Lines, SampleLines, requested_series
from streaming.prometheus.exposition import Encoder, Pieces, Text, exposition, garbage_collection_paused
from streaming.prometheus.families.groups import GROUP_FAMILIES
from streaming.prometheus.families.health import (
    FamilySamples,
    cluster_families,
    dropped_series_family,
    health_families,
    own_processes,
    resident_bytes,
    sampled_families,
)
from streaming.prometheus.families.lag import ColumnTexts
from streaming.prometheus.families.members import member_families
from streaming.prometheus.group_texts import GroupTexts
from streaming.prometheus.lines import Writer
from streaming.prometheus.metric_selection import EVERY_METRIC, MetricSelection
from streaming.prometheus.series_limit import (
    NO_LIMIT,
    REASONS,
    UNBOUNDED,
    Bounds,
    LimitEdge,
    SeriesLimit,
    decide_limit,
    fits_limit,
    largest_share,
)
from streaming.signals import GROUP, KAFKA_EXPORTER, KAFKA_LAG_EXPORTER, MEMBER, SIGNALS, Signal
from streaming.state.monitor_state import MonitorState
from streaming.state.ranking import Ranking
from streaming.state.reports import Reports

Anything = TypeVar("Anything")


class Exporter:
    """All metrics of one or more clusters. Each cluster has a name and a monitor state."""

    def __init__(
        self,
        clusters: Sequence[tuple[str, MonitorState]],
        now_ms: Callable[[], int],
        stale_after_ms: int,
        selection: MetricSelection = EVERY_METRIC,
        bounds: Bounds = UNBOUNDED,
    ) -> None:
        are_several = len(clusters) > 1
        self._clusters = [
            _Cluster(name, monitor_state, selection, are_several=are_several) for name, monitor_state in clusters
        ]
        self._now_ms = now_ms
        self._stale_after_ms = stale_after_ms
        self._bounds = bounds

    def exposition(self, encoder: Encoder) -> Pieces:
        """Return the complete response to a scrape."""
        with garbage_collection_paused():
            memory_bytes = resident_bytes(own_processes())
            views = [cluster.collect(self._now_ms(), self._stale_after_ms, memory_bytes) for cluster in self._clusters]
            share = largest_share([view.count_series() for view in views], self._bounds.max_series)
            bounds = replace(self._bounds, max_series=share)
            texts = [cluster.text(view, bounds) for cluster, view in zip(self._clusters, views, strict=True)]
            families = (
                (signal, [of_cluster[name] for of_cluster in texts if name in of_cluster])
                for name, signal in SIGNALS.items()
            )
            return exposition(families, encoder)


@dataclass(frozen=True, slots=True)
class _ScrapeView:
    """The data of one cluster for one scrape: lines of the monitor's own metrics (`own`), and all other selected lines.

    `sample` is None if there is no fresh sample.
    """

    sample: ClusterSample | None
    reports: Reports
    now_ms: int
    own: Mapping[str, bytes]
    lines: Sequence[Lines]

    def count_own_series(self) -> int:
        """Return the number of series of the monitor itself. It includes the series that count dropped series."""
        return sum(text.count(b"\n") for text in self.own.values()) + len(REASONS)

    def count_series(self) -> int:
        """Return the number of series before the limit is applied."""
        return self.count_own_series() + sum(lines.count_series() for lines in self.lines)


class _Cluster:
    """The lines of one cluster. This object keeps cached text and the last limit for the next scrape."""

    def __init__(
        self, name: str, monitor_state: MonitorState, selection: MetricSelection, *, are_several: bool
    ) -> None:
        self._name = name
        self._monitor_state = monitor_state
        self._selection = selection
        self._are_several = are_several
        self._ranking = Ranking()
        self._edge: LimitEdge | None = None
        self._writers = {signal.name: Writer(signal, self._constant(signal)) for signal in SIGNALS.values()}
        self._groups = GroupTexts(GROUP, self._selected(GROUP_FAMILIES), self._constant)
        self._members = GroupTexts(MEMBER, self._selected(member_families(selection.topics)), self._constant)
        self._columns = ColumnTexts(self._constant, selection)

    def collect(self, monitor_ms: int, stale_after_ms: int, memory_bytes: int) -> _ScrapeView:
        """Create all selected lines. The limit is not applied yet."""
        view = self._monitor_state.view()
        now_ms = view.cluster_ms(monitor_ms)
        is_fresh = view.sample is not None and now_ms - view.sample.sampled_at_ms <= stale_after_ms
        own = self._text(health_families(view, memory_bytes, is_fresh=is_fresh))
        lines: list[Lines] = []
        reports = self._monitor_state.reports(view, is_fresh=is_fresh)
        if view.health.was_ready:
            recorded = [reports.recorded[group_id] for group_id in self._selection.groups.among(reports)]
            lines += [texts.lines(recorded) for texts in (self._groups, self._members) if not texts.is_empty]
            if is_fresh:
                own |= self._text(cluster_families(view))
                with_findings = [reports[group_id] for group_id in self._selection.groups.among(reports.with_findings)]
                families = self._selected(sampled_families(view, recorded, with_findings, self._selection))
                lines += [self._columns.lines(view.lag, view.sample), SampleLines(list(families), self._writers)]
        return _ScrapeView(view.sample if is_fresh else None, reports, now_ms, own, lines)

    def text(self, view: _ScrapeView, bounds: Bounds) -> Mapping[str, Text]:
        """Return the lines of the shown series. The keys are metric names."""
        limit, dropped = self._limit_series(view, bounds)
        texts: dict[str, Text] = {**view.own, **self._text(dropped_series_family(dropped))}
        for lines in view.lines:
            texts |= lines.text(limit)
        return texts

    def _limit_series(self, view: _ScrapeView, bounds: Bounds) -> tuple[SeriesLimit, Mapping[str, int]]:
        """Return the limit, and the number of dropped series for each reason (rule 5)."""
        if fits_limit(view.count_series(), bounds, self._edge):
            self._ranking.hold(())
            self._edge = None
            return NO_LIMIT, dict.fromkeys(REASONS, 0)
        group_ids, requested = requested_series(view.count_own_series(), view.lines)
        decision = decide_limit(
            requested,
            bounds,
            lambda: self._ranking.worst_first(view.sample, view.reports, group_ids, view.now_ms),
            self._edge,
        )
        self._edge = decision.edge
        is_limited = any(decision.dropped.values())
        in_full = np.flatnonzero(decision.groups == decision.groups.max(initial=0)).tolist() if is_limited else ()
        self._ranking.hold(group_ids[at] for at in in_full)
        return SeriesLimit.from_decision(group_ids, decision) if is_limited else NO_LIMIT, decision.dropped

    def _selected(self, families: Iterable[tuple[Signal, Anything]]) -> Iterator[tuple[Signal, Anything]]:
        return ((signal, family) for signal, family in families if signal.name in self._selection.signals)

    def _text(self, families: Iterable[FamilySamples]) -> dict[str, bytes]:
        return {
            signal.name: self._writers[signal.name].text(samples).encode()
            for signal, samples in self._selected(families)
        }

    def _constant(self, signal: Signal) -> Mapping[str, str]:
        """Return the constant labels of a metric (rule 4)."""
        if signal.family_set == KAFKA_LAG_EXPORTER:
            return {"cluster_name": self._name}
        return {} if signal.family_set == KAFKA_EXPORTER and not self._are_several else {"cluster": self._name}
