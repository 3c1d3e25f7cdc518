"""`/metrics`: everything that is known, as text, from the registries at the moment of a scrape.

Rules:

1. A group that vanished has no series left behind: what is shown is made of what is known now. Text that is kept
   between scrapes is kept by what it was made of (`group_facts`, `lag_families`).
2. Until a cluster's monitor has caught up for the first time it shows its own health and nothing else: no verdict from
   half a log.
3. A sample older than `stale_after_ms` is not the present any more, so nothing that rests on it is shown, and the
   monitor is not ready.
4. Several clusters stand in one answer, each family once. Ours say `cluster`, kafka-lag-exporter's `cluster_name`;
   kafka_exporter's have a label for it only where there are several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from streaming.signals import KAFKA_EXPORTER, KAFKA_LAG_EXPORTER, SIGNALS, Signal
from streaming.sinks.exposition import Encoder, Text, exposition, garbage_collection_paused
from streaming.sinks.group_facts import GroupTexts, facts_of
from streaming.sinks.group_families import GROUP_FAMILIES
from streaming.sinks.health_families import Told, health, of_the_last_sample
from streaming.sinks.lag_families import ColumnTexts
from streaming.sinks.lines import Writer
from streaming.sinks.registry import Registry
from streaming.sinks.shown import Choose, show_everything


class Exporter:
    """All metrics of some clusters, each with its name and registry."""

    def __init__(
        self,
        clusters: Sequence[tuple[str, Registry]],
        now_ms: Callable[[], int],
        stale_after_ms: int,
        choose: Choose = show_everything,
    ) -> None:
        are_several = len(clusters) > 1
        self._clusters = [_Cluster(name, registry, are_several=are_several) for name, registry in clusters]
        self._now_ms = now_ms
        self._stale_after_ms = stale_after_ms
        self._choose = choose

    def exposition(self, encoder: Encoder) -> bytes:
        """The whole answer to a scrape."""
        with garbage_collection_paused():
            told = [cluster.told(self._now_ms(), self._stale_after_ms, self._choose) for cluster in self._clusters]
            families = ((signal, [texts[name] for texts in told if name in texts]) for name, signal in SIGNALS.items())
            return exposition(families, encoder)


class _Cluster:
    """One cluster's lines. What it keeps between scrapes is text alone."""

    def __init__(self, name: str, registry: Registry, *, are_several: bool) -> None:
        self._name = name
        self._registry = registry
        self._are_several = are_several
        self._writers = {signal.name: Writer(signal, self._constant(signal)) for signal in SIGNALS.values()}
        self._groups = GroupTexts(GROUP_FAMILIES, self._constant)
        self._columns = ColumnTexts(self._constant)

    def told(self, now_ms: int, stale_after_ms: int, choose: Choose) -> Mapping[str, Text]:
        """The lines of all metrics that are shown, from one consistent view of the registry."""
        present = self._registry.present()
        shown = choose(present)
        is_fresh = present.sample is not None and now_ms - present.sample.sampled_at_ms <= stale_after_ms
        told = self._text(health(present, is_fresh=is_fresh))
        if present.health.was_ready:
            told |= self._groups.texts(facts_of(present, shown.group, is_fresh=is_fresh), shown.signals)
            if is_fresh:
                told |= self._columns.texts(present.lag, present.sample, shown)
                told |= self._text(of_the_last_sample(present, shown, now_ms))
        return {name: text for name, text in told.items() if name in shown.signals}

    def _text(self, told: Iterator[Told]) -> dict[str, Text]:
        return {signal.name: self._writers[signal.name].text(samples).encode() for signal, samples in told}

    def _constant(self, signal: Signal) -> Mapping[str, str]:
        """Rule 4."""
        if signal.family_set == KAFKA_LAG_EXPORTER:
            return {"cluster_name": self._name}
        return {} if signal.family_set == KAFKA_EXPORTER and not self._are_several else {"cluster": self._name}
