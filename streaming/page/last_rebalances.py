"""A group's last rebalances as a page shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RebalanceLine:
    """One rebalance, or what else happened to a group's membership, in words. Names in it are as members gave them."""

    timestamp_ms: int
    generation_id: int | None
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class LastRebalances:
    """The last of them, the newest first; `why_not` says why they could not be read."""

    reported: tuple[RebalanceLine, ...] = ()
    why_not: str | None = None
