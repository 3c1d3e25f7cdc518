"""The report of one group: everything that the monitor knows about the group. All outputs use the report."""

from __future__ import annotations

from functools import cached_property

from streaming.evaluation.facts import GroupFacts
from streaming.evaluation.severity.trouble import Place, Trouble, place, troubles


class GroupReport(GroupFacts, frozen=True, dict=True):
    """The facts about a group, the group's troubles, and its rank among all groups."""

    @cached_property
    def troubles(self) -> tuple[Trouble, ...]:
        """All troubles of the group, sorted from worst to least severe."""
        return troubles(self)

    @property
    def place(self) -> Place:
        """The sort key of the group. The group with the worst trouble has the lowest key."""
        return place(self, self.troubles)
