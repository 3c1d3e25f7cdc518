"""All groups of the cluster on one page: those to look at first first, as many as a person reads."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.judgement.summary import GroupSummary
from streaming.judgement.trouble import Trouble, by_trouble
from streaming.page.watched import Watched
from streaming.sinks.summaries import summaries

MOST_ROWS = 100
"""Rows of the page; whoever looks for another group names it."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A group with what is wrong with it, the worst first."""

    group: GroupSummary
    troubles: tuple[Trouble, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """Every group there is, sorted by trouble (`trouble`). `in_trouble` counts those that rules 1 to 8 put there."""

    groups: tuple[Listed, ...]
    in_trouble: int

    def named(self, part: str) -> tuple[Listed, ...]:
        """Groups whose id has `part` in it, whatever its case.

        >>> Overview((Listed(GroupSummary("Orders", "classic", "Stable"), ()),), 0).named("order")[0].group.group_id
        'Orders'
        """
        wanted = part.casefold()
        return tuple(one for one in self.groups if wanted in one.group.group_id.casefold()) if wanted else self.groups


def overview(watched: Watched) -> Overview:
    """Everything the registry holds; nothing before the log was read to its end once."""
    groups = tuple(
        Listed(group, found) for group, found in by_trouble(summaries(watched.present, is_fresh=watched.is_fresh))
    )
    return Overview(groups, sum(bool(one.troubles) and one.troubles[0].rule <= 8 for one in groups))
