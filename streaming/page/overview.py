"""All groups on one page: those to look at first first, as many as a person reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import merge
from operator import attrgetter

from streaming.evaluation.report import GroupReport
from streaming.page.watched import Watched

MOST_ROWS = 100
"""Rows of the page; whoever looks for another group names it."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A group of a cluster. `is_fresh` says whether the cluster's sample is."""

    group: GroupReport
    cluster: str
    is_fresh: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """Every group there is, sorted by trouble (`trouble`). `in_trouble` counts those that rules 1 to 8 put there."""

    groups: tuple[Listed, ...]
    in_trouble: int

    def named(self, part: str) -> tuple[Listed, ...]:
        """Groups whose id has `part` in it, whatever its case.

        >>> from streaming.evaluation.facts import Membership
        >>> orders = Listed(GroupReport("Orders", Membership("classic")), "prod", is_fresh=True)
        >>> Overview((orders,), 0).named("order") == (orders,), Overview((orders,), 0).named("x")
        (True, ())
        """
        wanted = part.casefold()
        return tuple(one for one in self.groups if wanted in one.group.group_id.casefold()) if wanted else self.groups


def overview(watched: Watched) -> Overview:
    """Everything that has a report; nothing before the log was read to its end once."""
    cluster, is_fresh = watched.cluster, watched.is_fresh
    found = sorted(watched.reports.values(), key=attrgetter("place"))
    groups = tuple(Listed(group, cluster, is_fresh) for group in found)
    return Overview(groups, sum(bool(group.troubles) and group.troubles[0].rule <= 8 for group in found))


def together(overviews: Sequence[Overview]) -> Overview:
    """Several clusters' groups as one list, sorted as each of them is."""
    if len(overviews) == 1:
        return overviews[0]
    groups = merge(*(one.groups for one in overviews), key=attrgetter("group.place"))
    return Overview(tuple(groups), sum(one.in_trouble for one in overviews))
