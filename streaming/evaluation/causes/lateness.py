"""At each sample, find the partitions whose records have waited too long.

1. Records of a partition *wait* if its lag in seconds is at least WAITING_SECONDS. If only a lower bound of the lag is
   known, the bound is compared with WAITING_SECONDS. If the lag in seconds is unknown, the records do not wait.
2. A partition is *behind* if its records wait, and the lag was already at least WAITING_SECONDS at the last commit. So
   a group that reads everything and commits once per five minutes is never behind. If an open transaction has blocked
   the partition for at least BLOCKED_SECONDS, the lag at the last commit does not matter, because many clients commit
   only after new records. Shorter transactions are normal: a producer of Flink keeps its transaction open until the
   next checkpoint.
3. A partition is *late* if it has been behind at MIN_SAMPLES or more samples in a row, and for at least LATE_MS. After
   a sample at which the partition is not behind, the count starts again. The count also starts again when an open
   transaction begins to block the partition, and when the transaction ends.
4. A partition with the status STOP is late as soon as its records wait. Rule 2 is not necessary, because STOP already
   means that the last commit is old (`status.py`).
5. The *speed* of a partition shows how fast the group has consumed the partition since the sample with the largest lag
   in seconds (at the last commit). The speed is 2 if the lag has decreased by one second per second. The speed is
   unknown if the lag has decreased by less than MIN_DECREASE_SECONDS. Without this limit, the speed would vary from
   commit to commit. The speed is also unknown if the sample with the largest lag is more than WINDOW_MS old
   (`rates.py`). Then the average rates cover the same time, so the speed is not needed. Before that, the average rates
   also cover earlier time, for example a time in which the members hung. If only a lower bound of the lag is known, the
   bound increases, so the speed is unknown. A loss of unread records also decreases the lag. So after a sample with
   lost records, or with a step that crosses the log start (rule 7 of `rates.py`), earlier samples do not count.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from assignors import TopicPartition
from streaming.evaluation.lag.rates import WINDOW_MS

WAITING_SECONDS = 30
BLOCKED_SECONDS = 180
MIN_DECREASE_SECONDS = 10
LATE_MS = 60_000
MIN_SAMPLES = 3


class Behind(NamedTuple):
    """How long a partition has been behind: the time of the first sample, and the number of samples.

    `seconds` is the lag in seconds at the last commit before the latest sample. `largest_seconds` is the largest such
    value. `largest_ms` is the time of the sample with this value.
    """

    since_ms: int
    samples: int
    seconds: float = 0.0
    largest_seconds: float = 0.0
    largest_ms: int = 0
    is_blocked: bool = False

    def is_late(self, sampled_at_ms: int) -> bool:
        """Return True if the partition is late at the time of a sample (rule 3).

        >>> Behind(0, 3).is_late(59_999), Behind(0, 3).is_late(60_000), Behind(0, 2).is_late(60_000)
        (False, True, False)
        """
        return self.samples >= MIN_SAMPLES and sampled_at_ms - self.since_ms >= LATE_MS

    def speed(self, sampled_at_ms: int) -> float | None:
        """Return the speed at the time of a sample, or None if it is unknown (rule 5).

        >>> behind = Behind(0, 3, seconds=60, largest_seconds=90)
        >>> behind.speed(60_000), behind.speed(300_001), behind._replace(largest_seconds=65).speed(60_000)
        (1.5, None, None)
        """
        elapsed_ms, decrease_seconds = sampled_at_ms - self.largest_ms, self.largest_seconds - self.seconds
        if decrease_seconds < MIN_DECREASE_SECONDS or not 0 < elapsed_ms <= WINDOW_MS:
            return None
        return 1 + 1000 * decrease_seconds / elapsed_ms


def next_behind(
    known: Mapping[TopicPartition, Behind],
    behind: Mapping[TopicPartition, float],
    blocked: Container[TopicPartition],
    lost: Container[TopicPartition],
    sampled_at_ms: int,
) -> Mapping[TopicPartition, Behind]:
    """Count one more sample for the partitions that are behind, and forget all others (rule 3).

    >>> next_behind({("a", 0): Behind(5, 1, 31, 31, 5), ("a", 1): Behind(5, 1)}, {("a", 0): 40}, [], [], 15)
    {('a', 0): Behind(since_ms=5, samples=2, seconds=40, largest_seconds=40, largest_ms=15, is_blocked=False)}
    """
    following = {}
    for partition, seconds in behind.items():
        before, is_blocked = known.get(partition), partition in blocked
        if before is None or before.is_blocked != is_blocked:
            before = Behind(sampled_at_ms, 0, is_blocked=is_blocked)
        if seconds >= before.largest_seconds or partition in lost:
            before = before._replace(largest_seconds=seconds, largest_ms=sampled_at_ms)
        following[partition] = before._replace(samples=before.samples + 1, seconds=seconds)
    return following
