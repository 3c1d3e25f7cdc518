"""Run the monitor: one HTTP port, one Spark session, and one watch per cluster.

1. If the monitor watches only one cluster, it ends after an error that the operator must correct: it prints one line
   and returns an exit code.
2. If the monitor watches several clusters and one watch fails, the cluster of this watch is not ready. The error is
   logged once, and the monitor tries again after increasingly long pauses (`retry_state`). The other clusters are not
   affected. The failed cluster keeps its totals and its checkpoint. The operator can run `rebuild` for the failed
   cluster while the monitor is running. The next attempt uses the new checkpoint (`query.restore`).
3. The port, the tables and Spark are shared resources. If a shared resource fails, the monitor ends, even if it watches
   several clusters.
4. The watches of all clusters get the stop signal at the same time. Spark is stopped after all watches have ended.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streaming.config.load import Settings
from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import check_tables
from streaming.errors import RemedyError
from streaming.http.access import Access, read_access
from streaming.http.routes import MetricsServer
from streaming.page.api.event_reader import EventReader
from streaming.page.application import Pages
from streaming.page.clusters import ClusterView
from streaming.page.page_input import WatchedCluster
from streaming.page.rebalances import RebalanceReader
from streaming.prometheus.metric_selection import export_options
from streaming.prometheus.metrics import Exporter
from streaming.run.failures import SparkEndedError
from streaming.run.retry_state import RetryState
from streaming.run.samples.upkeep import Upkeep
from streaming.run.shared_resources import SharedResources
from streaming.run.strategies import users_references
from streaming.run.watch import ClusterWatch
from streaming.sampling.connection import Connection
from streaming.spark.causes import plain_cause
from streaming.spark.folder import full_folders
from streaming.spark.launch.jvm import SparkLaunch
from streaming.spark.session import is_running, launched_session
from streaming.wall_clock import boot_time_ms, now_ms

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_HANG_UP_SECONDS = 0.5
_STOP_POLL_SECONDS = 0.1

_log = logging.getLogger(__name__)


class QueryEndedError(RemedyError):
    """Error: a query stopped without a failure, but the monitor did not stop it."""


class Monitor:
    """The monitor. `run` blocks until `stop` is set. `on_port` is called with the number of the HTTP port."""

    def __init__(self, settings: Settings, stop: threading.Event, on_port: Callable[[int], None]) -> None:
        self._settings = settings
        self._stop = stop
        self._on_port = on_port
        self._watches = [ClusterWatch(of_cluster, now_ms, boot_time_ms) for of_cluster in settings.of_clusters()]
        self._users_references: tuple[tuple[str, str], ...] = ()
        self._page = ""

    def run(self, launch: SparkLaunch) -> None:
        """Watch all clusters until `stop` is set. Raises RemedyError for an error that the operator must correct.

        `launch` starts Spark's JVM. The start of the JVM may already be in progress.
        """
        self._users_references = users_references(self._settings.evaluation.assignors)
        metrics = self._settings.metrics
        access = read_access(metrics)  # before the connection, because an error in these files is permanent
        if access.users and not access.certificate and metrics.host not in _LOOPBACK:
            _log.warning("passwords for the HTTP port are sent unencrypted: set metrics.tls_certificate_file")
        first, *more = self._watches
        if more:
            with self._port(access):
                self._watch_several(launch)
        else:
            connection = self._connect_until_stop(first)
            if connection is not None:
                with closing(connection), self._port(access):
                    self._watch_one(first, connection, launch)

    def _connect_until_stop(self, watch: ClusterWatch) -> Connection | None:
        """Connect to the cluster. If `stop` is set before the connection exists, return None immediately.

        A connection attempt takes up to `kafka.connect_timeout_seconds` and cannot be interrupted. So it runs in a
        separate thread, and a stop of the monitor does not wait for this thread.
        """
        connecting: Future[Connection] = Future()

        def connect() -> None:
            try:
                connecting.set_result(watch.connect())
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                connecting.set_exception(error)

        threading.Thread(target=connect, name="connect", daemon=True).start()
        while not self._stop.is_set():
            if wait([connecting], _STOP_POLL_SECONDS).done:
                return connecting.result()
        return None

    @contextmanager
    def _port(self, access: Access) -> Iterator[None]:
        metrics = self._settings.metrics
        stale_after_ms = int(self._watches[0].stale_after_seconds * 1000)
        exporter = Exporter(
            [(watch.cluster, watch.monitor_state) for watch in self._watches],
            now_ms,
            stale_after_ms,
            export_options(metrics, self._settings.links),
        )
        pages = Pages(
            [
                ClusterView(
                    watch.cluster,
                    partial(_current_view, watch, stale_after_ms),
                    RebalanceReader(self._settings.paths.tables, watch.cluster, time.monotonic),
                )
                for watch in self._watches
            ],
            self._settings.evaluation.strategies,
            self._settings.links,
            EventReader(self._settings.paths.tables),
        )
        with closing(MetricsServer(metrics.host, metrics.port, exporter.exposition, pages, access)) as server:
            self._page = self._settings.links.page_url or metrics.address(server.port)
            self._on_port(server.port)
            yield

    def _watch_one(self, watch: ClusterWatch, connection: Connection, launch: SparkLaunch) -> None:
        with watch.cluster_session(connection, self._stop) as cluster_session:
            if not self._stop.is_set():
                with self._shared_resources(launch) as shared, _reporting_spark_end(shared):
                    watch.run(cluster_session, shared, self._stop)

    def _watch_several(self, launch: SparkLaunch) -> None:
        with self._shared_resources(launch) as shared:
            threads = {
                watch: threading.Thread(
                    target=self._keep_watching, args=(watch, shared), name=watch.cluster, daemon=True
                )
                for watch in self._watches
            }
            for thread in threads.values():
                thread.start()
            try:
                while not self._stop.wait(1):
                    if not is_running(shared.session):
                        raise SparkEndedError
            finally:
                self._stop.set()
                for watch, thread in threads.items():
                    while watch.has_session and thread.is_alive():
                        thread.join(0.1)
                    thread.join(_HANG_UP_SECONDS)  # a thread that still connects has nothing to close

    def _keep_watching(self, watch: ClusterWatch, shared: SharedResources) -> None:
        retry_state = RetryState(watch.monitor_state)
        while not self._stop.is_set():
            self._try_watching(watch, shared, retry_state)

    def _try_watching(self, watch: ClusterWatch, shared: SharedResources, retry_state: RetryState) -> None:
        try:
            self._watch_once(watch, shared)
        except Exception as error:  # noqa: BLE001 - the monitor tries again after any error
            if self._stop.is_set():
                return  # the stop came while the cluster was not watched
            is_new, is_expected = retry_state.record_failure(error), isinstance(error, RemedyError)
            if is_new and (is_expected or is_running(shared.session)):  # the end of Spark is logged only once
                trace, cause = (None, error) if is_expected else (error, plain_cause(error))
                _log.error("%s cannot be watched; trying again: %s", watch.cluster, cause, exc_info=trace)
            self._stop.wait(retry_state.pause_seconds)

    def _watch_once(self, watch: ClusterWatch, shared: SharedResources) -> None:
        with closing(watch.connect()) as connection, watch.cluster_session(connection, self._stop) as cluster_session:
            if not self._stop.is_set():
                watch.run(cluster_session, shared, self._stop)
        if not self._stop.is_set():
            raise QueryEndedError("its query was stopped, but not by the monitor")

    @contextmanager
    def _shared_resources(self, launch: SparkLaunch) -> Iterator[SharedResources]:
        settings = self._settings
        check_tables(settings.paths.tables)
        with launched_session(launch, settings.spark.log_level) as session:
            tables = DeltaTables(settings.paths.tables, versions_kept_hours=settings.tables.versions_kept_hours)
            if len(self._watches) > 1:  # with one cluster, its checkpoint is checked before the tables are opened
                tables.open_all()
            with closing(
                Upkeep(tables, settings.tables.retention_days, settings.tables.maintenance_interval_seconds)
            ) as upkeep:
                yield SharedResources(session, tables, upkeep, self._users_references, self._page)


@contextmanager
def _reporting_spark_end(shared: SharedResources) -> Iterator[None]:
    try:
        yield
    except (Py4JError, PySparkException, OSError):
        if is_running(shared.session):
            raise
        raise SparkEndedError from None


def _current_view(watch: ClusterWatch, stale_after_ms: int) -> WatchedCluster:
    view = watch.monitor_state.view()
    full = {} if view.health.ready else full_folders(view.health.folders)
    reports = watch.monitor_state.reports
    return WatchedCluster(watch.cluster, view, view.cluster_ms(now_ms()), stale_after_ms, reports, full)
