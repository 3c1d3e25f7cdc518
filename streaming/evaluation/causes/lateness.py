"""At each sample, find the partitions whose records have waited too long.

1. Records of a partition *wait* if its lag in seconds is at least WAITING_SECONDS. If only a lower bound of the lag is
   known, the bound is compared with WAITING_SECONDS. If the lag in seconds is unknown, the records do not wait.
2. A partition is *behind* if its records wait, and the lag was already at least WAITING_SECONDS at the last commit. So
   a group that reads everything and commits once per five minutes is never behind.
3. A partition is *late* if it has been behind at MIN_SAMPLES or more samples in a row, and for at least LATE_MS. After
   a sample at which the partition is not behind, the count starts again.
4. A partition with the status STOP is late as soon as its records wait. Rule 2 is not necessary, because STOP already
   means that the last commit is old (`status.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from assignors import TopicPartition

WAITING_SECONDS = 30
LATE_MS = 60_000
MIN_SAMPLES = 3


class Behind(NamedTuple):
    """How long a partition has been behind: the time of the first sample, and the number of samples."""

    since_ms: int
    samples: int

    def is_late(self, sampled_at_ms: int) -> bool:
        """Return True if the partition is late at the time of a sample (rule 3).

        >>> Behind(0, 3).is_late(59_999), Behind(0, 3).is_late(60_000), Behind(0, 2).is_late(60_000)
        (False, True, False)
        """
        return self.samples >= MIN_SAMPLES and sampled_at_ms - self.since_ms >= LATE_MS


def next_behind(
    known: Mapping[TopicPartition, Behind], behind: Iterable[TopicPartition], sampled_at_ms: int
) -> Mapping[TopicPartition, Behind]:
    """Count one more sample for the partitions that are behind, and forget all others (rule 3).

    >>> next_behind({("a", 0): Behind(5, 1), ("a", 1): Behind(5, 1)}, [("a", 0), ("a", 2)], 15)
    {('a', 0): Behind(since_ms=5, samples=2), ('a', 2): Behind(since_ms=15, samples=1)}
    """
    before = {partition: known.get(partition, Behind(sampled_at_ms, 0)) for partition in behind}
    return {partition: one._replace(samples=one.samples + 1) for partition, one in before.items()}
