"""Run the sampling loop: take a sample, compute lag, evaluate readiness, and send feedback.

The feedback goes to the query. It contains sampled topics, reported assignors, and deleted groups and commits. The loop
does not wait for batches, because lag and topics can change while no batch runs.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from streaming.evaluation.lag.lag import ClusterSample, with_hidden_records
from streaming.group.listing import GroupListing
from streaming.run.failures import FailureLog
from streaming.run.log_integrity import LogWatch
from streaming.run.samples.assignors import AssignorRequests
from streaming.run.samples.conditions import GroupConditions
from streaming.run.samples.feedback_writer import FeedbackWriter, PendingFacts, pending_by_group
from streaming.run.samples.incidents import Incidents
from streaming.run.samples.lag.lag_causes import LagCauses
from streaming.run.samples.lag.lag_tables import LagTables
from streaming.run.samples.lag.lag_watch import LagWatch
from streaming.run.samples.readiness import Readiness
from streaming.run.samples.reconcile import Reconciler
from streaming.run.samples.upkeep import Upkeep
from streaming.sampling.groups import Groups
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import MonitorView

LONGEST_INTERVAL_SECONDS = 15.0
"""The limit up to which the interval is increased, so that samples use at most a tenth of a core.

A sample of 10,000 groups takes about one CPU second. The values of a sample are shown for at least twice this limit, so
they do not become stale because of the increased interval.
"""


@dataclass(eq=False, repr=False, kw_only=True)
class Sampler:
    """The sampling loop of one cluster.

    In the polling mode, `reconciler` and `assignors` are None, because polls contain deletions and assignors.
    """

    cluster: str
    monitor_state: MonitorState
    groups: Groups
    lag_watch: LagWatch
    readiness: Readiness
    feedback_writer: FeedbackWriter
    reconciler: Reconciler | None
    assignors: AssignorRequests | None
    log_watch: LogWatch
    conditions: GroupConditions
    lag_causes: LagCauses
    incidents: Incidents
    lag_tables: LagTables
    upkeep: Upkeep
    interval_seconds: float

    def __post_init__(self) -> None:
        """Start without a CPU time, so the first pause has its usual length."""
        self._sample_cpu_seconds = 0.0
        self._failures = FailureLog(self.cluster, "a sample")

    def run(self, stop: threading.Event) -> None:
        """Take samples until `stop` is set. If brokers do not answer, the cluster is not ready."""
        while not stop.is_set():
            started, cpu_seconds = time.monotonic(), time.thread_time()
            try:
                self.take_sample()
                self._failures.reset()
            except Exception as error:  # noqa: BLE001 - after any error, show "not ready" instead of a dead thread
                self._failures.report(error)
                self.monitor_state.put_health(ready=False)
            self._sample_cpu_seconds = time.thread_time() - cpu_seconds
            pause_seconds = max(0.2, self._pause_seconds() - (time.monotonic() - started))
            if self.monitor_state.view().health.ready:
                stop.wait(pause_seconds)
            else:
                self.readiness.wait_for_progress(pause_seconds)  # also ends when a batch ends

    def _pause_seconds(self) -> float:
        """While the cluster is not ready, the pause is at most one second, except while the query reads the log.

        During this time, frequent samples would slow down the query. If samples need more than a tenth of a core, the
        pause is increased.
        """
        if not self.monitor_state.view().health.ready and not self.readiness.is_reading_log:
            return min(1.0, self.interval_seconds)
        return max(self.interval_seconds, min(10 * self._sample_cpu_seconds, LONGEST_INTERVAL_SECONDS))

    def take_sample(self) -> None:
        """Take one sample. Commits are read before end offsets. Otherwise, the reported lag could be too small.

        Most steps after the sample run only while the cluster is ready, because records can be missing otherwise. When
        the cluster has been ready once, the incidents are updated after every sample.
        """
        before = self.monitor_state.view()
        view = self.lag_watch.current_commits(before)
        listing = self.groups.list_groups()
        subscribed = {topic for record in before.groups.values() for topic in record.topics_to_sample()}
        sample = self.lag_watch.sample(subscribed.union(pc.unique(view.commits["topic"]).to_pylist()))
        sample = with_hidden_records(sample, before.sample, before.health.positions)
        sample = replace(sample, refused_groups=before.health.refused_groups)
        lag = self.lag_watch.evaluate(view, before, sample)
        if self.lag_watch.settings.not_known != before.health.settings_not_known:
            self.monitor_state.put_health(settings_not_known=self.lag_watch.settings.not_known)
        self.monitor_state.put_sample(sample, lag, listing)
        now = self.monitor_state.view()
        is_evaluated = self._send_feedback(before, now, listing, sample)
        self.log_watch.report(before, sample)
        ready = self.monitor_state.put_readiness(
            ready=self.readiness.after(before.health.positions, sample, is_evaluated=is_evaluated),
            before=before.health,
        )
        if ready:
            self.conditions.after_sample(sample, lag, self.lag_watch)
            self.lag_causes.after_sample(sample, lag)
        if ready or before.health.was_ready:
            self.incidents.after_sample(sample, self.conditions, self.lag_causes, is_ready=ready)
        if ready:
            if self.reconciler:
                vanished = self.reconciler.vanished_commits(now, sample, time.monotonic())
                self.feedback_writer.send_vanished(vanished)
            if self.lag_tables.is_due:
                self.lag_tables.write(lag, self.lag_watch.unsubscribed, self.lag_watch.produce_rates(sample))
            self.lag_watch.store_if_due(time.monotonic())
            self.upkeep.start_if_due(sample.deletion_time_ms)

    def _send_feedback(
        self, before: MonitorView, now: MonitorView, listing: GroupListing, sample: ClusterSample
    ) -> bool:
        """Send the facts that group states do not contain yet. Return True if no fact of the sample was missing.

        The view `before` must be older than the listing.
        """
        pending = pending_by_group(now, sample)
        vanished = self.reconciler.vanished_groups(before, now, listing, sample) if self.reconciler else {}
        now_seconds = time.monotonic()
        assignors = self.assignors.reported(now, listing, now_seconds) if self.assignors else {}
        facts = _merge_facts(_merge_facts(pending, assignors), vanished)
        self.feedback_writer.send(facts, now_seconds, now.health.batch_seconds or 0, now.health.last_batch_ms)
        return not pending


def _merge_facts(one: PendingFacts, other: PendingFacts) -> PendingFacts:
    return {group_id: (*one.get(group_id, ()), *other.get(group_id, ())) for group_id in {**one, **other}}
