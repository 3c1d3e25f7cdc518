"""Defines the input of every page: a consistent view of one cluster, the current time and the phase.

The phase is the first of the following phases that applies:

1. `catching_up`: after its start, the monitor is still reading `__consumer_offsets`. The page shows only the progress.
   In the polling mode, the first poll of all groups is not complete.
2. `stale`: the last sample of the brokers is older than `stale_after_ms`, or there is no sample. Values from samples
   (lag, status, conditions, the brokers' list of groups) are unknown. Members and assignments come from the last record
   of each group.
3. `not_ready`: the query failed or has fallen behind, the brokers did not answer, or a partition of
   `__consumer_offsets` has no leader. In the polling mode, the query does not fall behind. Instead, the last complete
   poll is too old. New commits can be missing, so the lag is unknown.
4. `ready`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from streaming.config.settings import ADMIN_API_SOURCE
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.state.monitor_view import MonitorView
from streaming.state.reports import ReportCache, Reports


class ReportSource(Protocol):
    """Computes the reports of all groups in a view."""

    def __call__(self, view: MonitorView, *, is_fresh: bool) -> Reports: ...  # noqa: D102 - see the class


CATCHING_UP, STALE, NOT_READY, READY = "catching_up", "stale", "not_ready", "ready"

_PHASE_WORDS = {
    CATCHING_UP: "the monitor is still reading __consumer_offsets after its start",
    STALE: "the last sample of the brokers is too old",
    NOT_READY: "the monitor has not read all of __consumer_offsets, cannot read a table, or waits for a broker",
}
_POLLED_PHASE_WORDS = _PHASE_WORDS | {
    CATCHING_UP: "the monitor has not polled all groups since its start",
    NOT_READY: "the monitor has not polled all groups, cannot read a table, or waits for a broker",
}


@dataclass(frozen=True, slots=True)
class WatchedCluster:
    """One cluster, as the monitor knows it at the time `now_ms`.

    `full_folders` maps names of settings in `[paths]` to folders. It contains only folders whose disk is full. It is
    empty if the cluster is ready.
    """

    cluster: str
    view: MonitorView
    now_ms: int
    stale_after_ms: int
    all_reports: ReportSource = field(default_factory=lambda: ReportCache().reports)
    full_folders: Mapping[str, str] = field(default_factory=dict)

    @property
    def reports(self) -> Reports:
        """The reports of all groups."""
        return self.all_reports(self.view, is_fresh=self.is_fresh)

    @property
    def phase(self) -> str:
        """The phase of the cluster (rules 1 to 4)."""
        if not self.view.health.was_ready:
            return CATCHING_UP
        if not self.is_fresh:
            return STALE
        return READY if self.view.health.ready else NOT_READY

    @property
    def why_not_ready(self) -> str:
        """The reason why the cluster is not ready, without names of groups or clusters. Empty if it is ready."""
        if self.phase == READY:
            return ""
        if self.full_folders:
            settings = " and ".join(f"paths.{name}" for name in sorted(self.full_folders))
            return f"the disk with the folder {settings} is full: make space on this disk"
        if self.view.health.waits_for_topic:
            return "the cluster has no topic __consumer_offsets yet, or hides it"
        return (_POLLED_PHASE_WORDS if self.is_polled else _PHASE_WORDS)[self.phase]

    @property
    def is_polled(self) -> bool:
        """True in the polling mode. The monitor then reads no record of `__consumer_offsets`."""
        return self.view.health.source == ADMIN_API_SOURCE

    @property
    def is_fresh(self) -> bool:
        """True if there is a sample and the age of the sample is at most `stale_after_ms`."""
        age_ms = self.sample_age_ms
        return age_ms is not None and age_ms <= self.stale_after_ms

    @property
    def lag(self) -> LagEvaluation | None:
        """The lag of all groups at the last sample. Return None if the lag is unknown."""
        return self.view.lag if self.is_lag_known else None

    @property
    def is_lag_known(self) -> bool:
        """True if the last sample is fresh and no commits are missing."""
        return self.is_fresh and self.view.health.ready

    @property
    def sample_age_ms(self) -> int | None:
        """Age of the last sample, or None. The age is at least 0, even after somebody sets the clock back."""
        sample = self.view.sample
        return None if sample is None else max(0, self.now_ms - sample.sampled_at_ms)

    def records_behind(self) -> int | None:
        """Return the number of unread records of `__consumer_offsets` up to the last stable offset.

        Return None if the end of `__consumer_offsets` was not sampled.
        """
        sample, positions = self.view.sample, self.view.health.positions
        if sample is None or not sample.offsets_topic:
            return None
        ends = sample.offsets_topic.items()
        return sum(max(0, end.last_stable_offset - positions.get(number, 0)) for number, end in ends)

    def records_read(self) -> int:
        """Return the number of all records that the monitor has read since this checkpoint was created."""
        return sum(sum(one.records_read.values()) for one in self.view.partition_states.values())
