"""One cluster's query: started, and started again where it fails or its topic has grown."""

from __future__ import annotations

import logging
import threading

from kafka.errors import KafkaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from streaming.combine.own_partitions import OwnPartitions
from streaming.config.load import Settings
from streaming.config.settings import ADMIN_API_SOURCE
from streaming.delta.on_disk import DeltaTables
from streaming.evaluation.rebalances.detectors import Limits
from streaming.group.topic_names import NOBODY_ASKED, TopicNames
from streaming.run.cluster_clock import ClusterClock
from streaming.run.ground import Ground, Reached
from streaming.run.query.batches import BatchSink
from streaming.run.query.no_use import check_what_a_run_stands_on
from streaming.run.query.partition_counts import own_partitions
from streaming.run.query.prepare import Origin
from streaming.run.query.source_group import NoCoordinatorError, candidate_ids, source_group
from streaming.run.samples.readiness import Readiness
from streaming.run.tries import Tries
from streaming.run.writers import WriterClaim
from streaming.sampling.groups import Groups
from streaming.spark.causes import plain_cause
from streaming.spark.checkpoint_files import HANDED_BACK, QUERY
from streaming.spark.files import Files
from streaming.spark.query import await_query, lanes_of, start_query
from streaming.spark.source import handed_back_rows, offsets_topic_records
from streaming.spark.steps import StateFunction
from streaming.state.commit_book import CommitBook
from streaming.state.registry import Registry

_log = logging.getLogger(__name__)


class QueryKeeper:
    """Keeps the query going. `readiness` starts over with each start of it."""

    def __init__(  # noqa: PLR0913 - everything a query stands on, named
        self,
        *,
        settings: Settings,
        registry: Registry,
        book: CommitBook,
        files: Files,
        limits: Limits,
        reached: Reached,
        ground: Ground,
        clock: ClusterClock,
        readiness: Readiness,
    ) -> None:
        self._settings = settings
        self._cluster = settings.kafka.cluster
        self._registry = registry
        self._book = book
        self._files = files
        self._limits = limits
        self._reached = reached
        self._ground = ground
        self._clock = clock
        self._readiness = readiness
        self._is_polled = settings.source.kind == ADMIN_API_SOURCE
        self._own_partitions = OwnPartitions()
        self._query: StreamingQuery | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the query runs."""
        return self._query is not None and self._query.isActive

    def keep(self, tables: DeltaTables, origin: Origin, claim: WriterClaim, stop: threading.Event) -> None:
        """Run it until `stop` is set, starting it again where it fails (rules 3 and 4 of `run.watch`)."""
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
                self.use_partitions(self._partitions_sampled())

    @property
    def _partitions(self) -> int:
        """How many partitions of `__consumer_offsets` are read."""
        return self._own_partitions.counts[-1] if self._own_partitions.counts else 0

    def _partitions_sampled(self) -> int:
        sample = self._registry.present().sample
        return 0 if sample is None else sample.offsets_topic_partitions

    def _has_grown(self) -> bool:
        """Whether there are more partitions than are read."""
        return self._partitions_sampled() > self._partitions

    def use_partitions(self, partitions: int) -> None:
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
