"""The slower beat beside the batches: sample the brokers, tell lag, evaluate readiness, hand facts back to groups.

Runs on its own clock, because lag grows and topics change also while nobody commits and no batch runs.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

import pyarrow.compute as pc
from kafka.errors import KafkaError

from streaming.run.failures import Failures
from streaming.run.log_integrity import LogWatch
from streaming.run.samples.conditions import GroupConditions
from streaming.run.samples.feedback import Feedback
from streaming.run.samples.lag_tables import LagTables
from streaming.run.samples.lag_watch import LagWatch
from streaming.run.samples.readiness import Readiness
from streaming.run.samples.upkeep import Upkeep
from streaming.sampling.groups import Groups
from streaming.state.monitor_state import MonitorState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AfterSample:
    """What follows a sample, in this order: the last three only where the monitor is ready."""

    feedback: Feedback
    log: LogWatch
    conditions: GroupConditions
    lag_tables: LagTables
    upkeep: Upkeep


class Sampler:
    """One beat after another until stopped."""

    def __init__(  # noqa: PLR0913 - everything a beat touches, named
        self,
        *,
        cluster: str,
        monitor_state: MonitorState,
        groups: Groups,
        lag_watch: LagWatch,
        readiness: Readiness,
        after: AfterSample,
        interval_seconds: float,
    ) -> None:
        self._cluster = cluster
        self._monitor_state = monitor_state
        self._groups = groups
        self._lag_watch = lag_watch
        self._readiness = readiness
        self._after = after
        self._interval_seconds = interval_seconds
        self._failures = Failures(cluster, "a sample")
        self._is_out_of_touch = False

    def run(self, stop: threading.Event) -> None:
        """Beat until `stop` is set. A broker that does not answer makes us not ready; it never ends the beat."""
        while not stop.is_set():
            started = time.monotonic()
            try:
                self.take_sample()
                self._report_touch()
                self._failures.take_success()
            except KafkaError as error:
                self._report_touch(error)
                self._monitor_state.put_health(ready=False)
            except Exception as error:  # noqa: BLE001 - whatever it is, on-call must see "not ready", not a dead thread
                self._failures.take(error)
                self._monitor_state.put_health(ready=False)
            stop.wait(max(0.2, self._pause_seconds() - (time.monotonic() - started)))

    def _report_touch(self, error: KafkaError | None = None) -> None:
        """One line when brokers fall silent and one when they are back; what is tried in between is for DEBUG."""
        was_out_of_touch, self._is_out_of_touch = self._is_out_of_touch, error is not None
        if error is not None:
            level = logging.DEBUG if was_out_of_touch else logging.WARNING
            _log.log(level, "%s: brokers do not answer (%s); trying again", self._cluster, error)
        elif was_out_of_touch:
            _log.info("%s: brokers answer again", self._cluster)

    def _pause_seconds(self) -> float:
        """Look more often until ready: an operator waits for it."""
        return self._interval_seconds if self._monitor_state.view().health.ready else min(1.0, self._interval_seconds)

    def take_sample(self) -> None:
        """Commits first, end offsets after: lag is only ever overstated."""
        before, after = self._monitor_state.view(), self._after
        view = self._lag_watch.read_partitions(before)
        listing = self._groups.list_groups()
        subscribed = {topic for record in before.groups.values() for topic in record.topics_to_sample()}
        sample = self._lag_watch.sample(subscribed.union(pc.unique(view.commits["topic"]).to_pylist()))
        lag = self._lag_watch.evaluate(view, before, sample)
        self._monitor_state.put_sample(sample, lag, listing)
        now = self._monitor_state.view()
        is_evaluated = after.feedback.send(before, now, listing, sample)
        after.log.report(before, sample)
        ready = self._monitor_state.put_readiness(
            ready=self._readiness.after(before.health.positions, sample, is_evaluated=is_evaluated),
            before=before.health,
        )
        if ready or before.health.was_ready:
            after.conditions.after_sample(sample, lag, self._lag_watch.silence(lag))
        if ready:
            after.feedback.send_vanished(now, sample)
            if after.lag_tables.are_due:
                after.lag_tables.write(lag, self._lag_watch.end_offset_rates(self._interval_seconds))
            self._lag_watch.store_if_due(time.monotonic())
            after.upkeep.if_due(sample.sampled_at_ms)
