"""Everything the monitor knows about one group, as one value. All outputs render it."""

from __future__ import annotations

from functools import cached_property

from streaming.evaluation.facts import GroupFacts
from streaming.evaluation.severity.trouble import Place, Trouble, place, troubles


class GroupReport(GroupFacts, frozen=True, dict=True):
    """The facts of a group, and what is wrong with it."""

    @cached_property
    def troubles(self) -> tuple[Trouble, ...]:
        """Everything that is wrong, the worst first."""
        return troubles(self)

    @property
    def place(self) -> Place:
        """Sort key: the group with the worst trouble comes first."""
        return place(self, self.troubles)
