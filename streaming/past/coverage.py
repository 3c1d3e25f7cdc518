"""The times that the tables cover.

1. A moment before the first row of the cluster has no answer. The tables do not show whether a group existed then.
2. A moment after the present has no answer.
3. A moment after the last row has an answer: members and verdicts have not changed since this row. This is wrong if the
   monitor did not run. So each output shows the time of the last row. Values from measurements are unknown
   (`silence.py`, rule 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Coverage:
    """The times of the first and the last row of a cluster. Both are None if the tables have no row."""

    first_ms: int | None = None
    last_ms: int | None = None

    def refusal(self, moments_ms: Sequence[int], now_ms: int) -> str | None:
        """Return the first reason why the tables cannot answer for these moments (rules 1 and 2). None if they can.

        Without a moment, the tables can answer if they have a row.

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
