"""Defines the types for the last rebalances of a group, as pages show them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RebalanceLine:
    """One rebalance, or one other change of a group's members.

    `text` describes the change in a sentence. Member names in `text` are not escaped.
    """

    timestamp_ms: int
    generation_id: int | None
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class LastRebalances:
    """The last rebalances, the newest first. If the rebalances cannot be read, `error` is the reason."""

    lines: tuple[RebalanceLine, ...] = ()
    error: str | None = None
