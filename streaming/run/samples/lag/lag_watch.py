"""Compute lag at every sample, and store the sampled offsets for the next start."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.lib import ArrowException

from assignors import TopicPartition
from streaming.combine.big_endian import Int64Array
from streaming.combine.commits import clipped_times
from streaming.config.settings import ADMIN_API_SOURCE
from streaming.evaluation.conditions.silence import Silence
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.broker_clocks import WARN_MS
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LagReport, lag_report
from streaming.evaluation.lag.lag_evaluation import (
    LagEvaluation,
    RetentionInputs,
    evaluate_lag,
    observed_rows,
    read_up_to_of_groups,
)
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.next_offsets import (
    NextOffsets,
    StoredTails,
    UnmovedCommits,
    rows_behind,
    rows_with_lag,
    rows_without_proof,
    topic_partitions,
)
from streaming.evaluation.lag.rates import NO_END, NO_START, CommitPoints, LogBounds, known_produce_rates
from streaming.evaluation.lag.retention.expiry import Starts, expiry_starts
from streaming.evaluation.lag.retention.lost_records import LOG_START_POINTS, Loss, Losses, LossKey, keys, losses
from streaming.evaluation.lag.status import is_suspect
from streaming.evaluation.lag.stored.commit_times import CommitTimes
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets
from streaming.evaluation.lag.stored.topic_ids import TopicIds
from streaming.evaluation.lag.topic_loads import topic_loads
from streaming.evaluation.lag.unsubscribed import ReadTopics, is_unsubscribed, read_topics
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.events import POLLED_PARTITION
from streaming.group.codec import StateVersionError
from streaming.run.cluster_clock import ClusterClock
from streaming.run.samples.lag.commits_read import CommitsRead
from streaming.run.samples.lag.retention_settings import RetentionSettings
from streaming.sampling.brokers import Brokers
from streaming.spark.files import Files
from streaming.state.committed_offsets import CommittedOffsets, CommittedOffsetsView
from streaming.state.monitor_view import MonitorView

STORED = "samples/lag"
STORE_SECONDS = 60.0
"""Time between two writes of the samples. One write for 100,000 topic partitions takes one second of CPU time."""

_log = logging.getLogger(__name__)

Versioned = tuple[int, bytes]


class _Stored(msgspec.Struct, frozen=True):
    """The stored samples. `Versioned` is a format version and the encoded bytes."""

    ends: Versioned
    starts: Versioned
    windows: Versioned
    clock_corrections_ms: dict[int, int] = {}
    losses: list[tuple[LossKey, Loss]] = []
    tails: StoredTails = StoredTails()
    topic_ids: dict[str, str] = {}


@dataclass(eq=False, repr=False)
class LagWatch:
    """Computes the lag of one cluster from sampled offsets. Only the sampler's thread calls the methods."""

    cluster: str
    committed_offsets: CommittedOffsets
    files: Files
    limits: Limits
    brokers: Brokers
    clock: ClusterClock
    settings: RetentionSettings

    def __post_init__(self) -> None:
        """Start without samples. `restore` reads the samples of an earlier run."""
        self._losses: Losses = {}
        self._next_offsets = NextOffsets()
        self._topic_ids = TopicIds()
        self._numbering, self._unmoved, self._commit_points = -1, UnmovedCommits(), CommitPoints()
        self._commit_times = CommitTimes()
        self._ahead_ms: Int64Array | int = 0
        """For each commit of the last sample: the coordinator's clock minus the cluster's time."""
        self.leaders_ahead_ms: Mapping[int, int] = {}
        """For each `__consumer_offsets` partition: the last known value of `ClusterSample.leaders_ahead_ms`."""
        self.read_up_to_ms: Mapping[int, int] = {}
        """For each `__consumer_offsets` partition: the time up to which it was read, in the cluster's time.

        In the polling mode, the key is POLLED_PARTITION.
        """
        self._clock_base_ms: int | None = None
        self._suspects: Int64Array = np.empty(0, dtype=np.int64)
        self._ends = SampledOffsets(END_OFFSET_POINTS)
        self._starts = SampledOffsets(LOG_START_POINTS)
        self._commits_read = CommitsRead()
        self._read_topics: dict[str, tuple[GroupState, ReadTopics]] = {}
        self.unsubscribed = LAG_SCHEMA.empty_table()
        """The commits that the last call of `current_commits` excluded."""
        self._stored_seconds = time.monotonic()

    def restore(self) -> None:
        """Restore the samples of an earlier run. Before this call, restore the last commits in CommittedOffsets.

        Ignore samples that are damaged or have a different format version. Then lag in seconds is unknown for a time.
        """
        try:
            encoded = self.files.read(STORED)
            if encoded is None:
                return
            stored = msgspec.msgpack.decode(encoded, type=_Stored)
            ends = SampledOffsets.decode(*stored.ends, END_OFFSET_POINTS)
            starts = SampledOffsets.decode(*stored.starts, LOG_START_POINTS)
            self.committed_offsets.restore_windows(*stored.windows)
        except (OSError, ValueError, KeyError, msgspec.DecodeError, ArrowException, StateVersionError) as damaged:
            reason = str(damaged).partition("\n")[0]
            _log.warning(
                "%s: %s cannot be read and is ignored. Lag in seconds is unknown for some time: %s",
                self.cluster,
                STORED,
                reason,
            )
            return
        self._ends, self._starts, self._losses = ends, starts, dict(stored.losses)
        self._next_offsets, self._topic_ids = NextOffsets(stored.tails), TopicIds(stored.topic_ids)
        self.clock.restore(stored.clock_corrections_ms)
        _log.info("%s: restored samples of %d topic partitions", self.cluster, len(self._ends))

    def store_if_due(self, now_seconds: float) -> None:
        """Store the samples if the last write was at least `STORE_SECONDS` ago."""
        if now_seconds - self._stored_seconds >= STORE_SECONDS:
            self.store()

    def store(self) -> None:
        """Store the samples."""
        self._stored_seconds = time.monotonic()
        stored = _Stored(
            self._ends.encode(),
            self._starts.encode(),
            self.committed_offsets.stored_windows(),
            dict(self.clock.corrections_ms()),
            list(self._losses.items()),
            self._next_offsets.stored(),
            self._topic_ids.stored(),
        )
        self.files.write(STORED, msgspec.msgpack.encode(stored))

    def current_commits(self, monitor: MonitorView) -> CommittedOffsetsView:
        """Return the last commits, except commits for topics to which the group no longer subscribes."""
        view = self.committed_offsets.view()
        left = is_unsubscribed(view.commits, self._topics_by_group(monitor)).to_numpy(zero_copy_only=False)
        self.unsubscribed = view.commits.filter(pa.array(left))
        return view.select(~left)

    def sample(self, topics: Collection[str]) -> ClusterSample:
        """Take a sample of the brokers. Correct the times of the sample with the cluster clock."""
        return self.clock.take_sample(self.brokers.sample(topics))

    def evaluate(self, view: CommittedOffsetsView, before: MonitorView, sample: ClusterSample) -> LagEvaluation:
        """Compute the lag of the commits in `view`. `view` is newer than `before`, and `sample` is newer than both."""
        self._use_numbering(view.numbering)
        self._follow_clock(sample)
        self.leaders_ahead_ms = {**self.leaders_ahead_ms, **sample.leaders_ahead_ms}
        self._forget_old_logs(view, sample)
        view, moved_ms = self._in_cluster_time(view, sample)
        fell_back = self._ends.add(sample.end_offsets, sample.sampled_at_ms)
        self._next_offsets.forget_topics(topic for topic, _ in fell_back)
        for topic, partition in fell_back:
            _log.info(
                "%s: the end offset of %s-%d decreased. The topic was deleted and recreated, or an unclean leader"
                " election removed records",
                self.cluster,
                topic,
                partition,
            )
        self._starts.add(sample.log_start_offsets, sample.sampled_at_ms)
        report = self._count_from_next_offsets(view, lag_report(view.commits, sample), sample.end_offsets)
        ends, next_offsets = (report.partitions[name].fill_null(0).to_numpy() for name in ("end_offset", "next_offset"))
        windows = self.committed_offsets.observe(view, next_offsets, ends, observed_rows(report))
        windows = windows and windows.moved(moved_ms)
        polled_at_ms = before.polled.read_up_to_ms
        self._commits_read.add(sample, before.health.positions, polled_at_ms, self.clock.now_ms())
        polled_ms = {} if polled_at_ms is None else {POLLED_PARTITION: polled_at_ms}
        self.read_up_to_ms = {**self._commits_read.by_partition, **polled_ms}
        read_up_to_ms = read_up_to_of_groups(report.partitions["group_id"], self.read_up_to_ms, sample, polled_at_ms)
        read_ms = read_up_to_ms.fill_null(-1).to_numpy()
        offsets, commit_ms = (view.commits[name].to_numpy() for name in ("committed_offset", "commit_timestamp_ms"))
        log = LogBounds(
            report.partitions["log_start_offset"].fill_null(NO_START).to_numpy(),
            report.partitions["end_offset"].fill_null(NO_END).to_numpy(),
        )
        crosses = self._commit_points.add(view.rows, offsets, commit_ms, sample.sampled_at_ms, read_ms, log)
        consumed = self._commit_points.rates(view.rows, read_ms)
        retained = self._retention_inputs(report, before, sample)
        evaluated = evaluate_lag(
            report, self._ends, self._starts, windows, read_up_to_ms, self.limits.allowed_lag, retained, consumed
        )
        self._losses = losses(evaluated.partitions, self._losses)
        self._suspects = view.rows[is_suspect(evaluated.partitions)]
        crossed = frozenset(keys(report.partitions.filter(pa.array(crosses))))
        return replace(evaluated, topic_loads=topic_loads(self._ends, sample), crossed=crossed)

    def _use_numbering(self, numbering: int) -> None:
        """If the rows have new numbers, delete all values that are stored by row number.

        Then consume rates are unknown for a minute.
        """
        if self._numbering != numbering:
            self._numbering, self._unmoved, self._commit_points = numbering, UnmovedCommits(), CommitPoints()
            self._commit_times = CommitTimes()
            self._suspects = np.empty(0, dtype=np.int64)

    def _follow_clock(self, sample: ClusterSample) -> None:
        """If the cluster's time had a large step, forget the earlier samples, because their times were wrong."""
        before_ms, self._clock_base_ms = self._clock_base_ms, sample.clock_base_ms
        step_ms = 0 if before_ms is None else sample.clock_base_ms - before_ms
        if abs(step_ms) <= WARN_MS:  # the usual error of a correction
            return
        _log.warning(
            "%s: the cluster's time changed by %+.1f s. Lag in seconds and rates are unknown for some time",
            self.cluster,
            step_ms / 1000,
        )
        self._ends, self._starts = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS)
        self._unmoved, self._commit_points, self._commits_read = UnmovedCommits(), CommitPoints(), CommitsRead()
        self._commit_times.follow_step(step_ms)
        self.leaders_ahead_ms = {number: ahead_ms - step_ms for number, ahead_ms in self.leaders_ahead_ms.items()}

    def _in_cluster_time(
        self, view: CommittedOffsetsView, sample: ClusterSample
    ) -> tuple[CommittedOffsetsView, Int64Array]:
        """Convert the times of the commits to the cluster's time. Return also the change of each time."""
        self._ahead_ms = 0
        if any(self.leaders_ahead_ms.values()):
            of_rows = read_up_to_of_groups(view.commits["group_id"], self.leaders_ahead_ms, sample, None)
            self._ahead_ms = of_rows.fill_null(0).to_numpy()
        coordinator_ms = clipped_times(view.commits["commit_timestamp_ms"].to_numpy())
        times_ms = self._commit_times.add(
            view.rows, view.offsets_topic_offsets, coordinator_ms, self._ahead_ms, sample.sampled_at_ms
        )
        at = view.commits.column_names.index("commit_timestamp_ms")
        commits = view.commits.set_column(at, "commit_timestamp_ms", pa.array(times_ms))
        return replace(view, commits=commits), times_ms - coordinator_ms

    def _forget_old_logs(self, view: CommittedOffsetsView, sample: ClusterSample) -> None:
        recreated = self._topic_ids.update(sample.topics, self._ends.topics)
        if not recreated:
            return
        for topic in sorted(recreated):
            _log.info(
                "%s: the topic %s was deleted and created again. The monitor does not use its old offsets any more",
                self.cluster,
                topic,
            )
        for forgetful in (self._ends, self._starts, self._next_offsets, self.settings):
            forgetful.forget_topics(recreated)
        self._losses = {key: loss for key, loss in self._losses.items() if key[1] not in recreated}
        is_of_topic = pc.is_in(view.commits["topic"], value_set=pa.array(sorted(recreated), pa.string()))
        affected = view.select(is_of_topic.to_numpy())
        self.committed_offsets.restart_windows(affected)
        self._commit_points.forget(affected.rows)

    def _retention_inputs(self, report: LagReport, before: MonitorView, sample: ClusterSample) -> RetentionInputs:
        has_lag = pc.greater(report.partitions["lag"], 0)
        topics = pc.unique(report.partitions["topic"].filter(has_lag)).to_pylist()
        self.settings.request_if_due(topics, report.sampled_at_ms)
        offsets_ms = self.settings.offsets_retention_ms
        starts: Starts = {}
        if offsets_ms is not None and before.health.source != ADMIN_API_SOURCE:  # polls have no commit times
            group_ids = pc.unique(report.partitions["group_id"]).to_pylist()
            snapshots = {group_id: record.snapshot for group_id, record in before.groups.items()}
            starts = expiry_starts(group_ids, snapshots, before.listing)
        return RetentionInputs(
            self._losses,
            self.settings.topic_retention_ms,
            starts,
            offsets_ms,
            self.settings.topics_without_size_limit,
            self._commits_read.times_ms(report.partitions["group_id"], sample),
        )

    def _count_from_next_offsets(
        self, view: CommittedOffsetsView, report: LagReport, end_offsets: Mapping[TopicPartition, int]
    ) -> LagReport:
        """If a fetch has shown the next record of a group, count the lag of the partition from this record."""
        committed, now_ms = report.partitions["committed_offset"].to_numpy(), report.sampled_at_ms
        commit_times_ms = report.partitions["commit_timestamp_ms"].to_numpy()
        unmoved_ms = self._unmoved.for_ms(view.rows, committed, now_ms, commit_times_ms)
        at = rows_with_lag(report, unmoved_ms, np.isin(view.rows, self._suspects))
        asked = np.union1d(at, rows_without_proof(report, self._next_offsets.topics_without_proof))
        stable = self.brokers.last_stable_offsets(topic_partitions(report, asked)) if len(asked) else {}
        rows = rows_behind(report, at, unmoved_ms, self._next_offsets.add_stable_offsets(stable, end_offsets))
        fetches = self._next_offsets.due_fetches(report, rows, now_ms, self.settings.compacted_topics)
        self._next_offsets.add_results(self.brokers.look(fetches) if fetches else {}, now_ms)
        return self._next_offsets.apply(report, rows)

    def silence(self, lag: LagEvaluation) -> Silence:
        """Return `Silence`, which finds the silent groups in this evaluation of lag."""
        return Silence(lag, self._ends, self.limits, self._ahead_ms)

    def produce_rates(self, sample: ClusterSample) -> Mapping[TopicPartition, float]:
        """Return the known produce rates at the last sample, in records per second."""
        return known_produce_rates(self._ends, sample.sampled_at_ms)

    def _topics_by_group(self, view: MonitorView) -> Mapping[str, ReadTopics]:
        """Return the topics that each group reads. For an unchanged group state, the topics come from a cache."""
        known, self._read_topics = self._read_topics, {}
        for group_id, record in view.groups.items():
            evaluated, reads = known.get(group_id, (None, None))
            if reads is None or evaluated is not record:
                reads = read_topics(record.snapshot, record.last_read)
            self._read_topics[group_id] = (record, reads)
        return {group_id: reads for group_id, (_, reads) in self._read_topics.items()}
