"""Rank the groups by severity, in an order that changes rarely.

`/metrics` shows full detail for the first groups in this order (`prometheus.series_limit`). Pages and the API use the
order of `evaluation/severity/trouble.py` directly. Rules:

1. The sort key of a group is computed from its troubles (`evaluation.severity.trouble`).
2. A group that was shown in full detail keeps its worst sort key for ten minutes after the last evaluation with this
   key: the group is *held*. So the series of a group stay in `/metrics` while a trouble ends and starts again
   repeatedly, and users can see that the trouble has ended. If the last scrape showed all groups in full detail, only
   the K worst groups are held (rule 5 of `prometheus.metrics`).
3. If the clock is set back, no group is held any more.
4. Groups are ranked once per sample, because lag, statuses and conditions change only at a sample. All scrapes between
   two samples use the same order.
5. A group that appeared after the sample has no rank. Groups without a rank come after all ranked groups, in the order
   of their ids.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.severity.trouble import Place
from streaming.state.reports import Reports

HELD_MS = 600_000
"""Maximum time in milliseconds for which a group keeps its worst sort key."""


@dataclass(frozen=True, slots=True)
class RankEntry:
    """The sort key of a group, and the time of the last evaluation in which the group had this key."""

    place: Place
    since_ms: int


class Ranking:
    """The ranking of one cluster's groups. Several scrapes can use one ranking at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ranked: tuple[ClusterSample | None, Mapping[str, RankEntry]] | None = None
        self._held: Mapping[str, RankEntry] = {}

    def worst_first(
        self, sample: ClusterSample | None, reports: Reports, group_ids: Sequence[str], now_ms: int
    ) -> list[int]:
        """Return the index of each group in `group_ids`, the worst first. `sample` is None if it is too old."""
        ranked = self._ranked_entries(sample, reports, now_ms)
        rank = {group_id: number for number, group_id in enumerate(ranked)}
        return sorted(range(len(group_ids)), key=lambda at: (rank.get(group_ids[at], len(rank)), group_ids[at]))

    def hold(self, group_ids: Iterable[str]) -> None:
        """Store the groups that are held (rule 2)."""
        with self._lock:
            ranked = self._ranked[1] if self._ranked else {}
            self._held = {group_id: ranked[group_id] for group_id in group_ids if group_id in ranked}

    def _ranked_entries(self, sample: ClusterSample | None, reports: Reports, now_ms: int) -> Mapping[str, RankEntry]:
        with self._lock:
            if self._ranked is None or self._ranked[0] is not sample:
                places = {group_id: report.place for group_id, report in reports.items()}
                self._ranked = sample, rank_entries(places, self._held, now_ms)
            return self._ranked[1]


def rank_entries(places: Mapping[str, Place], held: Mapping[str, RankEntry], now_ms: int) -> Mapping[str, RankEntry]:
    """Return the entry of each group, the worst group first. `held` are the groups that rule 2 holds.

    >>> calm, behind, other = (11, 0, -0.0, 0, "a"), (9, -1, -40.0, -9, "a"), (9, -1, -35.0, -9, "b")
    >>> list(rank_entries({"a": calm, "b": other}, {"a": RankEntry(behind, 1_000)}, 2_000))
    ['a', 'b']
    >>> list(rank_entries({"a": calm, "b": other}, {"a": RankEntry(behind, 1_000)}, 1_001 + HELD_MS))
    ['b', 'a']
    """
    entries = {group_id: _rank_entry(place, held.get(group_id), now_ms) for group_id, place in places.items()}
    return dict(sorted(entries.items(), key=lambda entry: entry[1].place))


def _rank_entry(place: Place, held: RankEntry | None, now_ms: int) -> RankEntry:
    if held is not None and held.place < place and 0 <= now_ms - held.since_ms <= HELD_MS:
        return held
    return RankEntry(place, now_ms)
