"""Finds the times at which the monitor did not measure the cluster.

1. Each row of `group_lag` proves that the monitor measured the cluster at the time of the row. If no offset changed,
   the monitor writes one unchanged row (`run/samples/lag/lag_tables.py`). So if a long period has no rows, the monitor
   did not measure the cluster. There is one exception: without committed offsets in the cluster, there are no rows.
2. The longest allowed period without a row is three times the median interval of measurements (at least
   `MIN_SILENCE_MS`).
3. Lag, status, conditions, causes of lag and incidents come from measurements. At a moment without measurements, values
   from measurements are unknown. Members and verdicts stay known, because a restarted monitor reads the records that it
   missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

MIN_SILENCE_MS: Final = 180_000
LOOK_BACK_MS: Final = 7_200_000
"""Readers read the measurements in this period before the moment, to compute the median interval (rule 2)."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The last measurement at or before a moment. If it is not recent, measured values are unknown (rule 3)."""

    last_ms: int | None = None
    is_recent: bool = False


def silence_limit_ms(measured_ms: Sequence[int]) -> int:
    """Return the longest allowed period without a row (rule 2). `measured_ms` is sorted.

    >>> silence_limit_ms([]), silence_limit_ms([0, 30_000]), silence_limit_ms([0, 600_000, 1_200_000])
    (180000, 180000, 1800000)
    """
    usual_ms = median(after - before for before, after in pairwise(measured_ms)) if len(measured_ms) > 1 else 0
    return max(MIN_SILENCE_MS, int(3 * usual_ms))


def is_measured(measured_ms: Sequence[int], at_ms: int) -> bool:
    """Return True if the last of the sorted measurements before the moment is recent (rule 2).

    >>> is_measured([0, 30_000], 210_000), is_measured([0, 30_000], 210_001), is_measured([], 0)
    (True, False, False)
    """
    return bool(measured_ms) and at_ms - measured_ms[-1] <= silence_limit_ms(measured_ms)
