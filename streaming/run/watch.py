"""One cluster, watched: its connection, its checkpoint, its query, its beats and its present.

1. A watch has nothing in common with another one but its `Ground`: Spark, the tables and their upkeep.
2. Whatever ends a watch ends all of its own threads and nothing else; it may be run again.
3. A query that fails is said, shown as not ready, and started again with growing pauses (`tries`).
4. A query reads the partitions that there were when it started. If there are more, it is started again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
from kafka.errors import KafkaError
from py4j.protocol import Py4JError
from pyarrow.lib import ArrowException
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.combine.lanes import GapsClosed, PartitionSnapshot, commits_table
from streaming.combine.own_partitions import OwnPartitions
from streaming.config.load import Settings
from streaming.config.security import read_secrets
from streaming.config.settings import ADMIN_API_SOURCE
from streaming.delta.on_disk import DeltaTables
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.turn import GroupRecord
from streaming.events import OFFSETS_TOPIC
from streaming.group.topic_names import NOBODY_ASKED, TopicNames
from streaming.java import find_java, java_version
from streaming.run.cluster_clock import ClusterClock
from streaming.run.continuity import TopicRead
from streaming.run.failures import SparkEndedError, check_what_a_run_stands_on
from streaming.run.poller import Poller
from streaming.run.query.batches import BatchSink, polled_positions
from streaming.run.query.freed_memory import return_freed_memory
from streaming.run.query.partition_counts import own_partitions
from streaming.run.query.prepare import Origin, prepare_checkpoint
from streaming.run.query.source_group import NoCoordinatorError, candidate_ids, source_group
from streaming.run.samples.conditions import GroupConditions, limits_of
from streaming.run.samples.hand_back import HandBack
from streaming.run.samples.lag_watch import LagWatch
from streaming.run.samples.readiness import Readiness, log_ends
from streaming.run.samples.reconcile import Reconciler
from streaming.run.samples.sampler import Sampler
from streaming.run.samples.upkeep import Upkeep
from streaming.run.tries import Tries
from streaming.run.writers import WriterClaim
from streaming.sampling.brokers import Brokers, OffsetsTopicMissingError
from streaming.sampling.connection import Connection
from streaming.sampling.groups import Groups
from streaming.security.java_client import check_key, java_secrets, spark_options
from streaming.security.secrets_file import secrets_file
from streaming.spark.causes import is_spark_gone, plain_cause
from streaming.spark.checkpoint import (
    CheckpointDamagedError,
    CheckpointLock,
    batch_end_positions,
    canonical_place,
    check_files,
    last_committed_batch,
    naming_refusals,
)
from streaming.spark.checkpoint_files import HANDED_BACK, QUERY
from streaming.spark.files import Files
from streaming.spark.query import await_query, lanes_of, start_query
from streaming.spark.session import jvm_pid, use_pool
from streaming.spark.source import handed_back_rows, offsets_topic_records
from streaming.spark.state import stored_state
from streaming.spark.steps import StateFunction
from streaming.state.commit_book import CommitBook
from streaming.state.registry import Registry

STALE_INTERVALS = 6
"""Lag of a sample older than so many intervals is not shown: the last value is not the present."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ground:
    """What the clusters of one monitor share."""

    session: SparkSession
    tables: DeltaTables
    upkeep: Upkeep
    users_references: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reached:
    """A cluster whose brokers have answered, and its checkpoint, held. No `partitions` where they are not read."""

    connection: Connection
    brokers: Brokers
    partitions: list[int]
    security_options: Mapping[str, str]
    lock: CheckpointLock


class ClusterWatch:
    """One cluster, one query. `settings` are those of this cluster as if it were the only one."""

    def __init__(self, settings: Settings, now_ms: Callable[[], int]) -> None:
        self._settings = settings
        self.cluster = settings.kafka.cluster
        self._clock = ClusterClock(self.cluster, now_ms)
        self.registry = Registry()
        self.is_under_way = False
        self._is_polled = settings.source.kind == ADMIN_API_SOURCE
        self.registry.put_health(source=settings.source.kind)

    @property
    def stale_after_seconds(self) -> float:
        """The age from which on a sample is not the present any more."""
        return max(30.0, STALE_INTERVALS * self._settings.sampling.interval_seconds)

    def connect(self) -> Connection:
        """Reach a broker. Raises BrokerUnreachableError or AccessRefusedError."""
        return Connection(self._settings.kafka, self._settings.sampling.request_timeout_seconds)

    @contextmanager
    def reached(self, connection: Connection, stop: threading.Event) -> Iterator[Reached]:
        """Hold what a run needs of cluster and checkpoint. Raises a RemedyError for what it cannot have."""
        self.is_under_way = True
        try:
            with self._held(connection, stop) as held:
                yield held
        finally:
            self.is_under_way = False

    @contextmanager
    def _held(self, connection: Connection, stop: threading.Event) -> Iterator[Reached]:
        brokers = Brokers(self.cluster, connection, self._clock.now_ms, samples_offsets_topic=not self._is_polled)
        partitions = [] if self._is_polled else self._offsets_topic_partitions(brokers, stop)
        security = self._settings.kafka.security
        with (
            secrets_file(java_secrets(security, read_secrets(security))) as file,
            CheckpointLock(self._settings.paths.checkpoint) as lock,
        ):
            check_files(self._settings.paths.checkpoint)
            check_key(security, lambda: java_version(find_java()))
            yield Reached(connection, brokers, partitions, spark_options(security, file), lock)

    def _offsets_topic_partitions(self, brokers: Brokers, stop: threading.Event) -> list[int]:
        """A young cluster has no `__consumer_offsets` until somebody commits: wait for it, not ready."""
        is_said = False
        while not stop.is_set():
            try:
                return brokers.offsets_topic_partitions()
            except OffsetsTopicMissingError as missing:  # noqa: PERF203 - it waits seconds in between
                _log.log(logging.DEBUG if is_said else logging.WARNING, "%s: %s; waiting", self.cluster, missing)
                is_said = True
                stop.wait(2.0)
        return []

    def run(self, reached: Reached, ground: Ground, stop: threading.Event) -> None:
        """Restore and watch until `stop` is set."""
        use_pool(ground.session, self.cluster)
        reached.lock.write_holder(jvm_pid(ground.session))
        _Run(self._settings, self.registry, reached, ground, self._clock, self.stale_after_seconds).run(stop)


class _Run:
    """One run of a watch: what is known of the cluster so far is restored anew for each."""

    def __init__(  # noqa: PLR0913, PLR0917 - everything a run stands on
        self,
        settings: Settings,
        registry: Registry,
        reached: Reached,
        ground: Ground,
        clock: ClusterClock,
        stale_after_seconds: float,
    ) -> None:
        self._settings = settings
        self._cluster = settings.kafka.cluster
        self._registry = registry
        self._reached = reached
        self._ground = ground
        self._clock = clock
        self._book = CommitBook()
        self._files = Files(ground.session, settings.paths.checkpoint)
        self._limits = limits_of(settings.judgement)
        self._own_partitions = OwnPartitions()
        self._query: StreamingQuery | None = None
        self._is_polled = settings.source.kind == ADMIN_API_SOURCE
        self._poller = self._make_poller(stale_after_seconds) if self._is_polled else None
        self._readiness = Readiness(self._source_is_alive, self._polled_targets if self._is_polled else log_ends)

    def run(self, stop: threading.Event) -> None:
        """Watch until `stop` is set. Raises SecondWriterError if another monitor writes the cluster's rows."""
        paths, session = self._settings.paths, self._ground.session
        place = canonical_place(paths.checkpoint)
        monitor_ms = self._clock.monitor_ms  # claims are compared between monitors
        with WriterClaim(lambda: Files(session, paths.tables), self._cluster, place, monitor_ms, stop) as claim:
            self._watch(claim, stop)

    def _watch(self, claim: WriterClaim, stop: threading.Event) -> None:
        """Prepare, restore, and keep query and beats going until `stop` is set."""
        with naming_refusals(self._settings.paths.checkpoint):
            tables, origin = prepare_checkpoint(self._ground.session, self._settings, self._files, self._ground.tables)
            self._use_partitions(len(self._reached.partitions))
            self._restore()
        lag_watch = LagWatch(self._cluster, self._book, self._files, self._limits, self._reached.brokers, self._clock)
        lag_watch.restore()
        beats_stop = threading.Event()
        beats = [
            threading.Thread(target=beat, args=(beats_stop,), name=f"{name} of {self._cluster}")
            for name, beat in {**self._beats(tables, lag_watch), "writer": claim.keep}.items()
        ]
        for beat in beats:
            beat.start()
        try:
            self._keep_query_alive(tables, origin, claim, stop)
        finally:
            beats_stop.set()
            for beat in beats:
                beat.join()
            self._store(lag_watch)

    def _store(self, lag_watch: LagWatch) -> None:
        """Samples are a cache: that they cannot be written must not hide what ended the run."""
        try:
            lag_watch.store()
        except (OSError, Py4JError) as error:
            level = logging.DEBUG if is_spark_gone(error) else logging.WARNING
            _log.log(level, "%s: samples could not be written: %s", self._cluster, plain_cause(error))

    def _beats(self, tables: DeltaTables, lag_watch: LagWatch) -> Mapping[str, Callable[[threading.Event], None]]:
        sampling, reached = self._settings.sampling, self._reached
        groups = Groups(reached.connection, self._clock.now_ms)
        reconciler = Reconciler(self._cluster, groups, self._book, sampling.reconcile_seconds)
        sampler = Sampler(
            cluster=self._cluster,
            brokers=reached.brokers,
            groups=groups,
            reconciler=None if self._is_polled else reconciler,
            registry=self._registry,
            book=self._book,
            tables=tables,
            hand_back=HandBack(self._files),
            topic_read=TopicRead(self._cluster, self._registry, self._files),
            lag_watch=lag_watch,
            conditions=GroupConditions(self._cluster, self._registry, tables, self._limits),
            readiness=self._readiness,
            interval_seconds=sampling.interval_seconds,
            lag_table_seconds=sampling.lag_table_seconds,
            upkeep=self._ground.upkeep,
        )
        return {"sampler": sampler.run, **({"poller": self._poller.run} if self._poller else {})}

    def _make_poller(self, stale_after_seconds: float) -> Poller:
        return Poller(
            cluster=self._cluster,
            groups=Groups(self._reached.connection, self._clock.now_ms),
            registry=self._registry,
            book=self._book,
            files=self._files,
            now_ms=self._clock.now_ms,
            interval_seconds=self._settings.sampling.interval_seconds,
            stale_after_seconds=stale_after_seconds,
        )

    def _restore(self) -> None:
        """Rebuild the registry from the state store, as of the last batch that is wholly done."""
        batch_id = last_committed_batch(self._files)
        if batch_id is None:
            return
        groups, lanes = self._stored_state()
        for lane in lanes:
            self._book.apply(commits_table(lane.commits))
        self._registry.put_batch(groups, lanes)
        self._registry.put_gap_totals(GapsClosed((), {**lane.gap_totals()}) for lane in lanes)
        read = batch_end_positions(self._files, batch_id, OFFSETS_TOPIC)
        positions = read or polled_positions(self._registry.present().lanes)
        self._registry.put_health(batch_id=batch_id, positions=positions)
        return_freed_memory()
        _log.info(
            "%s: restored %d groups and %d partitions as of batch %d", self._cluster, len(groups), len(lanes), batch_id
        )

    def _stored_state(self) -> tuple[list[GroupRecord], list[PartitionSnapshot]]:
        try:
            return stored_state(self._ground.session, self._files.uri(QUERY))
        except (PySparkException, Py4JError, msgspec.DecodeError, ArrowException) as failure:
            if is_spark_gone(failure):
                raise SparkEndedError from None
            what = f"{QUERY}/state cannot be read: {plain_cause(failure)}"
            raise CheckpointDamagedError(self._settings.paths.checkpoint, what) from failure

    def _keep_query_alive(self, tables: DeltaTables, origin: Origin, claim: WriterClaim, stop: threading.Event) -> None:
        """Rules 3 and 4."""
        sink = BatchSink(
            cluster=self._cluster,
            registry=self._registry,
            book=self._book,
            tables=tables,
            files=self._files,
            origin=origin,
            clock=self._clock,
        )
        tries = Tries(self._registry)
        while not stop.is_set():
            self._readiness.start_over()
            try:
                self._query = self._start_query(sink, origin, stop)
                await_query(self._query, lambda: stop.is_set() or claim.refusal is not None or self._has_grown())
            except (PySparkException, Py4JError, NoCoordinatorError) as failure:
                if not stop.is_set():
                    self._check_ground(tables)
                    cause = sink.failure or failure
                    self._say_failed(cause, is_new=tries.take_failed(cause))
                    stop.wait(tries.pause_seconds)
            else:
                claim.check()
                if not self._has_grown():
                    return
                self._use_partitions(self._partitions_sampled())

    @property
    def _partitions(self) -> int:
        """How many partitions of `__consumer_offsets` are read."""
        return self._own_partitions.counts[-1] if self._own_partitions.counts else 0

    def _partitions_sampled(self) -> int:
        sample = self._registry.present().sample
        return 0 if sample is None else sample.offsets_topic_partitions

    def _has_grown(self) -> bool:
        """Rule 4."""
        return self._partitions_sampled() > self._partitions

    def _use_partitions(self, partitions: int) -> None:
        """Read so many partitions from the next start of the query on; none where coordinators are asked."""
        if not self._is_polled:
            self._own_partitions = own_partitions(self._cluster, self._files, partitions)
            self._book.use_partitions(self._own_partitions)

    def _check_ground(self, tables: DeltaTables) -> None:
        """Raise a RemedyError where starting the query again is no use."""
        check_what_a_run_stands_on(self._ground.session, self._files, tables)

    def _say_failed(self, failure: Exception, *, is_new: bool) -> None:
        level = logging.ERROR if is_new else logging.DEBUG
        _log.log(level, "%s: the query failed and is started again: %s", self._cluster, plain_cause(failure))
        _log.debug("%s: the whole failure:", self._cluster, exc_info=failure)

    def _start_query(self, sink: BatchSink, origin: Origin, stop: threading.Event) -> StreamingQuery:
        settings, reached, session = self._settings, self._reached, self._ground.session
        lanes = handed_back_rows(session, self._files.uri(HANDED_BACK))
        if not self._is_polled:
            group_id = source_group(Groups(reached.connection, self._clock.now_ms), stop, candidate_ids())
            options = {**reached.security_options, "kafka.group.id": group_id}
            records = offsets_topic_records(session, settings.kafka, settings.source, range(self._partitions), options)
            lanes = lanes_of(records, settings.spark.combine_tasks, self._own_partitions).unionByName(lanes)
        function = StateFunction(
            strategies=settings.judgement.strategies,
            users_references=self._ground.users_references,
            users_limit_seconds=settings.judgement.assignor_limit_seconds,
            seeds=origin.seeds.records,
            seed_version=origin.seeds.version,
            limits=self._limits,
            names=NOBODY_ASKED if self._is_polled else self._topic_names(),
            own_partitions=self._own_partitions,
        )
        return start_query(
            lanes=lanes,
            cluster=self._cluster,
            state_function=function,
            on_batch=sink,
            checkpoint=self._files.uri(QUERY),
            trigger_seconds=settings.source.trigger_seconds,
        )

    def _topic_names(self) -> TopicNames:
        """Names of all topics, asked before the first record is read. Without them rows wait for the next sample."""
        try:
            return self._reached.brokers.topic_names()
        except KafkaError as error:
            _log.warning("%s: brokers gave no topic names (%s); rows wait for a sample", self._cluster, error)
            return NOBODY_ASKED

    def _source_is_alive(self) -> bool:
        query_is_alive = self._query is not None and self._query.isActive
        return query_is_alive and (self._poller is None or self._poller.is_fresh())

    def _polled_targets(self, sample: ClusterSample) -> Mapping[int, int] | None:
        return None if self._poller is None else self._poller.targets(sample)
