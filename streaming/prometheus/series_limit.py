"""Limits the number of series on `/metrics`. The details of the worst groups are dropped last.

1. The granularities from coarse to fine are: cluster, group, topic, partition, member. For each group, the limit
   defines the finest granularity that is shown. All series of the group at this granularity and at coarser
   granularities are shown. Finer series of the group are not shown. So a sum over the shown series of a group is always
   complete.
2. `top_k` is the number of groups with details. The `top_k` worst groups are shown down to the configured granularity.
   All other groups are shown only down to `group`. If `top_k` is 0, all groups are shown down to the configured
   granularity.
3. `max_series` is the maximum number of series. If there are more series, those of the finest granularity are dropped
   first, group by group. The best group loses its series first, and the worst group loses its series last. Then the
   next coarser granularity is dropped in the same order. Series of the granularity `group` are dropped last. So details
   are shown only if no coarser series is dropped because of `max_series`.
4. Topic series without a group label are treated like the series of one additional group. This additional group ranks
   after all other groups, as the best group. `top_k` does not apply to the additional group.
5. The series that describe the monitor itself are always shown. They count towards `max_series`.
6. Each dropped series is counted once, for the first reason that applies. The order of the reasons is `top_k`,
   `max_series`. Series that the settings do not select (denied names, finer granularities) do not count as dropped.
7. All clusters in one response share the limit `max_series`. If a cluster needs less than its share, the other clusters
   use the rest. `top_k` applies to each cluster separately.
8. If series were dropped at the last scrape (`LimitEdge`), dropped series are shown again only if one percent of
   `max_series` remains free afterwards. Without this reserve, small changes in other groups would repeatedly show and
   hide the same series.

`evaluation.severity.rank` decides which groups are the worst. The result depends only on the number of series, the
order of the groups, the settings and the previous result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streaming.combine.wire import Int64Array
from streaming.signals import GRANULARITIES, GROUP, Granularity

TOP_K, MAX_SERIES = "top_k", "max_series"
REASONS = (TOP_K, MAX_SERIES)

_GROUP, _FINEST = GRANULARITIES.index(GROUP), len(GRANULARITIES) - 1

Counts = Int64Array
"""Number of series by group (rows) and granularity (columns, in the order of GRANULARITIES)."""
Levels = npt.NDArray[np.int8]
"""For each group, the index in GRANULARITIES of the finest shown granularity. 0 if no series of the group is shown."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits from the settings. If `top_k` is 0, there is no limit on the number of groups with details."""

    top_k: int
    max_series: int


UNBOUNDED = Bounds(0, sys.maxsize)


@dataclass(frozen=True, slots=True)
class RequestedSeries:
    """The number of series before the limit is applied.

    `own` is the number of series that describe the monitor itself. `topics` is the number of topic series by
    granularity. `groups` is the number of group series by group and granularity.
    """

    own: int
    topics: Counts
    groups: Counts

    def total(self) -> int:
        """Return the total number of series."""
        return int(self.own + self.topics.sum() + self.groups.sum())


class LimitEdge(NamedTuple):
    """The point at which the series of the last scrape reached `max_series`.

    `level` is the index of a granularity. All coarser granularities are shown. The granularity with this index is shown
    only for the worst groups. `shown` is the number of these groups.
    """

    level: int
    shown: int


@dataclass(frozen=True, slots=True)
class LimitDecision:
    """The finest shown granularity of each group and of topics, and the number of dropped series for each reason.

    `edge` is None if no series is dropped because of `max_series`.
    """

    groups: Levels
    topics: int
    dropped: Mapping[str, int]
    edge: LimitEdge | None = None


@dataclass(frozen=True, slots=True)
class SeriesLimit:
    """The decision, with group ids as keys.

    `finest` contains only groups with dropped series. Its values are the indexes of the finest shown granularities.
    """

    finest: Mapping[str, int] = field(default_factory=dict)
    topics: int = _FINEST

    @classmethod
    def from_decision(cls, group_ids: Sequence[str], decision: LimitDecision) -> SeriesLimit:
        """Create the limit from a decision. `group_ids` are the groups in the order of the decision."""
        levels = decision.groups.tolist()
        limited = {group_id: level for group_id, level in zip(group_ids, levels, strict=True) if level < _FINEST}
        return cls(limited, decision.topics)

    def shows(self, group_id: str, granularity: Granularity) -> bool:
        """Return True if a group's series of a granularity are shown.

        >>> limit = SeriesLimit({"g": 2})
        >>> limit.shows("g", "topic"), limit.shows("g", "partition"), SeriesLimit().shows("g", "partition")
        (True, False, True)
        """
        return self.finest.get(group_id, _FINEST) >= GRANULARITIES.index(granularity)

    def shows_topics(self, granularity: Granularity) -> bool:
        """Return True if topic series without a group label are shown at this granularity."""
        return self.topics >= GRANULARITIES.index(granularity)


NO_LIMIT = SeriesLimit()


def largest_share(requested: Sequence[int], max_series: int) -> int:
    """Return the maximum number of series of one cluster (rule 7).

    `requested` has the number of series of each cluster.

    >>> largest_share([10, 500, 300], 410), largest_share([10, 500, 300], 900)
    (200, 900)
    """
    remaining = max_series
    for clusters_done, series in enumerate(sorted(requested)):
        share = remaining // (len(requested) - clusters_done)
        if series > share:
            return share
        remaining -= series
    return max_series


def decide_limit(
    requested: RequestedSeries, bounds: Bounds, worst_first: Callable[[], Sequence[int]], last: LimitEdge | None = None
) -> LimitDecision:
    """Decide which series are shown (rules 1 to 6 and rule 8). `last` is the edge of the previous scrape.

    `worst_first` returns the row numbers of `requested.groups`, sorted from the worst group to the best. `worst_first`
    is called only if series are dropped or could be dropped.

    >>> groups = np.array([[0, 1, 1, 5, 0], [0, 1, 1, 2, 0]])
    >>> two = RequestedSeries(own=1, topics=np.array([0, 0, 0, 0, 0]), groups=groups)
    >>> decision = decide_limit(two, Bounds(0, max_series=9), lambda: [1, 0])
    >>> [GRANULARITIES[level] for level in decision.groups], decision.dropped, decision.edge
    (['topic', 'partition'], {'top_k': 0, 'max_series': 5}, LimitEdge(level=3, shown=1))
    """
    if fits_limit(requested.total(), bounds, last):
        return LimitDecision(np.full(len(requested.groups), _FINEST, dtype=np.int8), _FINEST, dict.fromkeys(REASONS, 0))
    order = np.asarray(worst_first(), dtype=np.int64)
    finest = np.full(len(order), _FINEST, dtype=np.int8)
    if bounds.top_k:
        finest[bounds.top_k :] = _GROUP
    by_rank = _counts_down_to(requested.groups[order], finest)
    free = bounds.max_series - requested.own
    edge, levels = _fit_into(np.vstack([by_rank, requested.topics]), free, _slack(bounds), last)
    groups = np.empty_like(finest)
    groups[order] = np.minimum(finest, levels[:-1])
    topics = int(levels[-1])
    beyond_k = int(requested.groups.sum() - by_rank.sum())
    shown = requested.own + int(_counts_down_to(requested.groups, groups).sum() + requested.topics[: topics + 1].sum())
    return LimitDecision(groups, topics, {TOP_K: beyond_k, MAX_SERIES: requested.total() - beyond_k - shown}, edge)


def fits_limit(series: int, bounds: Bounds, last: LimitEdge | None) -> bool:
    """Return True if all series are shown. The order of the groups is then not needed."""
    return not bounds.top_k and series <= bounds.max_series - (_slack(bounds) if last else 0)


def _slack(bounds: Bounds) -> int:
    return bounds.max_series // 100


def _fit_into(by_rank: Counts, free: int, slack: int, last: LimitEdge | None) -> tuple[LimitEdge | None, Levels]:
    """Return the finest shown level of each row (rules 3 and 8). The first row is the worst group."""
    width = len(by_rank)
    in_order = by_rank.T.ravel()  # the coarsest granularity first; in each granularity the worst group first
    fitting, fitting_with_slack = np.searchsorted(
        np.cumsum(in_order), [max(0, free), max(0, free - slack)], side="right"
    ).tolist()
    if last is not None:
        fitting = min(fitting, max(fitting_with_slack, last.level * width + min(last.shown, width)))
    is_shown = (np.arange(len(in_order)) < fitting).reshape(by_rank.T.shape)
    levels: Levels = (is_shown.sum(axis=0) - 1).clip(0).astype(np.int8)
    return None if fitting == len(in_order) else LimitEdge(*divmod(fitting, width)), levels


def _counts_down_to(counts: Counts, levels: Levels) -> Counts:
    """Return the counts. Counts of granularities that are finer than the level of the row become 0."""
    shown: Counts = np.where(np.arange(counts.shape[1]) <= levels[:, None], counts, 0)
    return shown
