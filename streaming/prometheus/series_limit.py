"""How much of each group `/metrics` shows: of the worst groups everything, and never more series than a limit.

1. Granularities are nested: cluster, group, topic, partition, member. Of a group everything is shown down to one of
   them, its *finest*, and nothing beyond: all series of a group at a granularity, or none of them. So no sum over a
   group is half a sum.
2. `top_k`: the K worst groups are shown as finely as was asked for, the others down to the granularity `group`. 0: all.
3. `max_series`: where there are more than that, the finest granularity is left out first, of the group that is the
   least in trouble first; then that of the next group, and so on; then the next coarser granularity of the least, up to
   the groups' own series. So every group is told of in brief before any is in full.
4. What is said of topics, whatever groups read them, counts as one more group that is never in trouble, and which
   `top_k` does not concern.
5. What the monitor says of itself is always shown. It counts towards the limit.
6. What is left out is counted by the first reason that applies: `top_k`, `max_series`. What nobody asked for (denied
   names, finer granularities) is not left out.
7. Several clusters in one answer share the limit: one that asks for less than its share leaves the rest to the others.
   Each has K worst groups.
8. Where something was left out (`LimitEdge`), more is shown again only as far as a hundredth of the limit stays free:
   series that come and go elsewhere do not show and hide in turn the group that stands at the edge.

Which groups are the worst is the affair of `evaluation.severity.rank`. Same counts in the same order, same answer.
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
"""Series by group (rows) and granularity (columns, in the order of GRANULARITIES)."""
Levels = npt.NDArray[np.int8]
"""For each group the place of its finest granularity among GRANULARITIES; 0 where not even the group's own is shown."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is shown; 0 for `top_k` is no limit."""

    top_k: int
    max_series: int


UNBOUNDED = Bounds(0, sys.maxsize)


@dataclass(frozen=True, slots=True)
class RequestedSeries:
    """The series that were asked for: `own` of the monitor itself, `topics` of topics, by granularity, `groups`."""

    own: int
    topics: Counts
    groups: Counts

    def total(self) -> int:
        """All of them."""
        return int(self.own + self.topics.sum() + self.groups.sum())


class LimitEdge(NamedTuple):
    """How far `max_series` lets things be shown: coarser granularities of all, and `level` of so many, the worst."""

    level: int
    shown: int


@dataclass(frozen=True, slots=True)
class LimitDecision:
    """How far down groups and topics are shown, and how many series are not, by reason; of all of REASONS.

    `edge` is None where `max_series` leaves out nothing.
    """

    groups: Levels
    topics: int
    dropped: Mapping[str, int]
    edge: LimitEdge | None = None


@dataclass(frozen=True, slots=True)
class SeriesLimit:
    """The same by group id: `finest` are places among GRANULARITIES, of groups of which something is left out."""

    finest: Mapping[str, int] = field(default_factory=dict)
    topics: int = _FINEST

    @classmethod
    def of(cls, group_ids: Sequence[str], found: LimitDecision) -> SeriesLimit:
        """What was decided of groups in the order of these ids."""
        levels = found.groups.tolist()
        cut = {group_id: level for group_id, level in zip(group_ids, levels, strict=True) if level < _FINEST}
        return cls(cut, found.topics)

    def shows(self, group_id: str, granularity: Granularity) -> bool:
        """Whether a group's series of a granularity are shown.

        >>> limit = SeriesLimit({"g": 2})
        >>> limit.shows("g", "topic"), limit.shows("g", "partition"), SeriesLimit().shows("g", "partition")
        (True, False, True)
        """
        return self.finest.get(group_id, _FINEST) >= GRANULARITIES.index(granularity)

    def shows_topics(self, granularity: Granularity) -> bool:
        """Whether series that are told of topics whatever groups read them are shown."""
        return self.topics >= GRANULARITIES.index(granularity)


WHOLE = SeriesLimit()


def ceiling(asked: Sequence[int], max_series: int) -> int:
    """The most series that any one of the clusters may have (rule 7).

    >>> ceiling([10, 500, 300], 410), ceiling([10, 500, 300], 900)
    (200, 900)
    """
    left = max_series
    for served, one in enumerate(sorted(asked)):
        share = left // (len(asked) - served)
        if one > share:
            return share
        left -= one
    return max_series


def decide_limit(
    asked: RequestedSeries, bounds: Bounds, worst_first: Callable[[], Sequence[int]], last: LimitEdge | None = None
) -> LimitDecision:
    """Decide by the rules; `worst_first` are the rows of `asked.groups`, asked for only where it matters.

    `last` is the edge of the scrape before.

    >>> groups = np.array([[0, 1, 1, 5, 0], [0, 1, 1, 2, 0]])
    >>> two = RequestedSeries(own=1, topics=np.array([0, 0, 0, 0, 0]), groups=groups)
    >>> found = decide_limit(two, Bounds(0, max_series=9), lambda: [1, 0])
    >>> [GRANULARITIES[place] for place in found.groups], found.dropped, found.edge
    (['topic', 'partition'], {'top_k': 0, 'max_series': 5}, LimitEdge(level=3, shown=1))
    """
    if is_whole(asked.total(), bounds, last):
        return LimitDecision(np.full(len(asked.groups), _FINEST, dtype=np.int8), _FINEST, dict.fromkeys(REASONS, 0))
    order = np.asarray(worst_first(), dtype=np.int64)
    finest = np.full(len(order), _FINEST, dtype=np.int8)
    if bounds.top_k:
        finest[bounds.top_k :] = _GROUP
    left = _down_to(asked.groups[order], finest)
    edge, by_limit = _within(np.vstack([left, asked.topics]), bounds.max_series - asked.own, _slack(bounds), last)
    groups = np.empty_like(finest)
    groups[order] = np.minimum(finest, by_limit[:-1])
    topics = int(by_limit[-1])
    beyond_k = int(asked.groups.sum() - left.sum())
    shown = asked.own + int(_down_to(asked.groups, groups).sum() + asked.topics[: topics + 1].sum())
    return LimitDecision(groups, topics, {TOP_K: beyond_k, MAX_SERIES: asked.total() - beyond_k - shown}, edge)


def is_whole(series: int, bounds: Bounds, last: LimitEdge | None) -> bool:
    """Whether so many series can all be shown, whosever they are."""
    return not bounds.top_k and series <= bounds.max_series - (_slack(bounds) if last else 0)


def _slack(bounds: Bounds) -> int:
    return bounds.max_series // 100


def _within(by_rank: Counts, room: int, slack: int, last: LimitEdge | None) -> tuple[LimitEdge | None, Levels]:
    """Rules 3 and 8: how far down each row is shown, the worst group in the first one."""
    width = len(by_rank)
    in_order = by_rank.T.ravel()  # granularity by granularity, the coarsest first; in each the worst group first
    fitting, calm = np.searchsorted(np.cumsum(in_order), [max(0, room), max(0, room - slack)], side="right").tolist()
    if last is not None:
        fitting = min(fitting, max(calm, last.level * width + min(last.shown, width)))
    is_shown = (np.arange(len(in_order)) < fitting).reshape(by_rank.T.shape)
    levels: Levels = (is_shown.sum(axis=0) - 1).clip(0).astype(np.int8)
    return None if fitting == len(in_order) else LimitEdge(*divmod(fitting, width)), levels


def _down_to(counts: Counts, levels: Levels) -> Counts:
    """The counts, 0 for what is finer than a row's level."""
    found: Counts = np.where(np.arange(counts.shape[1]) <= levels[:, None], counts, 0)
    return found
