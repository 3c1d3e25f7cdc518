"""Lists all groups on one page, the worst group first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter

from streaming.evaluation.report import GroupReport
from streaming.page.watched import WatchedCluster

DEFAULT_ROWS = 100
"""Default number of groups on the page. The search finds all other groups."""


@dataclass(frozen=True, slots=True)
class OverviewEntry:
    """One group of a cluster. `is_fresh` is True if the last sample of the cluster is fresh."""

    group: GroupReport
    cluster: str
    is_fresh: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """All groups, the worst first.

    `in_trouble` counts the groups to which at least one of the trouble rules 1 to 8 applies (`severity.trouble`).
    """

    groups: tuple[OverviewEntry, ...]
    in_trouble: int

    def filter_ids(self, text: str) -> tuple[OverviewEntry, ...]:
        """Return the groups whose id contains the text. The comparison treats upper and lower case as equal.

        >>> from streaming.evaluation.facts import Membership
        >>> orders = OverviewEntry(GroupReport("Orders", Membership("classic")), "prod", is_fresh=True)
        >>> Overview((orders,), 0).filter_ids("order") == (orders,), Overview((orders,), 0).filter_ids("x")
        (True, ())
        """
        folded = text.casefold()
        return tuple(one for one in self.groups if folded in one.group.group_id.casefold()) if folded else self.groups


def overview(watched: WatchedCluster) -> Overview:
    """Return all groups of a cluster.

    The result is empty until the monitor has read the log of the cluster to its end for the first time.
    """
    cluster, is_fresh = watched.cluster, watched.is_fresh
    reports = sorted(watched.reports.values(), key=attrgetter("place"))
    groups = tuple(OverviewEntry(report, cluster, is_fresh) for report in reports)
    return Overview(groups, sum(bool(report.troubles) and report.troubles[0].rule <= 8 for report in reports))


def merge_overviews(overviews: Sequence[Overview]) -> Overview:
    """Merge the overviews of several clusters into one sorted list."""
    if len(overviews) == 1:
        return overviews[0]
    groups = merge(*(one.groups for one in overviews), key=attrgetter("group.place"))
    return Overview(tuple(groups), sum(one.in_trouble for one in overviews))
