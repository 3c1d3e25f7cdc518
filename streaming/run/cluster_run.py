"""Run the watch of one cluster. Each run first restores the stored state of the cluster."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError

from streaming.config.load import Settings
from streaming.config.settings import ADMIN_API_SOURCE
from streaming.config.types.paths import canonical_location
from streaming.delta.on_disk import DeltaTables
from streaming.run.cluster_clock import ClusterClock
from streaming.run.cluster_identity import keep_cluster_id
from streaming.run.first_report import FirstReport
from streaming.run.log_integrity import LogWatch
from streaming.run.poller import Poller
from streaming.run.query.keeper import QueryKeeper
from streaming.run.query.prepare import prepare_checkpoint
from streaming.run.query.restore import restore
from streaming.run.query.table_progress import ProgressFile
from streaming.run.samples.assignors import AssignorRequests
from streaming.run.samples.conditions import GroupConditions, limits_of
from streaming.run.samples.feedback_writer import FeedbackWriter
from streaming.run.samples.incidents import Incidents
from streaming.run.samples.lag.lag_causes import LagCauses
from streaming.run.samples.lag.lag_tables import LagTables
from streaming.run.samples.lag.lag_watch import LagWatch
from streaming.run.samples.lag.retention_settings import RetentionSettings
from streaming.run.samples.readiness import Readiness, log_ends, max_unread_seconds
from streaming.run.samples.reconcile import Reconciler
from streaming.run.samples.sampler import Sampler
from streaming.run.shared_resources import ClusterSession, SharedResources
from streaming.run.writers import WriterClaim
from streaming.sampling.configs import Configs
from streaming.sampling.groups import Groups
from streaming.spark.causes import is_spark_gone, plain_cause
from streaming.spark.checkpoint import raising_checkpoint_errors
from streaming.spark.files import Files
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_state import MonitorState

_log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class ClusterRun:
    """One run of the watch of a cluster. `settings` contains only the settings of this cluster."""

    settings: Settings
    monitor_state: MonitorState
    cluster_session: ClusterSession
    shared: SharedResources
    clock: ClusterClock
    stale_after_seconds: float
    first_report: FirstReport

    def __post_init__(self) -> None:
        """Create the keeper of the query and, only in the polling mode, the poller."""
        self._cluster = self.settings.kafka.cluster
        self._committed_offsets = CommittedOffsets()
        self._files = Files(self.shared.session, self.settings.paths.checkpoint)
        self._limits = limits_of(self.settings.evaluation)
        self._poller = (
            Poller(
                cluster=self._cluster,
                groups=Groups(self.cluster_session.connection, self.clock.now_ms),
                monitor_state=self.monitor_state,
                committed_offsets=self._committed_offsets,
                files=self._files,
                now_ms=self.clock.now_ms,
                interval_seconds=self.settings.sampling.interval_seconds,
                stale_after_seconds=self.stale_after_seconds,
            )
            if self.settings.source.kind == ADMIN_API_SOURCE
            else None
        )
        self._readiness = Readiness(
            self._cluster,
            self._source_is_alive,
            self._poller.targets if self._poller else log_ends,
            1000 * max_unread_seconds(self.settings.source.trigger_seconds),
            1000 * self.settings.sampling.interval_seconds,
            self._poller.start_over if self._poller else lambda: None,
        )
        self._keeper = QueryKeeper(
            settings=self.settings,
            monitor_state=self.monitor_state,
            committed_offsets=self._committed_offsets,
            files=self._files,
            limits=self._limits,
            cluster_session=self.cluster_session,
            shared=self.shared,
            clock=self.clock,
            readiness=self._readiness,
        )

    def run(self, stop: threading.Event) -> None:
        """Watch until `stop` is set. Raises SecondWriterError if a different monitor writes this cluster's rows."""
        paths, session = self.settings.paths, self.shared.session
        place = canonical_location(paths.checkpoint)
        monitor_ms = self.clock.monitor_ms  # monitors compare their start times
        with WriterClaim(lambda: Files(session, paths.tables), self._cluster, place, monitor_ms, stop) as claim:
            self._watch(claim, stop)

    def _watch(self, claim: WriterClaim, stop: threading.Event) -> None:
        session, settings = self.shared.session, self.settings
        with raising_checkpoint_errors(settings.paths.checkpoint):
            tables, bootstrap = prepare_checkpoint(session, settings, self._files, self.shared.tables)
            keep_cluster_id(self.cluster_session.connection, self._files, self._cluster)
            tables.before_append = partial(self._keeper.check, claim)
            tables.on_write_failure = self.monitor_state.count_table_write_failure
            self._keeper.use_partitions(len(self.cluster_session.partitions))
            restore(session, settings, self._files, self.monitor_state, self._committed_offsets)
        lag_watch = LagWatch(
            self._cluster,
            self._committed_offsets,
            self._files,
            self._limits,
            self.cluster_session.brokers,
            self.clock,
            RetentionSettings(self._cluster, Configs(self.cluster_session.connection)),
        )
        lag_watch.restore()
        sampling_stop = threading.Event()
        threads = [
            threading.Thread(target=loop, args=(sampling_stop,), name=f"{name} of {self._cluster}")
            for name, loop in {**self._sampling_loops(tables, lag_watch), "writer": claim.keep}.items()
        ]
        for thread in threads:
            thread.start()
        try:
            self._keeper.keep(tables, bootstrap, claim, stop)
        finally:
            sampling_stop.set()
            self._readiness.report_progress()
            for thread in threads:
                thread.join()
            self._store(lag_watch, ProgressFile(self._cluster, self._files, tables))

    def _store(self, lag_watch: LagWatch, progress_file: ProgressFile) -> None:
        """Store samples and progress. Only log a failure: an exception would hide the error that ended the run."""
        try:
            lag_watch.store()
            progress_file.store()
        except (OSError, Py4JError, DeltaError) as error:
            level = logging.DEBUG if is_spark_gone(error) else logging.WARNING
            _log.log(
                level,
                "%s: the samples or the progress of the tables could not be stored: %s",
                self._cluster,
                plain_cause(error),
            )

    def _sampling_loops(
        self, tables: DeltaTables, lag_watch: LagWatch
    ) -> Mapping[str, Callable[[threading.Event], None]]:
        sampling, cluster, monitor_state = self.settings.sampling, self._cluster, self.monitor_state
        groups = Groups(self.cluster_session.connection, self.clock.now_ms)
        reconciler = Reconciler(cluster, groups, self._committed_offsets, sampling.reconcile_seconds)
        limits_of_each = self.settings.limits_by_group().of_each
        sampler = Sampler(
            cluster=cluster,
            monitor_state=monitor_state,
            groups=groups,
            lag_watch=lag_watch,
            readiness=self._readiness,
            feedback_writer=FeedbackWriter(self._files),
            reconciler=None if self._poller else reconciler,
            assignors=None if self._poller else AssignorRequests(cluster, groups),
            log_watch=LogWatch(cluster, monitor_state, self._files),
            conditions=GroupConditions(cluster, monitor_state, tables, self._limits, limits_of_each),
            lag_causes=LagCauses(cluster, monitor_state, tables),
            incidents=Incidents(cluster, monitor_state, tables),
            lag_tables=LagTables(cluster, monitor_state, tables, sampling.lag_table_seconds),
            upkeep=self.shared.upkeep,
            interval_seconds=sampling.interval_seconds,
        )
        page = f"{self.shared.page}/?cluster={quote(cluster, safe='')}"
        loops: dict[str, Callable[[threading.Event], None]] = {
            "sampler": sampler.run,
            "first report": partial(self.first_report.run, self.cluster_session.connection, page),
        }
        if self._poller:
            loops["poller"] = self._poller.run
        return loops

    def _source_is_alive(self) -> bool:
        return self._keeper.is_alive and (self._poller is None or self._poller.is_fresh())
