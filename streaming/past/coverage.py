"""Decides which moments the tables cover.

1. The tables do not cover a moment before the first row of the cluster.
2. The tables do not cover a moment in the future.
3. The tables also cover the moments between the last row and now. Either nothing changed in this time, or the monitor
   did not run. So each output shows the time of the last row. In this time, measured values can be unknown
   (`silence.py`, rule 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Coverage:
    """The times of the first and the last row of a cluster. Both times are None if the tables have no row."""

    first_ms: int | None = None
    last_ms: int | None = None

    def refusal(self, moments_ms: Sequence[int], now_ms: int) -> str | None:
        """Return the reason why the tables do not cover a moment (rules 1 and 2), or None if they cover all moments.

        >>> Coverage(1000, 2000).refusal([1000], 9000), Coverage(1000, 2000).refusal([2000, 999], 9000)
        (None, 'the moment is earlier than the first row')
        """
        if self.first_ms is None:
            return "the tables have no row of this cluster"
        for at_ms in moments_ms:
            if at_ms > now_ms:
                return "the moment is in the future"
            if at_ms < self.first_ms:
                return "the moment is earlier than the first row"
        return None
