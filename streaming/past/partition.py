"""Defines a partition as of a moment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PastPartition:
    """One committed partition as of a moment. None means unknown. `row_time_ms` is the sampling time of its row."""

    topic: str
    partition: int
    row_time_ms: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    unknown_reason: str | None
    lag_seconds: float | None
    lag_seconds_is_bound: bool
    status: str | None
    records_lost: int | None
