"""KIP-848's server-side ``range`` (``org.apache.kafka.coordinator.group.assignor.RangeAssignor``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assignors.ordering import members_static_first
from assignors.range.range import assign_ranges
from assignors.subscriptions import group_assignment

if TYPE_CHECKING:
    from assignors.model import GroupAssignment, GroupSpec


class ServerRangeAssignor:
    """The range strategy of the broker, which assigns like the client's range strategy without racks.

    In this package, the name of the strategy is ``server-range``. In ``group.remote.assignor`` and on the broker, the
    name is ``range``.

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("M0", ("T1", "T2")), Member("M1", ("T1", "T2"))), {"T1": 3, "T2": 3})
    >>> ServerRangeAssignor().assign(group).members["M1"]
    (('T1', 2), ('T2', 2))
    """

    name = "server-range"

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Assign ``group``. Racks and the current target assignment have no effect."""
        members = members_static_first(group)
        return group_assignment(members, assign_ranges(group, members))
