"""The current state of one cluster. Several threads share the state.

A thread that changes the state replaces the complete view, so each scrape reads one consistent view.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace

from streaming.combine.gaps import CommitGap, GapTotals
from streaming.combine.partition_state import GapsClosed, PartitionSnapshot
from streaming.evaluation.causes.cause_of_lag import WINDOW_MS
from streaming.evaluation.causes.late_group import ExplainedLag
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.conditions.unowned import UnownedNow
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.incidents.incident import Incident
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.limits import LimitsOf, default_limits
from streaming.evaluation.rebalances.failed_rebalances import decide_skips
from streaming.events import POLLED_PARTITION
from streaming.group.listing import GroupListing, rebalancing_since_ms
from streaming.group.snapshot import REBALANCING
from streaming.integrity.read_up_to import add_sampled_end, advance_position
from streaming.state.monitor_view import Health, MonitorView, WorkShares
from streaming.state.reports import ReportCache, Reports


class MonitorState:
    """The current view of a cluster. Views are immutable. A change creates a new view, under a lock."""

    def __init__(self, limits_of: LimitsOf = default_limits) -> None:
        self._view = MonitorView()
        self._checkpoint_id: str | None = None
        self._lock = threading.Lock()
        self._report_cache = ReportCache(limits_of)
        self._reports_lock = threading.Lock()

    def view(self) -> MonitorView:
        """Return the current view as one consistent value."""
        with self._lock:
            return self._view

    def reports(self, view: MonitorView, *, is_fresh: bool) -> Reports:
        """Return the report of every group. Simultaneous calls for the same view compute the reports only once."""
        with self._reports_lock:
            return self._report_cache.reports(view, is_fresh=is_fresh)

    def use_checkpoint(self, checkpoint_id: str, *, has_batch: bool) -> None:
        """Forget all values from a different checkpoint, and all values of a checkpoint without a committed batch.

        `rebuild` can replace the checkpoint while the process runs. Then the query reads the log from its start, so
        positions and groups are wrong. Counters of the process stay, because a counter must not decrease.
        """
        with self._lock:
            if not has_batch or checkpoint_id != self._checkpoint_id:
                health = replace(self._view.health, ready=False, was_ready=False, positions={}, rewound=frozenset())
                self._view = MonitorView(health=health)
            self._checkpoint_id = checkpoint_id

    def put_batch(
        self,
        records: Iterable[GroupState],
        partition_states: Iterable[PartitionSnapshot],
        forgotten: Iterable[str] = (),
    ) -> None:
        """Store the group states and the partition states of a batch. Remove the groups `forgotten`."""
        with self._lock:
            groups = {**self._view.groups, **{record.snapshot.group_id: record for record in records}}
            for group_id in forgotten:
                groups.pop(group_id, None)
            changed = {one.offsets_topic_partition: one.without_keys() for one in partition_states}
            known = {**self._view.partition_states, **changed}
            since_ms = {
                group_id: at_ms
                for group_id, at_ms in self._view.rebalancing_since_ms.items()
                if not _has_ended_rebalance(self._view.groups.get(group_id), groups.get(group_id))
            }
            self._view = replace(
                self._view,
                groups=groups,
                partition_states=known,
                rebalancing_since_ms=since_ms,
                decided_skips=decide_skips(
                    self._view.decided_skips,
                    (record.snapshot for record in groups.values() if record.snapshot.unsettled_skips),
                    known,
                ),
            )

    def put_gap_totals(self, closed: Iterable[GapsClosed]) -> None:
        """Store the gap totals and the gaps of the events in `closed`. Remove those of deleted groups."""
        with self._lock:
            totals: dict[str, GapTotals | None] = {**self._view.gap_totals}
            gaps = {**self._view.recent_gaps}
            for event in closed:
                totals.update(event.totals)
                for gap in event.gaps:
                    gaps[gap.group_id] = _with_gap(gaps.get(gap.group_id, ()), gap)
            known = {group_id: of_group for group_id, of_group in totals.items() if of_group is not None}
            recent = {group_id: of_group for group_id, of_group in gaps.items() if group_id in known}
            self._view = replace(self._view, gap_totals=known, recent_gaps=recent)

    def put_sample(self, sample: ClusterSample, lag: LagEvaluation | None, listing: GroupListing | None = None) -> None:
        """Store a sample, and the lag that was computed from it (None if the computation failed)."""
        with self._lock:
            before = self._view.sample
            step_ms = 0 if before is None else sample.clock_base_ms - before.clock_base_ms
            since_ms = rebalancing_since_ms(self._view.rebalancing_since_ms, listing, step_ms)
            self._view = replace(
                self._view,
                sample=sample,
                lag=lag,
                listing=listing,
                rebalancing_since_ms=since_ms,
            )

    def put_conditions(
        self, conditions: Mapping[str, tuple[Condition, ...]], unowned: Mapping[str, UnownedNow] | None = None
    ) -> None:
        """Store the unowned partitions of each group, and the conditions that were active at the last sample."""
        with self._lock:
            self._view = replace(self._view, conditions=conditions, unowned=unowned or {})

    def put_explained_lags(self, explained_lags: Mapping[str, ExplainedLag]) -> None:
        """Store the cause of the lag of each late group."""
        with self._lock:
            self._view = replace(self._view, explained_lags=explained_lags)

    def put_incidents(self, incidents: tuple[Incident, ...]) -> None:
        """Store the open incidents."""
        with self._lock:
            self._view = replace(self._view, incidents=incidents)

    def put_poll(self, last_number: int, polled_at_ms: int) -> None:
        """Store two values of a complete poll: the start time of the poll, and the number of its last row."""
        with self._lock:
            position = self._view.health.positions.get(POLLED_PARTITION, 0)
            polled = add_sampled_end(self._view.polled, position, last_number + 1, polled_at_ms)
            self._view = replace(self._view, polled=polled)

    def put_work(self, work: Mapping[str, WorkShares]) -> None:
        """Store the shares of lag and throughput of all measured groups."""
        with self._lock:
            self._view = replace(self._view, work=work)

    def put_rewound(self, partitions: Iterable[int]) -> frozenset[int]:
        """Store rewound partitions. Return the partitions that were not stored yet."""
        with self._lock:
            health = self._view.health
            new = frozenset(partitions) - health.rewound
            if new:
                self._view = _with_health(self._view, replace(health, rewound=health.rewound | new))
        return new

    def put_health(self, **changes: object) -> None:
        """Replace some fields of the health."""
        with self._lock:
            health = replace(self._view.health, **changes)  # type: ignore[arg-type]
            polled = advance_position(self._view.polled, health.positions.get(POLLED_PARTITION, 0))
            self._view = replace(_with_health(self._view, health), polled=polled)

    def put_batch_end(self, seconds: float, ended_ms: int) -> None:
        """Store the duration of a finished batch, and its end time by the clock of the monitor."""
        with self._lock:
            health = self._view.health
            durations = health.batch_durations.add(seconds)
            health = replace(health, batch_seconds=seconds, batch_durations=durations, last_batch_ms=ended_ms)
            self._view = replace(self._view, health=health)

    def count_table_write_failure(self) -> None:
        """Count a failed write to a Delta table."""
        with self._lock:
            failures = self._view.health.table_write_failures + 1
            self._view = replace(self._view, health=replace(self._view.health, table_write_failures=failures))

    def put_readiness(self, *, ready: bool, before: Health) -> bool:
        """Store the readiness, which the caller computed from `before`. Return True if the cluster is ready now.

        If the query has failed since the caller read `before`, or if a partition is rewound, the cluster is not ready.
        """
        with self._lock:
            known = self._view.health
            is_overtaken = bool(known.rewound) or known.query_restarts != before.query_restarts
            now_ready = ready and not is_overtaken
            times_ready = known.times_ready + (now_ready and not known.ready)
            health = replace(known, ready=now_ready, was_ready=known.was_ready or now_ready, times_ready=times_ready)
            self._view = _with_health(self._view, health)
        return now_ready


def _with_gap(known: tuple[CommitGap, ...], gap: CommitGap) -> tuple[CommitGap, ...]:
    """Return the known gaps of a group that ended in the last WINDOW_MS. A batch that runs again adds no gap twice."""
    end_ms = gap.end_ms
    if end_ms is None:
        return known
    others = (one for one in known if one.position != gap.position and end_ms - (one.end_ms or 0) <= WINDOW_MS)
    return *others, gap


def _has_ended_rebalance(before: GroupState | None, after: GroupState | None) -> bool:
    """Return True if a new record shows that the rebalance in the last listing has ended.

    If a later listing shows a rebalance, this is a new rebalance. The function does not compare record times with
    listing times, because they come from two different clocks. In the polling mode, a new record can have a rebalance
    as its state. Such a record does not end the rebalance.
    """
    if after is None:
        return False
    is_new = before is None or before.snapshot.position != after.snapshot.position
    return is_new and after.snapshot.state not in REBALANCING


def _with_health(view: MonitorView, health: Health) -> MonitorView:
    """A cluster with a rewound partition is never ready. Only a ready cluster has shares of work."""
    if health.rewound:
        health = replace(health, ready=False)
    return replace(view, health=health, work=view.work if health.ready else {})
