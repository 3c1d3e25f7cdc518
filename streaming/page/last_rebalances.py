"""Defines the types for the rebalances that a group's page shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DescribedRebalance:
    """One rebalance, or one other change of a group's members (for example `became_empty`).

    Member names in `text` are not escaped. The previous values come from the previous row of the table. They are None
    if there is no previous row, or if that row is about a deletion. `recommitted_records` is None if it is unknown, for
    example until the commit gap ends.
    """

    timestamp_ms: int
    generation_id: int | None
    kind: str
    text: str
    previous_generation_id: int | None = None
    previous_timestamp_ms: int | None = None
    recommitted_records: int | None = None


@dataclass(frozen=True, slots=True)
class LastRebalances:
    """The last rebalances, the newest first. If the rebalances cannot be read, `error` contains the reason."""

    lines: tuple[DescribedRebalance, ...] = ()
    error: str | None = None
