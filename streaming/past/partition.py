"""Defines the type for the values of a partition at a past moment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PastPartition:
    """One partition with a committed offset, at the last measurement before a past moment. None means unknown."""

    topic: str
    partition: int
    row_time_ms: int
    committed_offset: int | None = None
    end_offset: int | None = None
    lag: int | None = None
    unknown_reason: str | None = None
    lag_seconds: float | None = None
    lag_seconds_is_bound: bool = False
    status: str | None = None
    records_lost: int | None = None
