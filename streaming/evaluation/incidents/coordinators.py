"""Store the present and the former leader of each partition of `__consumer_offsets` (rule 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streaming.evaluation.incidents.evidence import UNKNOWN_COORDINATOR, Coordinator
from streaming.evaluation.incidents.incident import START_WINDOW_MS


@dataclass(frozen=True, slots=True)
class CoordinatorHistory:
    """The last known leader of each partition of `__consumer_offsets`, and former leaders that are gone (rule 4).

    `lost` maps a partition to its former leader and the time of the loss. `leaderless` maps each partition without a
    leader to the time of the first sample that showed no leader.
    """

    leaders: Mapping[int, int] = field(default_factory=dict)
    lost: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    leaderless: Mapping[int, int] = field(default_factory=dict)

    def after_sample(self, leaders: Mapping[int, int], sampled_at_ms: int) -> CoordinatorHistory:
        """Return the history, updated with a sample. Partitions without a leader are not in `leaders`.

        In the example, broker 3 leads partitions 0 and 1. Then partition 0 has a new leader, and partition 1 has no
        leader. Later, broker 3 leads partition 1 again.

        >>> before = CoordinatorHistory().after_sample({0: 3, 1: 3, 2: 1}, 0)
        >>> after = before.after_sample({0: 1, 2: 1}, 5_000)
        >>> after.coordinator(0) == Coordinator(3, is_gone=True), after.coordinator(2) == Coordinator(1)
        (True, True)
        >>> after.coordinator(1)
        Coordinator(broker_id=3, is_gone=True, leaderless_since_ms=5000)
        >>> after.after_sample({0: 1, 1: 3, 2: 1}, 10_000).coordinator(0) == Coordinator(1)
        True
        """
        alive = frozenset(leaders.values())
        lost = {
            partition: (broker_id, at_ms)
            for partition, (broker_id, at_ms) in self.lost.items()
            if broker_id not in alive and (partition not in leaders or sampled_at_ms - at_ms <= START_WINDOW_MS)
        }
        for partition, broker_id in self.leaders.items():
            if broker_id not in alive and partition not in lost:
                lost[partition] = (broker_id, sampled_at_ms)
        without_leader = self.leaders.keys() - leaders.keys()
        leaderless = {partition: self.leaderless.get(partition, sampled_at_ms) for partition in without_leader}
        return CoordinatorHistory({**self.leaders, **leaders}, lost, leaderless)

    def coordinator(self, partition: int) -> Coordinator:
        """Return the coordinator of the groups in a partition of `__consumer_offsets`."""
        leaderless_since_ms = self.leaderless.get(partition)
        if partition in self.lost:
            return Coordinator(self.lost[partition][0], is_gone=True, leaderless_since_ms=leaderless_since_ms)
        if partition in self.leaders:
            return Coordinator(self.leaders[partition], leaderless_since_ms=leaderless_since_ms)
        return UNKNOWN_COORDINATOR
