"""Whether what we show is the present: caught up with the log, the query alive, verdicts made.

Catching up is told by consumer positions, not by records: a partition may end in transaction markers that no client is
ever handed, and waiting for its last record would be waiting for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from streaming.evaluation.lag.lag import ClusterSample

EVALUATED_WITHIN_SAMPLES = 10
"""Samples made after the log was read, a second apart: verdicts that take longer are not waited for."""


class Readiness:
    """Remembers the positions that have to be reached; told anew whenever the query starts again.

    `targets_of` tells them, from the first sample on by which they can be told: the ends of the log, or what the first
    poll sent where coordinators are asked instead.

    One thread starts the query, another samples: what the one says must not be undone by what the other is about to.
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
        """The query starts (again): what was written meanwhile has to be read first."""
        with self._lock:
            self._targets, self._caught_up, self._samples_since_read = None, False, 0

    def after(self, positions: Mapping[int, int], sample: ClusterSample, *, is_evaluated: bool) -> bool:
        """Judge after a sample.

        `positions` are those of the commits that its lag was told from; `is_evaluated` says that no group waits for a
        fact that is known. On a cluster where new groups come all the time some group always does, so that is not
        waited for longer than `EVALUATED_WITHIN_SAMPLES`.
        """
        with self._lock:
            if self._targets is None:
                self._targets = self._targets_of(sample)
            if self._targets is not None and not self._caught_up and is_caught_up(positions, self._targets):
                self._samples_since_read += 1
                self._caught_up = is_evaluated or self._samples_since_read >= EVALUATED_WITHIN_SAMPLES
            return self._caught_up and self._source_is_alive()


def log_ends(sample: ClusterSample) -> Mapping[int, int] | None:
    """Where reading has to get; None where the end of some partition was not sampled: who knows how far it is."""
    if not 0 < sample.offsets_topic_partitions == len(sample.offsets_topic):
        return None
    return {partition: ends.last_stable_offset for partition, ends in sample.offsets_topic.items()}


def is_caught_up(positions: Mapping[int, int], targets: Mapping[int, int]) -> bool:
    """Whether every partition was read up to its target; a partition never read counts as position 0."""
    return all(positions.get(partition, 0) >= target for partition, target in targets.items())
