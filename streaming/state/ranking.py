"""The groups in the order of `evaluation.severity.rank`, kept from scrape to scrape.

1. Groups are ranked anew with each sample: that is when lag, statuses and conditions change. In between all scrapes
   see the same order.
2. Groups that were shown in full at the last scrape that left something out are held. As soon as nothing is left out,
   nobody is.
3. A group that nobody ranked (it came after the sample) stands behind all others, by its id.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.severity.rank import RankEntry, rank_entries
from streaming.state.reports import Reports


class Ranking:
    """Who is worse than whom. Scrapes come side by side: each method is whole in itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ranked: tuple[ClusterSample | None, Mapping[str, RankEntry]] | None = None
        self._held: Mapping[str, RankEntry] = {}

    def worst_first(
        self, sample: ClusterSample | None, reports: Reports, group_ids: Sequence[str], now_ms: int
    ) -> list[int]:
        """The places of the groups in `group_ids`, that of the worst group first; `sample` is None if none is fresh."""
        ranked = self._ranked_entries(sample, reports, now_ms)
        rank = {group_id: number for number, group_id in enumerate(ranked)}
        return sorted(range(len(group_ids)), key=lambda at: (rank.get(group_ids[at], len(rank)), group_ids[at]))

    def hold(self, group_ids: Iterable[str]) -> None:
        """Remember which groups were shown in full (rule 2)."""
        with self._lock:
            ranked = self._ranked[1] if self._ranked else {}
            self._held = {group_id: ranked[group_id] for group_id in group_ids if group_id in ranked}

    def _ranked_entries(self, sample: ClusterSample | None, reports: Reports, now_ms: int) -> Mapping[str, RankEntry]:
        with self._lock:
            if self._ranked is None or self._ranked[0] is not sample:
                places = {group_id: report.place for group_id, report in reports.items()}
                self._ranked = sample, rank_entries(places, self._held, now_ms)
            return self._ranked[1]
