"""The durations of all micro-batches since the start of the monitor, as a histogram."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

BATCH_BUCKETS_SECONDS = (0.5, 1, 2, 5, 10, 20, 30, 60)
"""Upper bounds of the buckets in seconds. The last bucket has no upper bound and counts all longer batches."""


@dataclass(frozen=True, slots=True)
class BatchDurations:
    """The number of batches in each bucket, and the sum of the durations of all batches."""

    buckets: tuple[int, ...] = (0,) * (len(BATCH_BUCKETS_SECONDS) + 1)
    sum_seconds: float = 0.0

    def add(self, seconds: float) -> BatchDurations:
        """Return a histogram that also contains the given batch.

        >>> BatchDurations().add(1.0).add(90.0)
        BatchDurations(buckets=(0, 1, 0, 0, 0, 0, 0, 0, 1), sum_seconds=91.0)
        """
        buckets = list(self.buckets)
        buckets[bisect_left(BATCH_BUCKETS_SECONDS, seconds)] += 1
        return BatchDurations(tuple(buckets), self.sum_seconds + seconds)
