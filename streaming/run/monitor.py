"""The monitor's life: start, restore, keep the query alive, stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tenacity import Retrying, retry_if_exception_type, stop_when_event_set, wait_exponential
from tenacity.nap import sleep_using_event

from streaming.combine.lanes import GapsClosed, commits_table
from streaming.config.load import Settings
from streaming.config.security import read_secrets
from streaming.config.settings import ADMIN_API_SOURCE, JudgementSettings, MetricsSettings
from streaming.events import OFFSETS_TOPIC
from streaming.jars import resolve
from streaming.java import find_java, java_version
from streaming.judgement.detectors import Limits
from streaming.judgement.lag import ClusterSample
from streaming.page.application import Pages
from streaming.page.rebalances import RebalanceReader
from streaming.page.watched import Watched
from streaming.run.batches import BatchSink, polled_positions
from streaming.run.conditions import GroupConditions
from streaming.run.hand_back import HandBack
from streaming.run.lag_watch import LagWatch
from streaming.run.poller import Poller
from streaming.run.prepare import Origin, prepare_checkpoint
from streaming.run.readiness import Readiness, log_ends
from streaming.run.reconcile import Reconciler
from streaming.run.sampler import Sampler, Upkeep
from streaming.run.strategies import users_references
from streaming.sampling.brokers import Brokers, OffsetsTopicMissingError
from streaming.sampling.connection import Connection
from streaming.sampling.groups import Groups
from streaming.security.java_client import check_key, java_secrets, spark_options
from streaming.security.secrets_file import secrets_file
from streaming.sinks.access import Certificate, read_users
from streaming.sinks.commit_book import CommitBook
from streaming.sinks.exposure import Bounds
from streaming.sinks.http import Access, MetricsServer
from streaming.sinks.metrics import Exporter
from streaming.sinks.registry import Registry
from streaming.sinks.shown import asked_for
from streaming.spark.checkpoint import (
    HANDED_BACK,
    QUERY,
    CheckpointLock,
    batch_end_positions,
    last_committed_batch,
)
from streaming.spark.files import Files
from streaming.spark.query import lanes_of, start_query
from streaming.spark.session import jvm_pid, spark_session, stop_spark
from streaming.spark.source import handed_back_rows, offsets_topic_records
from streaming.spark.state import stored_state
from streaming.spark.steps import StateFunction

STALE_INTERVALS = 6
"""Lag of a sample older than so many intervals is not shown: the last value is not the present."""

BATCH_GRACE_SECONDS = 10.0
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

_log = logging.getLogger(__name__)


def now_ms() -> int:
    """Wall clock, Kafka's way."""
    return time.time_ns() // 1_000_000


class Monitor:
    """One cluster, one query. `run` blocks until `stop` is set; `on_port` hears the port of /metrics."""

    def __init__(self, settings: Settings, stop: threading.Event, on_port: Callable[[int], None]) -> None:
        self._settings = settings
        self._stop = stop
        self._on_port = on_port
        self._registry = Registry()
        self._book = CommitBook()
        self._query: StreamingQuery | None = None
        self._poller: Poller | None = None
        self._is_polled = settings.source.kind == ADMIN_API_SOURCE
        self._readiness = Readiness(self._source_is_alive, self._polled_targets if self._is_polled else log_ends)
        self._users_references: tuple[tuple[str, str], ...] = ()
        self._security_options: Mapping[str, str] = {}

    def run(self) -> None:
        """Watch until told to stop. Raises a RemedyError for whatever an operator has to put right first."""
        settings = self._settings
        self._users_references = users_references(settings.judgement.assignors)
        self._registry.put_health(source=settings.source.kind)
        connection = Connection(settings.kafka, settings.sampling.request_timeout_seconds)
        stale_after_ms = int(self._stale_after_seconds * 1000)
        exporter = Exporter(
            [(settings.kafka.cluster, self._registry)],
            now_ms,
            stale_after_ms,
            asked_for(settings.metrics),
            Bounds(settings.metrics.top_k, settings.metrics.max_series),
        )
        pages = Pages(
            lambda: Watched(settings.kafka.cluster, self._registry.present(), now_ms(), stale_after_ms),
            RebalanceReader(settings.paths.tables, settings.kafka.cluster, time.monotonic),
            settings.judgement.strategies,
        )
        access = _access(settings.metrics)
        server = MetricsServer(settings.metrics.host, settings.metrics.port, exporter.exposition, pages, access)
        try:
            self._on_port(server.port)
            brokers = Brokers(connection, now_ms, samples_offsets_topic=not self._is_polled)
            partitions = [] if self._is_polled else self._offsets_topic_partitions(brokers)
            security = settings.kafka.security
            with secrets_file(java_secrets(security, read_secrets(security))) as file:
                self._security_options = spark_options(security, file)
                if not self._stop.is_set():
                    self._run_with_spark(connection, brokers, partitions)
        finally:
            server.close()
            connection.close()

    def _offsets_topic_partitions(self, brokers: Brokers) -> list[int]:
        """A young cluster has no `__consumer_offsets` until somebody commits: wait for it, not ready."""
        while not self._stop.is_set():
            try:
                return brokers.offsets_topic_partitions()
            except OffsetsTopicMissingError as missing:  # noqa: PERF203 - it waits seconds in between
                _log.warning("%s; waiting", missing)
                self._stop.wait(2.0)
        return []

    @property
    def _stale_after_seconds(self) -> float:
        return max(30.0, STALE_INTERVALS * self._settings.sampling.interval_seconds)

    def _run_with_spark(self, connection: Connection, brokers: Brokers, partitions: list[int]) -> None:
        checkpoint = self._settings.paths.checkpoint
        with CheckpointLock(checkpoint) as lock:
            java = find_java()
            check_key(self._settings.kafka.security, lambda: java_version(java))
            session = spark_session(self._settings.spark, resolve("spark"), java.parent.parent)
            lock.write_holder(jvm_pid(session))
            try:
                self._watch(session, connection, brokers, partitions, Files(session, checkpoint))
            finally:
                stop_spark(session)

    def _watch(
        self, session: SparkSession, connection: Connection, brokers: Brokers, partitions: list[int], files: Files
    ) -> None:
        settings = self._settings
        _, tables, origin = prepare_checkpoint(session, settings, files)
        self._restore(session, files)
        sink = BatchSink(
            cluster=settings.kafka.cluster,
            registry=self._registry,
            book=self._book,
            tables=tables,
            files=files,
            origin=origin,
        )
        limits = _limits(settings.judgement)
        lag_watch = LagWatch(self._book, files, limits)
        lag_watch.restore()
        groups = Groups(connection, now_ms)
        reconciler = Reconciler(groups, self._book, settings.sampling.reconcile_seconds)
        sampler = Sampler(
            cluster=settings.kafka.cluster,
            brokers=brokers,
            groups=groups,
            reconciler=None if self._is_polled else reconciler,
            registry=self._registry,
            book=self._book,
            tables=tables,
            hand_back=HandBack(files),
            lag_watch=lag_watch,
            conditions=GroupConditions(settings.kafka.cluster, self._registry, tables, limits),
            readiness=self._readiness,
            interval_seconds=settings.sampling.interval_seconds,
            lag_table_seconds=settings.sampling.lag_table_seconds,
            upkeep=Upkeep(tables, settings.tables.retention_days, settings.tables.tidy_seconds),
        )
        beats = [threading.Thread(target=sampler.run, args=(self._stop,), name="sampler")]
        if self._is_polled:
            self._poller = self._make_poller(connection, files)
            beats.append(threading.Thread(target=self._poller.run, args=(self._stop,), name="poller"))
        for beat in beats:
            beat.start()
        try:
            self._keep_query_alive(session, files, partitions, sink, origin)
        finally:
            self._stop.set()
            for beat in beats:
                beat.join()
            lag_watch.store()

    def _make_poller(self, connection: Connection, files: Files) -> Poller:
        return Poller(
            groups=Groups(connection, now_ms),
            registry=self._registry,
            book=self._book,
            files=files,
            now_ms=now_ms,
            interval_seconds=self._settings.sampling.interval_seconds,
            stale_after_seconds=self._stale_after_seconds,
        )

    def _restore(self, session: SparkSession, files: Files) -> None:
        """Rebuild the registry from the state store, as of the last batch that is wholly done."""
        batch_id = last_committed_batch(files)
        if batch_id is None:
            return
        groups, lanes = stored_state(session, files.uri(QUERY))
        for lane in lanes:
            self._book.apply(commits_table(lane.commits))
        self._registry.put_batch(groups, lanes)
        self._registry.put_gap_totals(GapsClosed((), {**lane.gap_totals()}) for lane in lanes)
        read = batch_end_positions(files, batch_id, OFFSETS_TOPIC)
        positions = read or polled_positions(self._registry.present().lanes)
        self._registry.put_health(batch_id=batch_id, positions=positions)
        _log.info("restored %d groups and %d partitions as of batch %d", len(groups), len(lanes), batch_id)

    def _keep_query_alive(
        self, session: SparkSession, files: Files, partitions: list[int], sink: BatchSink, origin: Origin
    ) -> None:
        """Run the query; when it fails, say so, show not ready, and start it again with growing pauses."""
        for attempt in Retrying(
            retry=retry_if_exception_type(PySparkException),
            wait=wait_exponential(multiplier=1, max=30),
            stop=stop_when_event_set(self._stop),
            sleep=sleep_using_event(self._stop),
            reraise=True,
        ):
            with attempt:
                self._readiness.start_over()
                self._query = self._start_query(session, files, partitions, sink, origin)
                try:
                    self._await_query(self._query)
                except PySparkException as failure:
                    if self._stop.is_set():
                        return
                    restarts = self._registry.present().health.query_restarts + 1
                    self._registry.put_health(ready=False, query_restarts=restarts)
                    _log.error("the query failed and is started again: %s", _first_line(failure))
                    _log.debug("the whole failure:", exc_info=failure)
                    raise

    def _start_query(
        self, session: SparkSession, files: Files, partitions: list[int], sink: BatchSink, origin: Origin
    ) -> StreamingQuery:
        settings = self._settings
        lanes = handed_back_rows(session, files.uri(HANDED_BACK))
        if not self._is_polled:
            records = offsets_topic_records(
                session, settings.kafka, settings.source, partitions, self._security_options
            )
            lanes = lanes_of(records, settings.spark.combine_tasks).unionByName(lanes)
        function = StateFunction(
            strategies=settings.judgement.strategies,
            users_references=self._users_references,
            users_limit_seconds=settings.judgement.assignor_limit_seconds,
            seeds=origin.seeds.records,
            seed_version=origin.seeds.version,
            limits=_limits(settings.judgement),
        )
        return start_query(
            lanes=lanes,
            cluster=settings.kafka.cluster,
            state_function=function,
            on_batch=sink,
            checkpoint=files.uri(QUERY),
            trigger_seconds=settings.source.trigger_seconds,
        )

    def _await_query(self, query: StreamingQuery) -> None:
        while not self._stop.is_set():
            if query.awaitTermination(1):
                return
        _wait_between_batches(query)
        query.stop()

    def _source_is_alive(self) -> bool:
        query_is_alive = self._query is not None and self._query.isActive
        return query_is_alive and (self._poller is None or self._poller.is_fresh())

    def _polled_targets(self, sample: ClusterSample) -> Mapping[int, int] | None:
        return None if self._poller is None else self._poller.targets(sample)


def _limits(judgement: JudgementSettings) -> Limits:
    return Limits(
        window_seconds=judgement.storm_window_seconds,
        storm_rebalances=judgement.storm_rebalances,
        flaps=judgement.flaps,
        cooperative_rounds=judgement.cooperative_rounds,
        round_seconds=judgement.round_seconds,
        allowed_lag=judgement.allowed_lag,
    )


def _access(metrics: MetricsSettings) -> Access:
    """Read what guards the port. Raises AccessError for files that cannot do that."""
    certificate = Certificate(metrics.tls_certificate_file, metrics.tls_key_file) if metrics.tls_key_file else None
    users = read_users(metrics.basic_auth_users_file) if metrics.basic_auth_users_file else None
    if users and not certificate and metrics.host not in _LOOPBACK:
        _log.warning("passwords for the HTTP port cross the network in the clear: set metrics.tls_certificate_file")
    return Access(certificate, users)


def _wait_between_batches(query: StreamingQuery) -> None:
    """Let a running batch finish: stopped in its middle it is only run again, after a page of Java's complaints."""
    deadline = time.monotonic() + BATCH_GRACE_SECONDS
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.02)


def _first_line(failure: Exception) -> str:
    lines = [line for line in str(failure).splitlines() if line.strip()]
    return lines[0] if lines else type(failure).__name__
