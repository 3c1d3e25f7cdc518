"""Whether what we show is the present: caught up with the log, the query alive, verdicts made.

Catching up is told by consumer positions, not by records: a partition may end in transaction markers that no client is
ever handed, and waiting for its last record would be waiting for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streaming.judgement.lag import ClusterSample
from streaming.sinks.registry import Present


class Readiness:
    """Remembers the ends that have to be reached; told anew whenever the query starts again."""

    def __init__(self, query_is_alive: Callable[[], bool]) -> None:
        self._query_is_alive = query_is_alive
        self._targets: Mapping[int, int] | None = None
        self._caught_up = False

    def start_over(self) -> None:
        """The query starts (again): what was written meanwhile has to be read first."""
        self._targets, self._caught_up = None, False

    def after(self, before: Present, sample: ClusterSample) -> bool:
        """Judge after a sample. `before` is the present as it was when the commits for its lag were taken."""
        if self._targets is None:
            self._targets = {partition: ends.last_stable_offset for partition, ends in sample.offsets_topic.items()}
        if not self._caught_up:
            self._caught_up = is_caught_up(before.health.positions, self._targets) and _is_judged(before)
        return self._caught_up and self._query_is_alive()


def is_caught_up(positions: Mapping[int, int], targets: Mapping[int, int]) -> bool:
    """Whether every partition was read up to its target; a partition never read counts as position 0."""
    return all(positions.get(partition, 0) >= target for partition, target in targets.items())


def _is_judged(present: Present) -> bool:
    """Whether no group still waits for metadata that was sampled after it was first judged."""
    judgements = (record.judgement for record in present.groups.values())
    return all(judgement.is_complete for judgement in judgements if judgement is not None)
