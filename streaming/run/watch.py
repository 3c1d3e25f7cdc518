"""One cluster, watched: its connection, its checkpoint, its query, its beats and its present.

1. A watch has nothing in common with another one but its `SharedResources`: Spark, the tables and their upkeep.
2. Whatever ends a watch ends all of its own threads and nothing else; it may be run again.
3. A query that fails is said, shown as not ready, and started again with growing pauses (`retry_state`).
4. A query reads the partitions that there were when it started. If there are more, it is started again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streaming.config.load import Settings
from streaming.config.security import read_secrets
from streaming.config.settings import ADMIN_API_SOURCE
from streaming.java import find_java, java_version
from streaming.run.cluster_clock import ClusterClock
from streaming.run.cluster_run import ClusterRun
from streaming.run.shared_resources import ClusterSession, SharedResources
from streaming.sampling.brokers import Brokers, OffsetsTopicMissingError
from streaming.sampling.connection import Connection
from streaming.security.java_client import check_key, java_secrets, spark_options
from streaming.security.secrets_file import secrets_file
from streaming.spark.checkpoint import CheckpointLock, check_files
from streaming.spark.session import jvm_pid, use_pool
from streaming.state.monitor_state import MonitorState

STALE_INTERVALS = 6
"""Lag of a sample older than so many intervals is not shown: the last value is not the present."""

_log = logging.getLogger(__name__)


class ClusterWatch:
    """One cluster, one query. `settings` are those of this cluster as if it were the only one."""

    def __init__(self, settings: Settings, now_ms: Callable[[], int]) -> None:
        self._settings = settings
        self.cluster = settings.kafka.cluster
        self._clock = ClusterClock(self.cluster, now_ms)
        self.monitor_state = MonitorState()
        self.is_under_way = False
        self._is_polled = settings.source.kind == ADMIN_API_SOURCE
        self.monitor_state.put_health(source=settings.source.kind)

    @property
    def stale_after_seconds(self) -> float:
        """The age from which on a sample is not the present any more."""
        return max(30.0, STALE_INTERVALS * self._settings.sampling.interval_seconds)

    def connect(self) -> Connection:
        """Reach a broker. Raises BrokerUnreachableError or AccessRefusedError."""
        return Connection(self._settings.kafka, self._settings.sampling.request_timeout_seconds)

    @contextmanager
    def cluster_session(self, connection: Connection, stop: threading.Event) -> Iterator[ClusterSession]:
        """Hold what a run needs of cluster and checkpoint. Raises a RemedyError for what it cannot have."""
        self.is_under_way = True
        try:
            with self._held(connection, stop) as held:
                yield held
        finally:
            self.is_under_way = False

    @contextmanager
    def _held(self, connection: Connection, stop: threading.Event) -> Iterator[ClusterSession]:
        brokers = Brokers(self.cluster, connection, self._clock.now_ms, samples_offsets_topic=not self._is_polled)
        partitions = [] if self._is_polled else self._offsets_topic_partitions(brokers, stop)
        security = self._settings.kafka.security
        with (
            secrets_file(java_secrets(security, read_secrets(security))) as file,
            CheckpointLock(self._settings.paths.checkpoint) as lock,
        ):
            check_files(self._settings.paths.checkpoint)
            check_key(security, lambda: java_version(find_java()))
            yield ClusterSession(connection, brokers, partitions, spark_options(security, file), lock)

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

    def run(self, cluster_session: ClusterSession, shared: SharedResources, stop: threading.Event) -> None:
        """Restore and watch until `stop` is set."""
        use_pool(shared.session, self.cluster)
        cluster_session.lock.write_holder(jvm_pid(shared.session))
        ClusterRun(
            self._settings, self.monitor_state, cluster_session, shared, self._clock, self.stale_after_seconds
        ).run(stop)
