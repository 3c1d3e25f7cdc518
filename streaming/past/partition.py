"""Defines a partition at a past moment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PastPartition:
    """One partition with a committed offset, at a past moment. `row_time_ms` is the time of the partition's last row.

    None means unknown.
    """

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
