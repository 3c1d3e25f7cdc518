"""Lists all groups on one page, the worst group first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from operator import attrgetter

from streaming.evaluation.report import GroupReport
from streaming.evaluation.severity.trouble import UNKNOWN_RULE
from streaming.page.finding.search import SORTS, Choices, Search, count_values
from streaming.page.page_input import WatchedCluster

DEFAULT_ROWS = 100
"""Default number of groups on the page. The search finds all other groups."""


@dataclass(frozen=True, slots=True)
class OverviewEntry:
    """One group of a cluster. `is_lag_known` is False while the lag of all groups of the cluster is unknown."""

    group: GroupReport
    cluster: str
    is_lag_known: bool


@dataclass(frozen=True)
class Overview:
    """All groups, the worst first. The rules are in `severity.trouble`.

    `in_trouble` counts the groups with a trouble of rules 1 to 9. `unknown` counts the groups whose only trouble is an
    unknown state or lag (rule 10).
    """

    groups: tuple[OverviewEntry, ...]
    in_trouble: int
    unknown: int = 0

    @cached_property
    def choices(self) -> Choices:
        """The values of each filter, and the number of groups with each value."""
        return count_values(one.group for one in self.groups)

    def find(self, search: Search) -> Sequence[OverviewEntry]:
        """Return the groups that match all filters, sorted as requested (`finding.search`).

        >>> from streaming.evaluation.facts import Membership
        >>> orders = OverviewEntry(GroupReport("Orders", Membership("classic")), "prod", is_lag_known=True)
        >>> [Overview((orders,), 0).find(Search({"q": text})) == [orders] for text in ("order", "x")]
        [True, False]
        """
        matches, (_, key) = search.predicate(), SORTS[search.sort]
        found = [one for one in self.groups if matches(one.group)] if search.filters else self.groups
        return found if key is None else sorted(found, key=lambda one: key(one.group))


def overview(watched: WatchedCluster) -> Overview:
    """Return all groups of a cluster. The result is empty while the cluster is catching up."""
    return sorted_overview(watched.reports.values(), watched.cluster, is_lag_known=watched.is_lag_known)


def sorted_overview(group_reports: Iterable[GroupReport], cluster: str, *, is_lag_known: bool) -> Overview:
    """Sort the groups of a cluster, the worst first."""
    reports = sorted(group_reports, key=attrgetter("place"))
    groups = tuple(OverviewEntry(report, cluster, is_lag_known) for report in reports)
    worst = [report.troubles[0].rule for report in reports if report.troubles]
    unknown = worst.count(UNKNOWN_RULE)
    return Overview(groups, len(worst) - unknown, unknown)


def merge_overviews(overviews: Sequence[Overview]) -> Overview:
    """Merge the overviews of several clusters into one sorted list."""
    if len(overviews) == 1:
        return overviews[0]
    groups = merge(*(one.groups for one in overviews), key=attrgetter("group.place"))
    in_trouble, unknown = sum(one.in_trouble for one in overviews), sum(one.unknown for one in overviews)
    return Overview(tuple(groups), in_trouble, unknown)
