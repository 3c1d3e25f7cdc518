"""Limits the number of series on `/metrics`. The limit drops the details of the worst groups last.

1. The granularities, from coarse to fine, are: cluster, group, topic, partition, member. For each group and
   granularity, the limit drops all series or no series. So the sum of a group's series of one granularity is always
   complete. The finest shown granularity of a group is the finest granularity that the limit does not drop.
2. If there are more than `max_series` series, the limit first drops the finest granularity, group by group. The first
   group is the group with the least trouble. The last group is the worst group. If necessary, the limit then drops the
   next coarser granularity in the same order of groups, and so on. The limit drops the granularity `group` last. So if
   `/metrics` contains a group's series of one granularity, it also contains all coarser granularities of this group.
3. For each granularity, the limit first drops topic series that have no group label.
4. The limit never drops the series that describe the monitor itself. `max_series` includes these series. The limit also
   never drops the standard metrics of the process (`process_metrics`). `max_series` does not include the standard
   metrics (about 15 series).
5. Only selected series (`metric_selection`) can count as dropped.
6. Several clusters in one response share `max_series`. If a cluster has fewer series than its share, the other clusters
   get the rest of this share.
7. If the last scrape dropped series (`LimitEdge`), the next scrape adds series only up to 99 percent of `max_series`.
   Without the reserve of one percent, `/metrics` could add and drop the series of a group again and again.

`state.worst_groups` decides which groups are the worst. The decision of this module depends only on the numbers of
series, the order of groups, the settings and the previous decision.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streaming.combine.big_endian import Int64Array
from streaming.signals import GRANULARITIES, Granularity

UNLIMITED = sys.maxsize
"""The value of `max_series` that means no limit."""

_FINEST = len(GRANULARITIES) - 1

Counts = Int64Array
"""Number of series by group (rows) and granularity (columns, in the order of GRANULARITIES)."""
Levels = npt.NDArray[np.int8]
"""The index in GRANULARITIES of the finest shown granularity of each group. 0 if no series of the group is shown."""


@dataclass(frozen=True, slots=True)
class RequestedSeries:
    """The numbers of series, including dropped series.

    `own` is the number of series that describe the monitor itself. `topics` contains the number of topic series by
    granularity. `groups` contains the number of group series by group and granularity.
    """

    own: int
    topics: Counts
    groups: Counts

    def total(self) -> int:
        """Return the total number of series."""
        return int(self.own + self.topics.sum() + self.groups.sum())


class LimitEdge(NamedTuple):
    """The limit of the last scrape: which series were shown, and which were dropped.

    `level` is the index of a granularity. `/metrics` contains the series of all coarser granularities for all groups.
    `/metrics` contains the series of this granularity only for the worst groups. `shown` is the number of these groups.
    """

    level: int
    shown: int


@dataclass(frozen=True, slots=True)
class LimitDecision:
    """The result of `decide_limit`.

    `groups` contains the index of the finest shown granularity of each group (rule 1). `topics` is the index of the
    finest shown granularity of topic series without a group label. `dropped` is the number of dropped series. `edge` is
    None if the limit drops no series.
    """

    groups: Levels
    topics: int
    dropped: int
    edge: LimitEdge | None = None


@dataclass(frozen=True, slots=True)
class SeriesLimit:
    """The finest shown granularity of each group, and of topic series without a group label.

    `finest` maps group ids to indexes of granularities. If the index of a group is the finest granularity, the group is
    not in `finest`. `topics` is the index for the topic series.
    """

    finest: Mapping[str, int] = field(default_factory=dict)
    topics: int = _FINEST

    @classmethod
    def from_decision(cls, group_ids: Sequence[str], decision: LimitDecision) -> SeriesLimit:
        """Create the limit from a decision. `group_ids` has the order of `decision.groups`."""
        levels = decision.groups.tolist()
        limited = {group_id: level for group_id, level in zip(group_ids, levels, strict=True) if level < _FINEST}
        return cls(limited, decision.topics)

    def shows(self, group_id: str, granularity: Granularity) -> bool:
        """Return True if `/metrics` contains the series of this group and this granularity.

        >>> limit = SeriesLimit({"g": 2})
        >>> limit.shows("g", "topic"), limit.shows("g", "partition"), SeriesLimit().shows("g", "partition")
        (True, False, True)
        """
        return self.finest.get(group_id, _FINEST) >= GRANULARITIES.index(granularity)

    def shows_topics(self, granularity: Granularity) -> bool:
        """Return True if `/metrics` shows this granularity for topic series without a group label."""
        return self.topics >= GRANULARITIES.index(granularity)


NO_LIMIT = SeriesLimit()


def largest_share(requested: Sequence[int], max_series: int) -> int:
    """Return the maximum number of series per cluster (rule 6).

    `requested` contains the number of series of each cluster.

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
    requested: RequestedSeries, max_series: int, worst_first: Callable[[], Sequence[int]], last: LimitEdge | None = None
) -> LimitDecision:
    """Decide which series the limit drops (rules 1 to 3 and 7).

    `worst_first` returns the row numbers of `requested.groups`, sorted from the worst group to the best. The function
    calls `worst_first` only if `fits_limit` returns False.

    >>> groups = np.array([[0, 1, 1, 5, 0], [0, 1, 1, 2, 0]])
    >>> two = RequestedSeries(own=1, topics=np.array([0, 0, 0, 0, 0]), groups=groups)
    >>> decision = decide_limit(two, 9, lambda: [1, 0])
    >>> [GRANULARITIES[level] for level in decision.groups], decision.dropped, decision.edge
    (['topic', 'partition'], 5, LimitEdge(level=3, shown=1))
    """
    if fits_limit(requested.total(), max_series, last):
        return LimitDecision(np.full(len(requested.groups), _FINEST, dtype=np.int8), _FINEST, 0)
    order = np.asarray(worst_first(), dtype=np.int64)
    rows = np.vstack([requested.groups[order], requested.topics])
    edge, levels = _fit_into(rows, max_series - requested.own, _slack(max_series), last)
    groups = np.empty(len(order), dtype=np.int8)
    groups[order] = levels[:-1]
    dropped = np.where(np.arange(rows.shape[1]) > levels[:, None], rows, 0)
    return LimitDecision(groups, int(levels[-1]), int(dropped.sum()), edge)


def fits_limit(series: int, max_series: int, last: LimitEdge | None) -> bool:
    """Return True if `/metrics` can show all series (rule 7)."""
    return series <= max_series - (_slack(max_series) if last else 0)


def _slack(max_series: int) -> int:
    return max_series // 100


def _fit_into(by_rank: Counts, free: int, slack: int, last: LimitEdge | None) -> tuple[LimitEdge | None, Levels]:
    """Return the new `LimitEdge`, and the finest shown level of each row. The first row is the worst group."""
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
