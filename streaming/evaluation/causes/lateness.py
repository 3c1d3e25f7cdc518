"""At each sample, find the partitions whose records have waited too long.

1. Records of a partition *wait* if its lag in seconds is at least WAITING_SECONDS. If only a lower bound of the lag is
   known, the bound is compared with WAITING_SECONDS. If the lag in seconds is unknown, the records do not wait.
2. A partition is *behind* if its records wait, and the lag was already at least WAITING_SECONDS at the last commit. So
   a group that reads everything and commits once per five minutes is never behind. If an open transaction blocks the
   partition, the partition is behind as soon as its records wait, because many clients commit only after new records.
3. A partition is *late* if it has been behind at MIN_SAMPLES or more samples in a row, and for at least LATE_MS. After
   a sample at which the partition is not behind, the count starts again. The count also starts again when an open
   transaction begins to block the partition, and when the transaction ends.
4. A partition with the status STOP is late as soon as its records wait. Rule 2 is not necessary, because STOP already
   means that the last commit is old (`status.py`).
5. The *speed* of a partition shows how fast the group consumed the partition since the first sample of the count. The
   speed is 1 if the lag in seconds at the last commit did not change. The speed is 2 if it decreased by one second per
   second. The speed is unknown if the partition has been behind for more than WINDOW_MS (`rates.py`). Then the average
   rates cover the same time. Before, they also cover earlier time, for example a time in which the members hung.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from assignors import TopicPartition
from streaming.evaluation.lag.rates import WINDOW_MS

WAITING_SECONDS = 30
LATE_MS = 60_000
MIN_SAMPLES = 3


class Behind(NamedTuple):
    """How long a partition has been behind: the time of the first sample, and the number of samples.

    `first_seconds` and `seconds` are the lag in seconds at the last commit before the first and the latest sample.
    """

    since_ms: int
    samples: int
    first_seconds: float = 0.0
    seconds: float = 0.0
    is_blocked: bool = False

    def is_late(self, sampled_at_ms: int) -> bool:
        """Return True if the partition is late at the time of a sample (rule 3).

        >>> Behind(0, 3).is_late(59_999), Behind(0, 3).is_late(60_000), Behind(0, 2).is_late(60_000)
        (False, True, False)
        """
        return self.samples >= MIN_SAMPLES and sampled_at_ms - self.since_ms >= LATE_MS

    def speed(self, sampled_at_ms: int) -> float | None:
        """Return the speed at the time of a sample, or None if it is unknown (rule 5).

        >>> Behind(0, 3, first_seconds=90, seconds=60).speed(60_000), Behind(0, 3, 90, 60).speed(300_001)
        (1.5, None)
        """
        elapsed_ms = sampled_at_ms - self.since_ms
        return 1 + 1000 * (self.first_seconds - self.seconds) / elapsed_ms if 0 < elapsed_ms <= WINDOW_MS else None


def next_behind(
    known: Mapping[TopicPartition, Behind],
    behind: Mapping[TopicPartition, float],
    blocked: Container[TopicPartition],
    sampled_at_ms: int,
) -> Mapping[TopicPartition, Behind]:
    """Count one more sample for the partitions that are behind, and forget all others (rule 3).

    >>> next_behind({("a", 0): Behind(5, 1, 31, 31), ("a", 1): Behind(5, 1)}, {("a", 0): 40}, [], 15)
    {('a', 0): Behind(since_ms=5, samples=2, first_seconds=31, seconds=40, is_blocked=False)}
    """
    following = {}
    for partition, seconds in behind.items():
        before, is_blocked = known.get(partition), partition in blocked
        if before is None or before.is_blocked != is_blocked:
            before = Behind(sampled_at_ms, 0, first_seconds=seconds, is_blocked=is_blocked)
        following[partition] = before._replace(samples=before.samples + 1, seconds=seconds)
    return following
