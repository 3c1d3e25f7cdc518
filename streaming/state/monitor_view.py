"""Values that describe everything the monitor knows about one cluster at one moment."""

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
from streaming.state.batch_durations import BatchDurations


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the monitor itself for one cluster.

    `not_known` lists the kinds of values that the source cannot provide. `rewound` lists rewound partitions of
    `__consumer_offsets`. In such a partition, the end was found before the position that the monitor had already read.
    The list starts empty when the monitor starts. If a partition is rewound, the cluster is never ready. `positions`
    maps a partition to the next offset to read. `times_ready` counts the changes from not ready to ready. `was_ready`
    is True after the first change to ready. `batch_seconds` is the duration of the last batch, and `last_batch_ms` is
    its end by the clock of the monitor. `table_write_failures` counts failed writes to Delta tables. `folders` are the
    folders on disks of this machine, by the name of their setting.
    """

    ready: bool = False
    was_ready: bool = False
    times_ready: int = 0
    batch_id: int = -1
    batch_seconds: float | None = None
    batch_durations: BatchDurations = field(default_factory=BatchDurations)
    last_batch_ms: int | None = None
    table_write_failures: int = 0
    folders: Mapping[str, str] = field(default_factory=dict)
    positions: Mapping[int, int] = field(default_factory=dict)
    query_restarts: int = 0
    source: str = OFFSETS_TOPIC_SOURCE
    not_known: tuple[str, ...] = ()
    rewound: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class WorkShares:
    """The shares of lag and throughput of each member and host of a group.

    The assignment was evaluated at `position`.
    """

    position: Position
    imbalances: tuple[Imbalance, ...]


@dataclass(frozen=True, slots=True)
class MonitorView:
    """Everything that a scrape shows, at one moment.

    `groups` also contains dead groups while their totals are stored. `rebalancing_since_ms` has one time per group. It
    is the time of the first listing that showed the group in a rebalance since the group's last record. `read_up_to`
    maps each partition of `__consumer_offsets` to the time up to which the partition was read. The key -1 of
    `read_up_to` maps to the time of the last complete poll of the coordinators. `conditions` has, for each group, the
    active conditions at the last sample. `unowned` has, for each group, the unowned partitions. Groups without
    conditions are not in `conditions`. Groups without unowned partitions are not in `unowned`. `gap_totals` has the
    totals of commit gaps per group. `work` has the last measured shares. Shares are measured only while the monitor is
    ready. If the monitor is not ready, `work` is empty.
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
        """Return the groups that exist, sorted by id."""
        return {group: record for group, record in sorted(self.groups.items()) if not record.snapshot.is_over}

    def cluster_ms(self, monitor_ms: int) -> int:
        """Convert a time of the monitor's clock to the cluster's time. All times of the view are in cluster time."""
        return monitor_ms + (0 if self.sample is None else self.sample.clock_correction_ms)

    def blocked_groups(self) -> Callable[[str], bool]:
        """Return a function that checks whether a group is blocked by an open transaction.

        A consumer with read_committed receives no record after the first open transaction of a partition. The consumer
        then also does not receive records of groups that have no open transaction. The current state of a blocked group
        is unknown.
        """
        return blocked_groups(self.sample or ClusterSample(0))
