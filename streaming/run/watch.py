"""Watch one cluster: its connection, its checkpoint, its query, its sampling loop and its current state.

1. The watches of different clusters share only `SharedResources`: Spark, the tables and their maintenance.
2. When a watch ends, all its threads end. Other watches continue. A watch that has ended can be started again.
3. If a query fails, the monitor logs the failure and shows the cluster as not ready. The query is started again after
   increasingly long pauses (`retry_state`).
4. A query reads the partitions that existed at its start. If partitions are added, the query is started again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from streaming.config.load import Settings
from streaming.config.security import read_secrets
from streaming.config.settings import ADMIN_API_SOURCE, PathSettings
from streaming.java import find_java, java_version
from streaming.run.cluster_clock import ClusterClock
from streaming.run.cluster_run import ClusterRun
from streaming.run.first_report import FirstReport
from streaming.run.shared_resources import ClusterSession, SharedResources
from streaming.sampling.brokers import Brokers, OffsetsTopicMissingError
from streaming.sampling.connection import Connection
from streaming.security.java_client import check_key, java_secrets, spark_options
from streaming.security.secrets_file import secrets_file
from streaming.spark.checkpoint import CheckpointLock, check_files, local_cluster_id
from streaming.spark.folder import local_folder
from streaming.spark.session import jvm_pid, use_pool
from streaming.state.monitor_state import MonitorState

STALE_INTERVALS = 6
"""After this number of sampling intervals, the lag from a sample is not shown any more."""

_TOPIC_POLL_SECONDS = 2.0

_log = logging.getLogger(__name__)


class ClusterWatch:
    """Watches one cluster with one Spark streaming query. `settings` contains only the settings of this cluster."""

    def __init__(self, settings: Settings, now_ms: Callable[[], int], boot_time_ms: Callable[[], int]) -> None:
        self._settings = settings
        self.cluster = settings.kafka.cluster
        self._clock = ClusterClock(self.cluster, now_ms, boot_time_ms)
        self.monitor_state = MonitorState(settings.limits_by_group().of_each)
        self._first_report = FirstReport(self.cluster, self.monitor_state)
        self.has_session = False
        self._is_polled = settings.source.kind == ADMIN_API_SOURCE
        self.monitor_state.put_health(source=settings.source.kind, folders=_local_folders(settings.paths))

    @property
    def stale_after_seconds(self) -> float:
        """The maximum age of a sample, in seconds. Values from an older sample are not shown."""
        return max(30.0, STALE_INTERVALS * self._settings.sampling.interval_seconds)

    def connect(self) -> Connection:
        """Connect to the cluster. Raises BrokerUnreachableError or AccessRefusedError."""
        return Connection(self._settings.kafka, self._settings.sampling.request_timeout_seconds)

    @contextmanager
    def cluster_session(self, connection: Connection, stop: threading.Event) -> Iterator[ClusterSession]:
        """Open the checkpoint and prepare the requests. Raises RemedyError if one of these steps fails."""
        self.has_session = True
        try:
            checkpoint, security = self._settings.paths.checkpoint, self._settings.kafka.security
            connection.expect_cluster(local_cluster_id(checkpoint))
            brokers = Brokers(self.cluster, connection, self._clock.now_ms, samples_offsets_topic=not self._is_polled)
            partitions = [] if self._is_polled else self._offsets_topic_partitions(brokers, stop)
            with (
                secrets_file(java_secrets(security, read_secrets(security))) as file,
                CheckpointLock(checkpoint) as lock,
            ):
                check_files(checkpoint)
                check_key(security, lambda: java_version(find_java()))
                yield ClusterSession(connection, brokers, partitions, spark_options(security, file), lock)
        finally:
            self.has_session = False

    def _offsets_topic_partitions(self, brokers: Brokers, stop: threading.Event) -> list[int]:
        """Wait until `__consumer_offsets` exists, and return its partitions. Return an empty list if `stop` is set.

        A new cluster has no `__consumer_offsets` until the first commit.
        """
        is_reported = False
        try:
            while not stop.is_set():
                try:
                    return brokers.offsets_topic_partitions()
                except OffsetsTopicMissingError as missing:  # noqa: PERF203 - the loop waits seconds between attempts
                    level = logging.DEBUG if is_reported else logging.WARNING
                    _log.log(level, "%s: %s; waiting", self.cluster, missing)
                    is_reported = True
                    self.monitor_state.put_health(waits_for_topic=True)
                    stop.wait(_TOPIC_POLL_SECONDS)
            return []
        finally:
            self.monitor_state.put_health(waits_for_topic=False)

    def run(self, cluster_session: ClusterSession, shared: SharedResources, stop: threading.Event) -> None:
        """Restore the state and watch the cluster until `stop` is set."""
        use_pool(shared.session, self.cluster)
        cluster_session.lock.write_holder(jvm_pid(shared.session))
        ClusterRun(
            self._settings,
            self.monitor_state,
            cluster_session,
            shared,
            self._clock,
            self.stale_after_seconds,
            self._first_report,
        ).run(stop)


def _local_folders(paths: PathSettings) -> Mapping[str, str]:
    folders = {"checkpoint": local_folder(paths.checkpoint), "tables": local_folder(paths.tables)}
    return {name: str(folder.root) for name, folder in folders.items() if folder is not None}
