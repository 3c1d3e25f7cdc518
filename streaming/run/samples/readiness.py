"""Decide whether a cluster is ready: the query has read the log to its end, it is running, and groups are evaluated.

The end is reached by consumer positions, not by records. A partition can end in transaction markers, which no client
receives. So the monitor must not wait for a record at the last offset.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from streaming.evaluation.lag.lag import ClusterSample

EVALUATED_WITHIN_SAMPLES = 10
"""Number of samples after the log was read, one second apart, after which readiness no longer waits for verdicts."""


class Readiness:
    """The positions that the query must reach. They are determined again after each start of the query.

    `targets_of` returns them for a sample, or None if the sample does not determine them. They are the ends of the
    log. In the polling mode they are the end of the first complete poll.

    The thread that starts the query and the sampler's thread both use it, under a lock.
    """

    def __init__(
        self,
        source_is_alive: Callable[[], bool],
        targets_of: Callable[[ClusterSample], Mapping[int, int] | None] | None = None,
    ) -> None:
        self._source_is_alive = source_is_alive
        self._targets_of = targets_of or log_ends
        self._targets: Mapping[int, int] | None = None
        self._caught_up = False
        self._samples_since_read = 0
        self._lock = threading.Lock()

    def start_over(self) -> None:
        """Reset when the query starts: it must first read everything that was written in the meantime."""
        with self._lock:
            self._targets, self._caught_up, self._samples_since_read = None, False, 0

    def after(self, positions: Mapping[int, int], sample: ClusterSample, *, is_evaluated: bool) -> bool:
        """Return whether the cluster is ready after a sample.

        `positions` are the positions from before the sample, as for the commits that lag was computed from.
        `is_evaluated` means that no group waits for a known fact. If new groups appear all the time, some group always
        waits. So readiness waits at most `EVALUATED_WITHIN_SAMPLES` samples for it.
        """
        with self._lock:
            if self._targets is None:
                self._targets = self._targets_of(sample)
            if self._targets is not None and not self._caught_up and is_caught_up(positions, self._targets):
                self._samples_since_read += 1
                self._caught_up = is_evaluated or self._samples_since_read >= EVALUATED_WITHIN_SAMPLES
            return self._caught_up and self._source_is_alive()


def log_ends(sample: ClusterSample) -> Mapping[int, int] | None:
    """Return the position that reading must reach in each partition. None if the end of a partition was not sampled."""
    if not 0 < sample.offsets_topic_partitions == len(sample.offsets_topic):
        return None
    return {partition: ends.last_stable_offset for partition, ends in sample.offsets_topic.items()}


def is_caught_up(positions: Mapping[int, int], targets: Mapping[int, int]) -> bool:
    """Return whether every partition was read up to its target. A partition that was never read has position 0."""
    return all(positions.get(partition, 0) >= target for partition, target in targets.items())
