"""Everything that the monitor knows about one cluster at one moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from streaming.combine.gaps import GapTotals
from streaming.combine.partition_state import PartitionSnapshot
from streaming.config.settings import OFFSETS_TOPIC_SOURCE
from streaming.evaluation.causes.late_group import ExplainedLag
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.conditions.unowned import UnownedNow
from streaming.evaluation.fairness.imbalance import Imbalance
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.incidents.incident import Incident
from streaming.evaluation.lag.lag import ClusterSample, blocked_groups
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.rebalances.failed_rebalances import SkipDecisions
from streaming.events import Position
from streaming.group.listing import GroupListing
from streaming.integrity.read_up_to import ReadUpTo
from streaming.state.batch_durations import BatchDurations


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the monitor itself, for one cluster.

    `not_known` lists the kinds of values that the source cannot provide. `settings_not_known` lists the settings that
    the brokers did not return (`retention_settings.py`). `rewound` lists rewound partitions of `__consumer_offsets`. A
    rewound partition was truncated, deleted or created again, so the monitor misses new records. `rewound` is empty
    when the monitor starts. A cluster with a rewound partition is never ready. `positions` maps a partition to the next
    offset to read. `times_ready` counts how often the cluster became ready. `was_ready` is True after the cluster
    became ready for the first time. `batch_seconds` is the duration of the last batch. `last_batch_ms` is the end time
    of the last batch by the clock of the monitor. `batch_durations` counts all batches by duration.
    `table_write_failures` counts failed writes to Delta tables. `folders` maps names of settings to folders on a disk
    of this machine. `waits_for_topic` is True while the monitor waits until `__consumer_offsets` exists.
    """

    ready: bool = False
    was_ready: bool = False
    times_ready: int = 0
    batch_seconds: float | None = None
    batch_durations: BatchDurations = field(default_factory=BatchDurations)
    last_batch_ms: int | None = None
    table_write_failures: int = 0
    folders: Mapping[str, str] = field(default_factory=dict)
    positions: Mapping[int, int] = field(default_factory=dict)
    query_restarts: int = 0
    source: str = OFFSETS_TOPIC_SOURCE
    waits_for_topic: bool = False
    not_known: tuple[str, ...] = ()
    settings_not_known: tuple[str, ...] = ()
    rewound: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class WorkShares:
    """How lag and throughput are shared among the members and the hosts of a group.

    `position` is the position of the group's record that contains the evaluated assignment.
    """

    position: Position
    imbalances: tuple[Imbalance, ...]


@dataclass(frozen=True, slots=True)
class MonitorView:
    """Everything that a scrape shows, at one moment.

    `groups` also contains deleted groups until their state is removed (`GroupForgotten`). For each group that the last
    listing shows in a rebalance, `rebalancing_since_ms` contains the time of the first listing that showed this
    rebalance. `read_up_to` maps each partition of `__consumer_offsets` to the time up to which the partition was read.
    In the polling mode, the key -1 contains the time of the last complete poll. `conditions` maps each group to its
    active conditions at the last sample. `unowned` maps each group to its unowned partitions. `explained_lags` contains
    the cause of the lag of each late group. `incidents` are the open incidents at the last sample, the oldest first.
    `gap_totals` maps each group to its totals of commit gaps (`combine.gaps`). `work` contains the last measured shares
    of lag and throughput. While the cluster is not ready, `work` is empty.
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
    explained_lags: Mapping[str, ExplainedLag] = field(default_factory=dict)
    incidents: tuple[Incident, ...] = ()
    work: Mapping[str, WorkShares] = field(default_factory=dict)
    decided_skips: SkipDecisions = field(default_factory=dict)

    def alive_groups(self) -> Mapping[str, GroupState]:
        """Return the groups that exist, sorted by id."""
        return {group: record for group, record in sorted(self.groups.items()) if not record.snapshot.is_over}

    def cluster_ms(self, monitor_ms: int) -> int:
        """Convert a time of the monitor's clock to cluster time. All times of the view are in cluster time."""
        return monitor_ms + (0 if self.sample is None else self.sample.clock_correction_ms)

    def blocked_groups(self) -> Callable[[str], bool]:
        """Return a function that returns True if an open transaction blocks the group with the given id.

        A consumer with read_committed receives no records after the start of the first open transaction of a partition.
        So the transaction also blocks the records of other groups in the same partition. After the end of the
        transaction, the groups stay blocked until a sample shows that the query has read these records. The monitor
        does not know the current state of a blocked group.
        """
        return blocked_groups(self.sample or ClusterSample(0))
