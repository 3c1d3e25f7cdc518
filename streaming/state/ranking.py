"""Order the groups by `evaluation.severity.rank`, and use the same order for several scrapes.

1. Groups are ranked once per sample, because lag, statuses and conditions change only at a sample. All scrapes between
   two samples use the same order.
2. The groups with full detail in the last scrape keep their worst rank for at most `HELD_MS`. If all groups had full
   detail, only the K worst groups (rule 5 of `prometheus.metrics`) keep their worst rank.
3. A group that appeared after the sample has no rank. Groups without a rank come after all ranked groups, in the order
   of their ids.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.severity.rank import RankEntry, rank_entries
from streaming.state.reports import Reports


class Ranking:
    """The ranking of one cluster's groups. Several scrapes can use this object at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ranked: tuple[ClusterSample | None, Mapping[str, RankEntry]] | None = None
        self._held: Mapping[str, RankEntry] = {}

    def worst_first(
        self, sample: ClusterSample | None, reports: Reports, group_ids: Sequence[str], now_ms: int
    ) -> list[int]:
        """Return the indexes into `group_ids`. The index of the worst group comes first.

        `sample` is None if the last sample is too old.
        """
        ranked = self._ranked_entries(sample, reports, now_ms)
        rank = {group_id: number for number, group_id in enumerate(ranked)}
        return sorted(range(len(group_ids)), key=lambda at: (rank.get(group_ids[at], len(rank)), group_ids[at]))

    def hold(self, group_ids: Iterable[str]) -> None:
        """Store the groups that keep their worst rank (rule 2)."""
        with self._lock:
            ranked = self._ranked[1] if self._ranked else {}
            self._held = {group_id: ranked[group_id] for group_id in group_ids if group_id in ranked}

    def _ranked_entries(self, sample: ClusterSample | None, reports: Reports, now_ms: int) -> Mapping[str, RankEntry]:
        with self._lock:
            if self._ranked is None or self._ranked[0] is not sample:
                places = {group_id: report.place for group_id, report in reports.items()}
                self._ranked = sample, rank_entries(places, self._held, now_ms)
            return self._ranked[1]
