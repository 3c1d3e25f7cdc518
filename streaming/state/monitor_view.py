"""Everything that the monitor knows about one cluster at one moment."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from streaming.combine.gaps import CommitGap, GapTotals
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

BATCH_BUCKETS_SECONDS = (0.5, 1, 2, 5, 10, 20, 30, 60)
"""Upper bounds of the buckets in seconds. The last bucket has no upper bound and counts all longer batches."""


@dataclass(frozen=True, slots=True)
class BatchDurations:
    """The durations of all micro-batches since the start of the monitor, as a histogram."""

    buckets: tuple[int, ...] = (0,) * (len(BATCH_BUCKETS_SECONDS) + 1)
    sum_seconds: float = 0.0

    def add(self, seconds: float) -> BatchDurations:
        """Return a histogram that also contains the given batch.

        >>> BatchDurations().add(1.0).add(90.0)
        BatchDurations(buckets=(0, 1, 0, 0, 0, 0, 0, 0, 1), sum_seconds=91.0)
        """
        buckets = list(self.buckets)
        buckets[bisect_left(BATCH_BUCKETS_SECONDS, seconds)] += 1
        return BatchDurations(tuple(buckets), self.sum_seconds + seconds)


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the monitor itself, for one cluster.

    `not_known` lists the kinds of values that the source cannot provide. `settings_not_known` lists the settings that
    the brokers did not return (`retention_settings.py`). `rewound` lists partitions of `__consumer_offsets` that were
    truncated or created again, so the monitor misses new records. `rewound` is empty when the monitor starts. A cluster
    with a rewound partition is never ready. `positions` maps a partition to the next offset to read. `last_batch_ms` is
    the end time of the last batch by the clock of the monitor. `folders` maps names of settings to folders on a disk of
    this machine. `waits_for_topic` is True while the monitor waits until `__consumer_offsets` exists. `refused_groups`
    contains the groups whose present commits the brokers refused to return (only in the polling mode).
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
    refused_groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WorkShares:
    """How the members and hosts share lag and throughput. `position` is the evaluated record's position."""

    position: Position
    imbalances: tuple[Imbalance, ...]


@dataclass(frozen=True, slots=True)
class MonitorView:
    """Everything that a scrape shows, at one moment.

    `groups` also contains deleted groups until their state is removed (`GroupForgotten`). For each group that the
    listings show in a rebalance, `rebalancing_since_ms` contains the time of the first listing that showed this
    rebalance. If the last listing is absent or incomplete, the rebalance of a missing group counts as in progress. In
    the polling mode, `polled` contains the time of the last complete poll whose rows the query has read. `recent_gaps`
    contains the commit gaps that ended in the five minutes before the end of the group's last gap. `conditions` are the
    active conditions at the last sample. `explained_lags` contains the cause of the lag of each late group. `incidents`
    are the open incidents, the oldest first. While the cluster is not ready, `work` is empty.
    """

    groups: Mapping[str, GroupState] = field(default_factory=dict)
    partition_states: Mapping[int, PartitionSnapshot] = field(default_factory=dict)
    sample: ClusterSample | None = None
    listing: GroupListing | None = None
    rebalancing_since_ms: Mapping[str, int] = field(default_factory=dict)
    lag: LagEvaluation | None = None
    health: Health = field(default_factory=Health)
    polled: ReadUpTo = field(default_factory=ReadUpTo)
    gap_totals: Mapping[str, GapTotals] = field(default_factory=dict)
    recent_gaps: Mapping[str, tuple[CommitGap, ...]] = field(default_factory=dict)
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

        A read_committed consumer receives no records of a partition after the start of its first open transaction. So
        the transaction also blocks all other groups with records in this partition. A transaction that began after the
        previous sample blocks no group. After the end of the transaction, a group stays blocked until a sample shows
        that the query has read the records after the transaction. The current state of a blocked group is unknown.
        """
        return blocked_groups(self.sample or ClusterSample(0))
