"""Convert the times of commits to the cluster's time.

The coordinator writes the time of its own clock into each commit. This clock can differ from the cluster's time, and it
can be set. So the lag evaluation does not use the coordinator's times, but the times of this module. Rules:

1. The time of a commit is the coordinator's time, minus the difference between the coordinator's clock and the
   cluster's time at the sample that first sees the commit. This time never changes (exception: rule 3).
2. The commit was written before this sample. So if its time is later than the sample, it gets the time of the sample.
3. If the cluster's time has a large step (`ClusterSample.clock_base_ms`), the earlier cluster times were wrong. So the
   times of all commits are computed again.
"""

from __future__ import annotations

import numpy as np

from streaming.combine.big_endian import Int64Array
from streaming.evaluation.lag.stored.topic_partitions import grown


class CommitTimes:
    """The last commit of many rows, and its time. The caller assigns the row numbers.

    >>> times, row = CommitTimes(), np.array([0])
    >>> at_ms = [(1, 5_000, 0), (1, 5_000, 3_000), (2, 9_000, 3_000)]
    >>> [times.add(row, np.array([n]), np.array([ms]), ahead_ms, 6_000).tolist() for n, ms, ahead_ms in at_ms]
    [[5000], [5000], [6000]]
    """

    def __init__(self) -> None:
        self._commits: Int64Array = np.empty(0, dtype=np.int64)
        self._times_ms: Int64Array = np.empty(0, dtype=np.int64)
        self._seen_ms: Int64Array = np.empty(0, dtype=np.int64)

    def add(
        self,
        rows: Int64Array,
        commits: Int64Array,
        coordinator_ms: Int64Array,
        ahead_ms: Int64Array | int,
        sampled_at_ms: int,
    ) -> Int64Array:
        """Add the last commits of one sample, and return their times. The rows are distinct.

        `commits` contains the offset of each commit's record. `ahead_ms` is the time of the coordinator's clock minus
        the cluster's time.
        """
        size = int(rows.max(initial=-1)) + 1
        self._commits, self._seen_ms = grown(self._commits, size, -1), grown(self._seen_ms, size, -1)
        self._times_ms = grown(self._times_ms, size, -1)
        is_new = self._commits[rows] != commits
        self._commits[rows] = commits
        self._seen_ms[rows[is_new]] = sampled_at_ms
        computed_ms = np.clip(coordinator_ms - ahead_ms, 0, np.maximum(self._seen_ms[rows], 0))
        is_computed = is_new | (self._times_ms[rows] == -1)
        self._times_ms[rows[is_computed]] = computed_ms[is_computed]
        times_ms: Int64Array = self._times_ms[rows]
        return times_ms

    def follow_step(self, step_ms: int) -> None:
        """Apply rule 3: the cluster's time had a step of `step_ms`."""
        self._seen_ms += step_ms
        self._times_ms[:] = -1
