"""Run the query of one cluster. Restart the query after a failure, or if `__consumer_offsets` has new partitions."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from kafka.errors import KafkaError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from streaming.combine.own_partitions import OwnPartitions
from streaming.config.load import Settings
from streaming.config.settings import ADMIN_API_SOURCE
from streaming.delta.on_disk import DeltaTables
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.group.topic_names import NO_TOPIC_NAMES, TopicNames
from streaming.run.cluster_clock import ClusterClock
from streaming.run.query.batches import BatchSink
from streaming.run.query.partition_counts import own_partitions
from streaming.run.query.prepare import Bootstrap
from streaming.run.query.restart_check import check_restart_helps
from streaming.run.query.source_group import NoCoordinatorError, candidate_ids, source_group
from streaming.run.retry_state import RetryState
from streaming.run.samples.readiness import Readiness
from streaming.run.shared_resources import ClusterSession, SharedResources
from streaming.run.writers import WriterClaim
from streaming.sampling.groups import Groups
from streaming.spark.causes import plain_cause
from streaming.spark.checkpoint_files import FEEDBACK_FOLDER, QUERY
from streaming.spark.files import Files
from streaming.spark.query import await_query, combine_records, start_query
from streaming.spark.source import feedback_rows, offsets_topic_records
from streaming.spark.steps import StateFunction
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_state import MonitorState

_log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False, kw_only=True)
class QueryKeeper:
    """Runs and restarts the query. Each start of the query resets `readiness`."""

    settings: Settings
    monitor_state: MonitorState
    committed_offsets: CommittedOffsets
    files: Files
    limits: Limits
    cluster_session: ClusterSession
    shared: SharedResources
    clock: ClusterClock
    readiness: Readiness

    def __post_init__(self) -> None:
        """Start without a query. `keep` starts the query."""
        self._cluster = self.settings.kafka.cluster
        self._is_polled = self.settings.source.kind == ADMIN_API_SOURCE
        self._own_partitions = OwnPartitions()
        self._query: StreamingQuery | None = None

    @property
    def is_alive(self) -> bool:
        """True if the query is running."""
        return self._query is not None and self._query.isActive

    def keep(self, tables: DeltaTables, bootstrap: Bootstrap, claim: WriterClaim, stop: threading.Event) -> None:
        """Run the query until `stop` is set (rules 3 and 4 of `run.watch`).

        Raises RemedyError if a restart of the query cannot help, or for one of the reasons in `check`.
        """
        sink = BatchSink(
            cluster=self._cluster,
            monitor_state=self.monitor_state,
            committed_offsets=self.committed_offsets,
            tables=tables,
            files=self.files,
            bootstrap=bootstrap,
            clock=self.clock,
            on_end=self.readiness.report_progress,
        )
        retry_state = RetryState(self.monitor_state)
        while not stop.is_set():
            self.readiness.start_over()
            try:
                self._query = self._start_query(sink, bootstrap, stop)
                await_query(self._query, lambda: stop.is_set() or self._must_end(claim) or self._has_grown())
            except (PySparkException, Py4JError, NoCoordinatorError) as failure:
                if not stop.is_set():
                    self.check(claim)
                    cause = sink.failure or failure
                    is_new = retry_state.record_failure(cause)
                    check_restart_helps(self.shared.session, self.files, tables, is_new=is_new)
                    level = logging.ERROR if is_new else logging.DEBUG
                    _log.log(level, "%s: the query failed; starting it again: %s", self._cluster, plain_cause(cause))
                    _log.debug("%s: stack trace of the failure:", self._cluster, exc_info=cause)
                    stop.wait(retry_state.pause_seconds)
            else:
                self.check(claim)
                if not self._has_grown():
                    return
                self.use_partitions(self._partitions_sampled())

    def _must_end(self, claim: WriterClaim) -> bool:
        return claim.refusal is not None or self.cluster_session.connection.is_different_cluster

    def check(self, claim: WriterClaim) -> None:
        """Raise SecondWriterError or DifferentClusterError if this monitor must not write rows."""
        claim.check()
        self.cluster_session.connection.check_cluster()

    @property
    def _partitions(self) -> int:
        return self._own_partitions.counts[-1] if self._own_partitions.counts else 0

    def _partitions_sampled(self) -> int:
        sample = self.monitor_state.view().sample
        return 0 if sample is None else sample.offsets_topic_partitions

    def _has_grown(self) -> bool:
        return self._partitions_sampled() > self._partitions

    def use_partitions(self, partitions: int) -> None:
        """Set the number of partitions that the query reads after its next start. In the polling mode, do nothing."""
        if not self._is_polled:
            self._own_partitions = own_partitions(self._cluster, self.files, partitions)
            self.committed_offsets.use_partitions(self._own_partitions)

    def _start_query(self, sink: BatchSink, bootstrap: Bootstrap, stop: threading.Event) -> StreamingQuery:
        settings, cluster_session, session = self.settings, self.cluster_session, self.shared.session
        state_rows = feedback_rows(session, self.files.uri(FEEDBACK_FOLDER))
        if not self._is_polled:
            group_id = source_group(Groups(cluster_session.connection, self.clock.now_ms), stop, candidate_ids())
            options = {**cluster_session.security_options, "kafka.group.id": group_id}
            records = offsets_topic_records(session, settings.kafka, settings.source, range(self._partitions), options)
            state_rows = combine_records(records, settings.spark.combine_tasks, self._own_partitions).unionByName(
                state_rows
            )
        function = StateFunction(
            strategies=settings.evaluation.strategies,
            users_references=self.shared.users_references,
            initial_state=bootstrap.initial_state.records,
            initial_state_version=bootstrap.initial_state.version,
            limits=self.limits,
            names=NO_TOPIC_NAMES if self._is_polled else self._topic_names(),
            own_partitions=self._own_partitions,
        )
        return start_query(
            state_rows=state_rows,
            cluster=self._cluster,
            state_function=function,
            on_batch=sink,
            checkpoint=self.files.uri(QUERY),
            trigger_seconds=settings.source.trigger_seconds,
        )

    def _topic_names(self) -> TopicNames:
        try:
            return self.cluster_session.brokers.topic_names()
        except KafkaError as error:
            _log.warning(
                "%s: brokers did not return topic names (%s); some table rows wait for the next sample",
                self._cluster,
                error,
            )
            return NO_TOPIC_NAMES
