"""`/metrics`: everything that is known, as text, from the registries at the moment of a scrape.

Rules:

1. A group that vanished has no series left behind: what is shown is made of what is known now. Text that is kept
   between scrapes is kept by what it was made of (`group_texts`, `families.lag`).
2. Until a cluster's monitor has caught up for the first time it shows its own health and nothing else: no verdict from
   half a log.
3. A sample older than `stale_after_ms` is not the present any more, so nothing that rests on it is shown, and the
   monitor is not ready.
4. Several clusters stand in one answer, each family once. Ours say `cluster`, kafka-lag-exporter's `cluster_name`;
   kafka_exporter's have a label for it only where there are several.
5. What was asked for (`shown`) is made and counted first; then it is decided how much of it is shown (`exposure`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from streaming.evaluation.lag.lag import ClusterSample
from streaming.prometheus.counted_lines import Lines, SampleLines, asked
from streaming.prometheus.exposition import Encoder, Pieces, Text, exposition, garbage_collection_paused
from streaming.prometheus.families.groups import GROUP_FAMILIES
from streaming.prometheus.families.health import (
    FamilySamples,
    health,
    left_out,
    of_groups,
    of_the_cluster,
    own_processes,
    resident_bytes,
)
from streaming.prometheus.families.lag import ColumnTexts
from streaming.prometheus.families.members import member_families
from streaming.prometheus.group_texts import GroupTexts
from streaming.prometheus.lines import Writer
from streaming.prometheus.metric_selection import EVERY_METRIC, MetricSelection
from streaming.prometheus.series_limit import (
    REASONS,
    UNBOUNDED,
    WHOLE,
    Bounds,
    LimitEdge,
    SeriesLimit,
    ceiling,
    decide_limit,
    is_whole,
)
from streaming.signals import GROUP, KAFKA_EXPORTER, KAFKA_LAG_EXPORTER, MEMBER, SIGNALS, Signal
from streaming.state.monitor_state import MonitorState
from streaming.state.ranking import Ranking
from streaming.state.reports import Reports

Anything = TypeVar("Anything")


class Exporter:
    """All metrics of some clusters, each with its name and registry."""

    def __init__(
        self,
        clusters: Sequence[tuple[str, MonitorState]],
        now_ms: Callable[[], int],
        stale_after_ms: int,
        shown: MetricSelection = EVERY_METRIC,
        bounds: Bounds = UNBOUNDED,
    ) -> None:
        are_several = len(clusters) > 1
        self._clusters = [
            _Cluster(name, monitor_state, shown, are_several=are_several) for name, monitor_state in clusters
        ]
        self._now_ms = now_ms
        self._stale_after_ms = stale_after_ms
        self._bounds = bounds

    def exposition(self, encoder: Encoder) -> Pieces:
        """The whole answer to a scrape."""
        with garbage_collection_paused():
            memory_bytes = resident_bytes(own_processes())
            looks = [cluster.look(self._now_ms(), self._stale_after_ms, memory_bytes) for cluster in self._clusters]
            most = ceiling([look.series() for look in looks], self._bounds.max_series)
            bounds = replace(self._bounds, max_series=most)
            reported = [cluster.text(look, bounds) for cluster, look in zip(self._clusters, looks, strict=True)]
            families = (
                (signal, [texts[name] for texts in reported if name in texts]) for name, signal in SIGNALS.items()
            )
            return exposition(families, encoder)


@dataclass(frozen=True, slots=True)
class _Look:
    """One consistent view of a registry: the lines of the monitor's own metrics, and what was asked for beside them.

    `sample` is the last one while that is fresh.
    """

    sample: ClusterSample | None
    reports: Reports
    now_ms: int
    own: Mapping[str, bytes]
    lines: Sequence[Lines]

    def own_series(self) -> int:
        """Series of the monitor itself, those of what is left out among them."""
        return sum(text.count(b"\n") for text in self.own.values()) + len(REASONS)

    def series(self) -> int:
        """Everything that was asked for."""
        return self.own_series() + sum(lines.series() for lines in self.lines)


class _Cluster:
    """One cluster's lines. What it keeps between scrapes is text, and how much was shown of whom."""

    def __init__(self, name: str, monitor_state: MonitorState, shown: MetricSelection, *, are_several: bool) -> None:
        self._name = name
        self._monitor_state = monitor_state
        self._shown = shown
        self._are_several = are_several
        self._ranking = Ranking()
        self._edge: LimitEdge | None = None
        self._writers = {signal.name: Writer(signal, self._constant(signal)) for signal in SIGNALS.values()}
        self._groups = GroupTexts(GROUP, self._asked_for(GROUP_FAMILIES), self._constant)
        self._members = GroupTexts(MEMBER, self._asked_for(member_families(shown.topics)), self._constant)
        self._columns = ColumnTexts(self._constant, shown)

    def look(self, monitor_ms: int, stale_after_ms: int, memory_bytes: int) -> _Look:
        """Everything that was asked for."""
        view = self._monitor_state.view()
        now_ms = view.cluster_ms(monitor_ms)
        is_fresh = view.sample is not None and now_ms - view.sample.sampled_at_ms <= stale_after_ms
        own = self._text(health(view, memory_bytes, is_fresh=is_fresh))
        lines: list[Lines] = []
        reports = self._monitor_state.reports(view, is_fresh=is_fresh)
        if view.health.was_ready:
            recorded = [reports.recorded[group_id] for group_id in self._shown.groups.among(reports)]
            lines += [texts.lines(recorded) for texts in (self._groups, self._members) if not texts.is_empty]
            if is_fresh:
                own |= self._text(of_the_cluster(view, now_ms))
                with_findings = [reports[group_id] for group_id in self._shown.groups.among(reports.with_findings)]
                reported = self._asked_for(of_groups(view, recorded, with_findings, self._shown, now_ms))
                lines += [self._columns.lines(view.lag, view.sample), SampleLines(list(reported), self._writers)]
        return _Look(view.sample if is_fresh else None, reports, now_ms, own, lines)

    def text(self, look: _Look, bounds: Bounds) -> Mapping[str, Text]:
        """The lines of all metrics that are shown."""
        limit, dropped = self._cut(look, bounds)
        reported: dict[str, Text] = {**look.own, **self._text(left_out(dropped))}
        for lines in look.lines:
            reported |= lines.text(limit)
        return reported

    def _cut(self, look: _Look, bounds: Bounds) -> tuple[SeriesLimit, Mapping[str, int]]:
        """Rule 5."""
        if is_whole(look.series(), bounds, self._edge):
            self._ranking.hold(())
            self._edge = None
            return WHOLE, dict.fromkeys(REASONS, 0)
        group_ids, counts = asked(look.own_series(), look.lines)
        found = decide_limit(
            counts,
            bounds,
            lambda: self._ranking.worst_first(look.sample, look.reports, group_ids, look.now_ms),
            self._edge,
        )
        self._edge = found.edge
        is_cut = any(found.dropped.values())
        in_full = np.flatnonzero(found.groups == found.groups.max(initial=0)).tolist() if is_cut else ()
        self._ranking.hold(group_ids[at] for at in in_full)
        return SeriesLimit.of(group_ids, found) if is_cut else WHOLE, found.dropped

    def _asked_for(self, reported: Iterable[tuple[Signal, Anything]]) -> Iterator[tuple[Signal, Anything]]:
        return ((signal, of_signal) for signal, of_signal in reported if signal.name in self._shown.signals)

    def _text(self, reported: Iterable[FamilySamples]) -> dict[str, bytes]:
        return {
            signal.name: self._writers[signal.name].text(samples).encode()
            for signal, samples in self._asked_for(reported)
        }

    def _constant(self, signal: Signal) -> Mapping[str, str]:
        """Rule 4."""
        if signal.family_set == KAFKA_LAG_EXPORTER:
            return {"cluster_name": self._name}
        return {} if signal.family_set == KAFKA_EXPORTER and not self._are_several else {"cluster": self._name}
