"""One run of a watch: what is known of the cluster so far is restored anew for each."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from py4j.protocol import Py4JError

from streaming.config.load import Settings
from streaming.config.settings import ADMIN_API_SOURCE
from streaming.delta.on_disk import DeltaTables
from streaming.evaluation.lag.lag import ClusterSample
from streaming.run.cluster_clock import ClusterClock
from streaming.run.continuity import LogWatch
from streaming.run.ground import Ground, Reached
from streaming.run.poller import Poller
from streaming.run.query.keeper import QueryKeeper
from streaming.run.query.prepare import prepare_checkpoint
from streaming.run.query.restore import restore
from streaming.run.samples.conditions import GroupConditions, limits_of
from streaming.run.samples.feedback import Feedback
from streaming.run.samples.hand_back import HandBack
from streaming.run.samples.lag_tables import LagTables
from streaming.run.samples.lag_watch import LagWatch
from streaming.run.samples.readiness import Readiness, log_ends
from streaming.run.samples.reconcile import Reconciler
from streaming.run.samples.sampler import AfterSample, Sampler
from streaming.run.writers import WriterClaim
from streaming.sampling.groups import Groups
from streaming.spark.causes import is_spark_gone, plain_cause
from streaming.spark.checkpoint import canonical_place, naming_refusals
from streaming.spark.files import Files
from streaming.state.commit_book import CommitBook
from streaming.state.registry import Registry

_log = logging.getLogger(__name__)


class ClusterRun:
    """One cluster from its checkpoint to its stop. `settings` are those of this cluster as if it were the only one."""

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
        is_polled = settings.source.kind == ADMIN_API_SOURCE
        self._poller = self._make_poller(stale_after_seconds) if is_polled else None
        self._readiness = Readiness(self._source_is_alive, self._polled_targets if is_polled else log_ends)
        self._keeper = QueryKeeper(
            settings=settings,
            registry=registry,
            book=self._book,
            files=self._files,
            limits=self._limits,
            reached=reached,
            ground=ground,
            clock=clock,
            readiness=self._readiness,
        )

    def run(self, stop: threading.Event) -> None:
        """Watch until `stop` is set. Raises SecondWriterError if another monitor writes the cluster's rows."""
        paths, session = self._settings.paths, self._ground.session
        place = canonical_place(paths.checkpoint)
        monitor_ms = self._clock.monitor_ms  # claims are compared between monitors
        with WriterClaim(lambda: Files(session, paths.tables), self._cluster, place, monitor_ms, stop) as claim:
            self._watch(claim, stop)

    def _watch(self, claim: WriterClaim, stop: threading.Event) -> None:
        """Prepare, restore, and keep query and beats going until `stop` is set."""
        session, settings = self._ground.session, self._settings
        with naming_refusals(settings.paths.checkpoint):
            tables, origin = prepare_checkpoint(session, settings, self._files, self._ground.tables)
            self._keeper.use_partitions(len(self._reached.partitions))
            restore(session, settings, self._files, self._registry, self._book)
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
            self._keeper.keep(tables, origin, claim, stop)
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
        sampling, cluster, registry = self._settings.sampling, self._cluster, self._registry
        groups = Groups(self._reached.connection, self._clock.now_ms)
        reconciler = None if self._poller else Reconciler(cluster, groups, self._book, sampling.reconcile_seconds)
        sampler = Sampler(
            cluster=cluster,
            registry=registry,
            groups=groups,
            lag_watch=lag_watch,
            readiness=self._readiness,
            after=AfterSample(
                Feedback(HandBack(self._files), reconciler),
                LogWatch(cluster, registry, self._files),
                GroupConditions(cluster, registry, tables, self._limits),
                LagTables(cluster, registry, tables, sampling.lag_table_seconds),
                self._ground.upkeep,
            ),
            interval_seconds=sampling.interval_seconds,
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

    def _source_is_alive(self) -> bool:
        return self._keeper.is_alive and (self._poller is None or self._poller.is_fresh())

    def _polled_targets(self, sample: ClusterSample) -> Mapping[int, int] | None:
        return None if self._poller is None else self._poller.targets(sample)
