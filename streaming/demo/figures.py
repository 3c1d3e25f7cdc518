"""The fields of the monitor's response to `/api/v1/groups` that the screen shows. Other fields are ignored.

A missing value is None, never 0.
"""

from __future__ import annotations

from msgspec import Struct


class Shares(Struct, frozen=True):
    """The distribution of a group's partitions."""

    max_partitions: int | None = None
    excess_partitions: int | None = None
    idle_members: int | None = None


class LagCause(Struct, frozen=True):
    """The cause of a group's lag. `text` describes the cause in a sentence."""

    text: str


class GroupFigures(Struct, frozen=True):
    """The values of one group. None means unknown.

    `protocol` is the name of the group's strategy. `drift_partitions` is the number of partitions whose owner breaks a
    rule of this strategy.
    """

    group_id: str
    protocol: str | None = None
    state: str | None = None
    member_count: int | None = None
    generation_id: int | None = None
    rebalances_total: int | None = None
    shares: Shares = Shares()
    drift_partitions: int | None = None
    lag: int | None = None
    cause: LagCause | None = None


class Figures(Struct, frozen=True):
    """The response. While the monitor catches up, the response contains no groups."""

    phase: str = ""
    groups: list[GroupFigures] = []

    @property
    def ready(self) -> bool:
        """True if the monitor is ready."""
        return self.phase == "ready"
