"""Decide whether a cluster is ready.

A cluster is ready if the query is running, the log is read to its end, and all groups are evaluated. If a
`__consumer_offsets` partition has no leader, Spark's Kafka source reads no other partition, and the query fails after
three minutes. So the cluster is not ready if one of these partitions has no leader for LEADERLESS_MS. The last entries
of a partition can be transaction markers, which clients do not receive. So the monitor compares positions with the end
of the log, and does not wait for a record at the last offset.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from streaming.evaluation.incidents.evidence import LEADERLESS_MS
from streaming.evaluation.lag.lag import ClusterSample

EVALUATED_WITHIN_SAMPLES = 10
"""After the query has read the log, wait for verdicts for at most this number of samples (one per second)."""


class Readiness:
    """Decides whether the query has reached its target positions. Several threads use this object.

    After each start of the query, `targets_of` computes the target positions from the first sample that is sufficient.
    The targets are the ends of the partitions of `__consumer_offsets`. In the polling mode, the target is the position
    after the last event of the first complete poll.
    """

    def __init__(
        self,
        source_is_alive: Callable[[], bool],
        targets_of: Callable[[ClusterSample], Mapping[int, int] | None],
    ) -> None:
        self._source_is_alive = source_is_alive
        self._targets_of = targets_of
        self._targets: Mapping[int, int] | None = None
        self._caught_up = False
        self._samples_since_read = 0
        self._lock = threading.Lock()
        self._progress = threading.Event()
        self._leaderless_since_ms: int | None = None

    def start_over(self) -> None:
        """Reset the readiness when the query starts: it must first read the records that were written meanwhile."""
        with self._lock:
            self._targets, self._caught_up, self._samples_since_read = None, False, 0
        self.report_progress()

    def report_progress(self) -> None:
        """End `wait_for_progress`. Call the method when the query starts, a batch ends, or the watch ends."""
        self._progress.set()

    def wait_for_progress(self, seconds: float) -> None:
        """Wait up to `seconds` for a call of `report_progress`, also for a call after the previous wait."""
        self._progress.wait(seconds)
        self._progress.clear()

    @property
    def is_reading_log(self) -> bool:
        """True if the query has not reached its known targets. Only a batch can make the cluster ready then."""
        with self._lock:
            return self._targets is not None and self._samples_since_read == 0

    def after(self, positions: Mapping[int, int], sample: ClusterSample, *, is_evaluated: bool) -> bool:
        """Evaluate the readiness after a sample. Return True if the cluster is ready.

        `positions` are the positions of the query before the sample. So the lag of the sample was computed with all
        commits before these positions. `is_evaluated` is True if the group states already contain all facts of the
        sample. If new groups appear all the time, it is possibly never True (`EVALUATED_WITHIN_SAMPLES`).

        If a partition has no leader for LEADERLESS_MS, the cluster is not ready until the query has read the log to its
        end again. A shorter time without a leader is normal when a broker restarts.
        """
        with self._lock:
            if self._is_without_leader(sample):
                self._targets, self._caught_up, self._samples_since_read = None, False, 0
                return False
            if self._targets is None:
                self._targets = self._targets_of(sample)
            if self._targets is not None and not self._caught_up and is_caught_up(positions, self._targets):
                self._samples_since_read += 1
                self._caught_up = is_evaluated or self._samples_since_read >= EVALUATED_WITHIN_SAMPLES
            return self._caught_up and self._source_is_alive()

    def _is_without_leader(self, sample: ClusterSample) -> bool:
        if self._targets_of is not log_ends or not sample.leaderless_offsets_topic_partitions:
            self._leaderless_since_ms = None
            return False
        if self._leaderless_since_ms is None:
            self._leaderless_since_ms = sample.monitor_ms
        return sample.monitor_ms - self._leaderless_since_ms >= LEADERLESS_MS


def log_ends(sample: ClusterSample) -> Mapping[int, int] | None:
    """Return the targets. Return None if the sample does not contain the end of every partition."""
    if not 0 < sample.offsets_topic_partitions == len(sample.offsets_topic):
        return None
    return {partition: ends.last_stable_offset for partition, ends in sample.offsets_topic.items()}


def is_caught_up(positions: Mapping[int, int], targets: Mapping[int, int]) -> bool:
    """Return True if every partition was read up to its target. A missing position counts as 0."""
    return all(positions.get(partition, 0) >= target for partition, target in targets.items())
