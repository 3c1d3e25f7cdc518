"""Run the sampling loop: take a sample, compute lag, evaluate readiness, and send feedback.

The loop does not wait for batches, because lag and topics can change while no batch runs.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from streaming.evaluation.lag.lag import with_hidden_records
from streaming.run.failures import FailureLog
from streaming.run.log_integrity import LogWatch
from streaming.run.samples.conditions import GroupConditions
from streaming.run.samples.feedback import Feedback
from streaming.run.samples.incidents import Incidents
from streaming.run.samples.lag.lag_causes import LagCauses
from streaming.run.samples.lag.lag_tables import LagTables
from streaming.run.samples.lag.lag_watch import LagWatch
from streaming.run.samples.readiness import Readiness
from streaming.run.samples.upkeep import Upkeep
from streaming.sampling.groups import Groups
from streaming.state.monitor_state import MonitorState

LONGEST_INTERVAL_SECONDS = 15.0
"""The limit up to which the interval is increased, so that samples use at most a tenth of a core.

A sample of 10,000 groups takes about one CPU second. The values of a sample are shown for at least twice this limit, so
they do not become stale because of the increased interval.
"""


@dataclass(frozen=True, slots=True)
class AfterSample:
    """The steps after a sample, in the order of the fields.

    The steps `conditions`, `lag_causes`, `lag_tables` and `upkeep` run only while the cluster is ready, because records
    can be missing otherwise. When the cluster has been ready once, `incidents` runs after every sample.
    """

    feedback: Feedback
    log: LogWatch
    conditions: GroupConditions
    lag_causes: LagCauses
    incidents: Incidents
    lag_tables: LagTables
    upkeep: Upkeep


@dataclass(eq=False, repr=False, kw_only=True)
class Sampler:
    """The sampling loop of one cluster."""

    cluster: str
    monitor_state: MonitorState
    groups: Groups
    lag_watch: LagWatch
    readiness: Readiness
    after: AfterSample
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
        """Take one sample. Commits are read before end offsets. Otherwise, the reported lag could be too small."""
        before, after = self.monitor_state.view(), self.after
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
        is_evaluated = after.feedback.send(before, now, listing, sample)
        after.log.report(before, sample)
        ready = self.monitor_state.put_readiness(
            ready=self.readiness.after(before.health.positions, sample, is_evaluated=is_evaluated),
            before=before.health,
        )
        if ready:
            after.conditions.after_sample(sample, lag, self.lag_watch)
            after.lag_causes.after_sample(sample, lag)
        if ready or before.health.was_ready:
            after.incidents.after_sample(sample, after.conditions, after.lag_causes, is_ready=ready)
        if ready:
            after.feedback.send_vanished(now, sample)
            if after.lag_tables.is_due:
                after.lag_tables.write(lag, self.lag_watch.unsubscribed, self.lag_watch.produce_rates(sample))
            self.lag_watch.store_if_due(time.monotonic())
            after.upkeep.start_if_due(sample.deletion_time_ms)
