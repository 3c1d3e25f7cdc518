"""Everything that is known at one moment, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from streaming.combine.gaps import GapTotals
from streaming.combine.partition_state import PartitionSnapshot
from streaming.config.settings import OFFSETS_TOPIC_SOURCE
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.conditions.unowned import UnownedNow
from streaming.evaluation.fairness.imbalance import Imbalance
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample, blocked_groups
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.rebalances.skips import SkipDecisions
from streaming.events import Position
from streaming.group.listing import GroupListing
from streaming.integrity.read_up_to import ReadUpTo


@dataclass(frozen=True, slots=True)
class Health:
    """How the monitor itself fares.

    `not_known` is what its source leaves open of every group. `rewound` are partitions of `__consumer_offsets` that
    were found to end before where they were read to, since the start: with any, nothing is ready. `times_ready` counts
    how often it became ready.
    """

    ready: bool = False
    was_ready: bool = False
    times_ready: int = 0
    batch_id: int = -1
    batch_seconds: float | None = None
    positions: Mapping[int, int] = field(default_factory=dict)
    query_restarts: int = 0
    source: str = OFFSETS_TOPIC_SOURCE
    not_known: tuple[str, ...] = ()
    rewound: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class WorkShares:
    """How a group shares lag and throughput among members and hosts, by the assignment evaluated at `position`."""

    position: Position
    imbalances: tuple[Imbalance, ...]


@dataclass(frozen=True, slots=True)
class MonitorView:
    """Everything a scrape shows, as of one moment.

    `groups` holds dead groups too, as long as their totals are kept. `rebalancing_since_ms` is, by group, the time of
    the first listing since the group's last record that showed it in the middle of a rebalance. `read_up_to` tells by
    partition of `__consumer_offsets` up to which time it was read, and by -1 up to which time coordinators were asked.
    `conditions` are those that held at the last sample, by group, and `unowned` the partitions that had no owner;
    groups without any are left out. `gap_totals` are those of commit gaps by group. `work` is as of the last time it
    was measured, which is done only while the monitor is ready: there is none while it is not.
    """

    groups: Mapping[str, GroupState] = field(default_factory=dict)
    partition_states: Mapping[int, PartitionSnapshot] = field(default_factory=dict)
    sample: ClusterSample | None = None
    listing: GroupListing | None = None
    rebalancing_since_ms: Mapping[str, int] = field(default_factory=dict)
    lag: LagEvaluation | None = None
    health: Health = field(default_factory=Health)
    read_up_to: Mapping[int, ReadUpTo] = field(default_factory=dict)
    gap_totals: Mapping[str, GapTotals] = field(default_factory=dict)
    conditions: Mapping[str, tuple[Condition, ...]] = field(default_factory=dict)
    unowned: Mapping[str, UnownedNow] = field(default_factory=dict)
    work: Mapping[str, WorkShares] = field(default_factory=dict)
    decided_skips: SkipDecisions = field(default_factory=dict)

    def alive_groups(self) -> Mapping[str, GroupState]:
        """Groups that exist, by id, sorted."""
        return {group: record for group, record in sorted(self.groups.items()) if not record.snapshot.is_over}

    def cluster_ms(self, monitor_ms: int) -> int:
        """The cluster's time, by which all times here are told, at a time of the monitor's clock."""
        return monitor_ms + (0 if self.sample is None else self.sample.clock_correction_ms)

    def blocked_groups(self) -> Callable[[str], bool]:
        """Return a function that checks if an open transaction blocks a group.

        Under read_committed nothing behind the first open transaction of a partition is handed out, other groups'
        records included. What such a group does now is unknown.
        """
        return blocked_groups(self.sample or ClusterSample(0))
