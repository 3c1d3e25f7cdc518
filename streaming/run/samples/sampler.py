"""The slower beat beside the batches: sample the brokers, tell lag, judge readiness, hand facts back to groups.

Runs on its own clock, because lag grows and topics change also while nobody commits and no batch runs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from kafka.errors import KafkaError

from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import lag_rows
from streaming.delta.tables import ASSIGNMENT_IMBALANCE, GROUP_LAG, PARTITION_STATUS
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.lag.lag_judgement import LagJudgement
from streaming.integrity.continuity import ends_before_read, lost_before_read
from streaming.run.continuity import LostRecords, TopicRead, tell_rewound
from streaming.run.failures import Failures
from streaming.run.samples.conditions import GroupConditions
from streaming.run.samples.hand_back import AwaitedFacts, HandBack, awaited_by_group
from streaming.run.samples.lag_watch import LagWatch
from streaming.run.samples.readiness import Readiness
from streaming.run.samples.reconcile import Reconciler
from streaming.run.samples.upkeep import Upkeep
from streaming.run.samples.work_watch import WorkWatch
from streaming.sampling.brokers import Brokers
from streaming.sampling.groups import Groups
from streaming.state.commit_book import CommitBook
from streaming.state.present import Present
from streaming.state.registry import Registry

_log = logging.getLogger(__name__)


class Sampler:
    """One beat after another until stopped. Where coordinators are polled there is nothing to reconcile."""

    def __init__(  # noqa: PLR0913 - everything a beat touches, named
        self,
        *,
        cluster: str,
        brokers: Brokers,
        groups: Groups,
        reconciler: Reconciler | None,
        registry: Registry,
        book: CommitBook,
        tables: DeltaTables,
        hand_back: HandBack,
        topic_read: TopicRead,
        lag_watch: LagWatch,
        conditions: GroupConditions,
        readiness: Readiness,
        interval_seconds: float,
        lag_table_seconds: float,
        upkeep: Upkeep,
    ) -> None:
        self._cluster = cluster
        self._brokers = brokers
        self._groups = groups
        self._reconciler = reconciler
        self._registry = registry
        self._book = book
        self._tables = tables
        self._hand_back = hand_back
        self._topic_read = topic_read
        self._lag_watch = lag_watch
        self._conditions = conditions
        self._readiness = readiness
        self._interval_seconds = interval_seconds
        self._lag_table_seconds = lag_table_seconds
        self._upkeep = upkeep
        self._work_watch = WorkWatch(cluster)
        self._lost_records = LostRecords(cluster)
        self._failures = Failures(cluster, "a sample")
        self._lag_written: pa.Table | None = None
        self._lag_written_seconds = float("-inf")
        self._is_out_of_touch = False

    def run(self, stop: threading.Event) -> None:
        """Beat until `stop` is set. A broker that does not answer makes us not ready; it never ends the beat."""
        while not stop.is_set():
            started = time.monotonic()
            try:
                self.beat()
                self._tell_touch()
                self._failures.take_success()
            except KafkaError as error:
                self._tell_touch(error)
                self._registry.put_health(ready=False)
            except Exception as error:  # noqa: BLE001 - whatever it is, on-call must see "not ready", not a dead thread
                self._failures.take(error)
                self._registry.put_health(ready=False)
            stop.wait(max(0.2, self._pause_seconds() - (time.monotonic() - started)))

    def _tell_touch(self, error: KafkaError | None = None) -> None:
        """One line when brokers fall silent and one when they are back; what is tried in between is for DEBUG."""
        was_out_of_touch, self._is_out_of_touch = self._is_out_of_touch, error is not None
        if error is not None:
            level = logging.DEBUG if was_out_of_touch else logging.WARNING
            _log.log(level, "%s: brokers do not answer (%s); trying again", self._cluster, error)
        elif was_out_of_touch:
            _log.info("%s: brokers answer again", self._cluster)

    def _pause_seconds(self) -> float:
        """Look more often until ready: an operator waits for it."""
        return self._interval_seconds if self._registry.present().health.ready else min(1.0, self._interval_seconds)

    def beat(self) -> None:
        """Commits first, end offsets after: lag is only ever overstated."""
        before = self._registry.present()
        view = self._lag_watch.read_partitions(self._book.view(), before)
        listing = self._groups.list_groups()
        subscribed = {topic for record in before.groups.values() for topic in record.topics_to_sample()}
        committed = pc.unique(view.commits["topic"]).to_pylist()
        sample = self._lag_watch.in_cluster_time(self._brokers.sample(subscribed.union(committed)))
        lag = self._lag_watch.judge(view, before, sample)
        self._registry.put_sample(sample, lag, listing)
        now = self._registry.present()
        awaited = awaited_by_group(now, sample)
        vanished = self._reconciler.vanished_groups(before, now, listing, sample) if self._reconciler else {}
        self._hand_back.send(_both(awaited, vanished), time.monotonic(), now.health.batch_seconds or 0)
        self._tell_of_the_log(before, sample)
        ready = self._registry.put_readiness(
            ready=self._readiness.after(before.health.positions, sample, is_judged=not awaited), before=before.health
        )
        if ready or before.health.was_ready:
            self._conditions.after_sample(sample, lag, self._lag_watch.silence(lag))
        if ready:
            if self._reconciler:
                self._hand_back.send_vanished(self._reconciler.vanished_commits(now, sample, time.monotonic()))
            self._tell_lag(lag)
            self._lag_watch.store_if_due(time.monotonic())
            self._upkeep.if_due(sample.sampled_at_ms)

    def _tell_of_the_log(self, before: Present, sample: ClusterSample) -> None:
        positions = before.health.positions
        self._topic_read.tell(sample.offsets_topic_id, positions)
        tell_rewound(self._cluster, self._registry, ends_before_read(before.lanes, sample.offsets_topic))
        self._lost_records.tell(lost_before_read(positions, sample.offsets_topic), positions)

    def _tell_lag(self, lag: LagJudgement) -> None:
        """Write lag, status and who has how much of it, now and then; the registry has the last of it as of then."""
        now_seconds = time.monotonic()
        if now_seconds - self._lag_written_seconds < self._lag_table_seconds:
            return
        for table, numbers in _WRITTEN_WHEN_CHANGED.items():
            before = self._lag_written
            changed = lag.partitions if before is None else _changed(lag.partitions, before, numbers)
            if changed.num_rows:
                self._tables.append(table, lag_rows(table, self._cluster, lag.report.sampled_at_ms, changed))
        self._lag_written, self._lag_written_seconds = lag.partitions, now_seconds
        rates = self._lag_watch.end_offset_rates(self._interval_seconds)
        work, rows = self._work_watch.measure(self._registry.present(), lag, rates)
        self._registry.put_work(work)
        try:
            self._tables.append(ASSIGNMENT_IMBALANCE, rows)
        except Exception:
            self._work_watch.forget_written()
            raise


def _both(one: AwaitedFacts, other: AwaitedFacts) -> AwaitedFacts:
    return {group_id: (*one.get(group_id, ()), *other.get(group_id, ())) for group_id in {**one, **other}}


_LAG_NUMBERS = ("committed_offset", "end_offset", "log_start_offset", "lag")
_WRITTEN_WHEN_CHANGED = {GROUP_LAG: _LAG_NUMBERS, PARTITION_STATUS: ("status", "records_lost")}
"""By table the columns a change of which makes a new row; of what merely grows with time none does."""


def _changed(now: pa.Table, before: pa.Table, numbers: Sequence[str]) -> pa.Table:
    """Rows that were not there like this. Unknowns (null) are compared as -1, which no offset or status is."""

    def comparable(rows: pa.Table) -> pa.Table:
        for name in numbers:
            rows = rows.set_column(rows.column_names.index(name), name, pc.fill_null(rows[name], -1))
        return rows

    keys = ["group_id", "topic", "partition", *numbers]
    fresh = comparable(now.select(keys)).append_column("row", pa.array(range(now.num_rows), pa.int64()))
    rows = fresh.join(comparable(before.select(keys)), keys=keys, join_type="left anti")["row"]
    return now.take(rows.combine_chunks().sort())
