"""Decide whether a cluster is ready.

A cluster is ready if the query is running, the log is read to its end, and all groups are evaluated. If a
`__consumer_offsets` partition has no leader, Spark's Kafka source reads no other partition, and the query fails after
three minutes. So the cluster is not ready if one of these partitions has no leader for LEADERLESS_MS. The last entries
of a partition can be transaction markers, which clients do not receive. So the monitor compares positions with the end
of the log, and does not wait for a record at the last offset.

A running query can fall behind, for example if a batch hangs. Then the newest commits are missing, and healthy groups
look late. So the cluster is not ready in two cases, until the query has read the log to its end again:

1. A record has been unread for longer than `max_unread_ms`. Some seconds are normal, because a record waits for the end
   of the running batch and for the end of the next batch. The time starts at the first sample after the monitor saw the
   record. The time ends at the last sample before the monitor read the query's positions. So the time in which brokers
   answer slowly does not count.
2. The previous sample is older than `max_unread_ms` plus the sampling interval, for example because the machine was
   suspended. So it is unknown since when records have been unread. They can be as old as the previous sample.

If a sample does not contain the ends of all partitions, it sets no targets. Then only the targets of earlier samples
count. An unclean leader election can remove records before the query has read them. So if a sampled end is lower than a
target, the target becomes this end.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping

from streaming.evaluation.incidents.evidence import LEADERLESS_MS
from streaming.evaluation.lag.lag import ClusterSample

_SLOW_BATCH_SECONDS = 30.0
"""A batch of a healthy query takes at most this time. The longest batch in docs/SCALING.md took 4.3 s."""

EVALUATED_WITHIN_SAMPLES = 10
"""After the query has read the log, wait for verdicts for at most this number of samples (one per second)."""

_log = logging.getLogger(__name__)


class Readiness:
    """Decides whether the query has reached its target positions. Several threads use this object.

    `targets_of` returns the target positions of a sample. The targets are the ends of the partitions of
    `__consumer_offsets`. In the polling mode, the target is the position after the last event of the first complete
    poll that began after the last call of `on_reset`. Readiness calls `on_reset` each time that it forgets the targets.
    Rule 1 never applies in the polling mode. Instead, if the query hangs, the last complete poll becomes too old
    (`Poller.is_fresh`). After each start of the query, the cluster becomes ready when the query has reached the targets
    of the first sample that has targets.

    On Linux, all times are times since the boot of the machine. They include suspensions, and they do not change if the
    clock is set. On other systems, they follow the monitor's clock (`wall_clock.boot_time_ms`). `_unread` contains the
    targets of earlier samples that the query has not reached. Each target has the time of the sample that followed,
    because brokers can answer late.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the inputs of one cluster
        self,
        cluster: str,
        source_is_alive: Callable[[], bool],
        targets_of: Callable[[ClusterSample], Mapping[int, int] | None],
        max_unread_ms: float,
        interval_ms: float,
        on_reset: Callable[[], None] = lambda: None,
    ) -> None:
        self._cluster = cluster
        self._source_is_alive = source_is_alive
        self._targets_of = targets_of
        self._max_unread_ms = max_unread_ms
        self._max_gap_ms = max_unread_ms + interval_ms
        self._on_reset = on_reset
        self._targets: Mapping[int, int] | None = None
        self._last_targets: Mapping[int, int] | None = None
        self._unread = deque[tuple[int, Mapping[int, int]]]()
        self._sampled_ms: int | None = None
        self._caught_up = False
        self._samples_since_read = 0
        self._lock = threading.Lock()
        self._progress = threading.Event()
        self._leaderless_since_ms: int | None = None

    def start_over(self) -> None:
        """Reset the readiness when the query starts: the query must first read records that were written meanwhile."""
        with self._lock:
            self._forget()
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
        sample. If new groups appear all the time, `is_evaluated` is possibly never True (`EVALUATED_WITHIN_SAMPLES`).

        If a partition has no leader for LEADERLESS_MS, or if rule 1 or 2 applies, the cluster is not ready until the
        query has read the log to its end again. A shorter time without a leader is normal when a broker restarts.
        """
        with self._lock:
            since_boot_ms = sample.sampled_at_ms - sample.clock_base_ms
            if self._is_without_leader(sample, since_boot_ms):
                self._forget()
                return False
            self._lower_targets(sample)
            reason = self._why_behind(positions, since_boot_ms)
            if reason:
                self._report(reason)
                self._forget()
            targets = self._targets_of(sample)
            if self._targets is None:
                self._targets = targets
            if self._targets is not None and not self._caught_up and is_caught_up(positions, self._targets):
                self._samples_since_read += 1
                self._caught_up = is_evaluated or self._samples_since_read >= EVALUATED_WITHIN_SAMPLES
            self._last_targets = targets if self._samples_since_read else None
            return self._caught_up and self._source_is_alive()

    def _forget(self) -> None:
        self._targets, self._caught_up, self._samples_since_read = None, False, 0
        self._last_targets = None
        self._unread.clear()
        self._on_reset()

    def _lower_targets(self, sample: ClusterSample) -> None:
        ends = {partition: ends.last_stable_offset for partition, ends in sample.offsets_topic.items()}

        def lowered(targets: Mapping[int, int]) -> Mapping[int, int]:
            return {partition: min(target, ends.get(partition, target)) for partition, target in targets.items()}

        self._targets = None if self._targets is None else lowered(self._targets)
        self._last_targets = None if self._last_targets is None else lowered(self._last_targets)
        self._unread = deque((since_ms, lowered(targets)) for since_ms, targets in self._unread)

    def _why_behind(self, positions: Mapping[int, int], since_boot_ms: int) -> str:
        """Return why new commits can be missing (rules 1 and 2), or an empty text if no rule applies."""
        before_ms = since_boot_ms if self._sampled_ms is None else self._sampled_ms
        self._sampled_ms = since_boot_ms
        if since_boot_ms - before_ms > self._max_gap_ms:
            return (
                f"the last sample was {(since_boot_ms - before_ms) / 1000:.0f} seconds old, so commits can be missing"
            )
        if self._last_targets is not None:
            self._unread.append((since_boot_ms, self._last_targets))
        while self._unread and is_caught_up(positions, self._unread[0][1]):
            self._unread.popleft()
        unread_ms = before_ms - self._unread[0][0] if self._unread else 0
        if unread_ms > self._max_unread_ms:
            seconds = f"{unread_ms / 1000:.0f} seconds"
            return f"the monitor is at least {seconds} behind its source. The monitor is late, not the groups"
        return ""

    def _report(self, reason: str) -> None:
        if self._caught_up:
            _log.warning(
                "%s: %s. Until the monitor has read the new records, the lag of all groups is unknown",
                self._cluster,
                reason,
            )

    def _is_without_leader(self, sample: ClusterSample, since_boot_ms: int) -> bool:
        if self._targets_of is not log_ends or not sample.leaderless_offsets_topic_partitions:
            self._leaderless_since_ms = None
            return False
        if self._leaderless_since_ms is None:
            self._leaderless_since_ms = since_boot_ms
        return since_boot_ms - self._leaderless_since_ms >= LEADERLESS_MS


def max_unread_seconds(trigger_seconds: float) -> float:
    """Return the time in which a healthy query reads a new record.

    The record waits for the end of the running batch and for the end of the next batch. Before each of the two ends,
    Spark can also wait for the next trigger.

    >>> max_unread_seconds(2)
    64.0
    """
    return 2 * (_SLOW_BATCH_SECONDS + trigger_seconds)


def log_ends(sample: ClusterSample) -> Mapping[int, int] | None:
    """Return the targets. Return None if the sample does not contain the end of every partition."""
    if not 0 < sample.offsets_topic_partitions == len(sample.offsets_topic):
        return None
    return {partition: ends.last_stable_offset for partition, ends in sample.offsets_topic.items()}


def is_caught_up(positions: Mapping[int, int], targets: Mapping[int, int]) -> bool:
    """Return True if every partition was read up to its target. A missing position counts as 0."""
    return all(positions.get(partition, 0) >= target for partition, target in targets.items())
