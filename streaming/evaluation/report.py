"""The report of one group: everything that the monitor knows about it, as one value. All outputs render this value."""

from __future__ import annotations

from functools import cached_property

from streaming.evaluation.facts import GroupFacts
from streaming.evaluation.severity.trouble import Place, Trouble, place, troubles


class GroupReport(GroupFacts, frozen=True, dict=True):
    """The facts about a group, its troubles, and its place in the order of all groups."""

    @cached_property
    def troubles(self) -> tuple[Trouble, ...]:
        """All troubles of the group. The worst comes first."""
        return troubles(self)

    @property
    def place(self) -> Place:
        """Sort key of the group. The group with the worst trouble comes first."""
        return place(self, self.troubles)
