"""What every page is made from: one consistent present, the time, and how far both can be trusted.

1. `catching_up`: the log was never read to its end since the start. No verdict is shown, only how far reading is.
2. `stale`: the last sample of the brokers is older than `stale_after_ms`, or there is none. What rests on it (lag,
   status, listings, conditions) is unknown; members and assignments are as they were last read.
3. `not_ready`: the present is shown, but the query failed or brokers did not answer at last.
4. `ready`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from streaming.state.monitor_view import MonitorView
from streaming.state.reports import ReportCache, Reports


class AllReports(Protocol):
    """Who makes the reports of a present."""

    def __call__(self, view: MonitorView, *, is_fresh: bool) -> Reports:
        """Every group's."""


CATCHING_UP, STALE, NOT_READY, READY = "catching_up", "stale", "not_ready", "ready"


@dataclass(frozen=True, slots=True)
class Watched:
    """One cluster as of `now_ms`."""

    cluster: str
    view: MonitorView
    now_ms: int
    stale_after_ms: int
    all_reports: AllReports = field(default_factory=lambda: ReportCache().reports)

    @property
    def reports(self) -> Reports:
        """All its groups."""
        return self.all_reports(self.view, is_fresh=self.is_fresh)

    @property
    def phase(self) -> str:
        """The first of the four above that applies."""
        if not self.view.health.was_ready:
            return CATCHING_UP
        if not self.is_fresh:
            return STALE
        return READY if self.view.health.ready else NOT_READY

    @property
    def is_fresh(self) -> bool:
        """Whether the last sample is the present."""
        age_ms = self.sample_age_ms
        return age_ms is not None and age_ms <= self.stale_after_ms

    @property
    def sample_age_ms(self) -> int | None:
        """How old the last sample is; None before the first. A clock that was set back makes it no younger than new."""
        sample = self.view.sample
        return None if sample is None else max(0, self.now_ms - sample.sampled_at_ms)

    def records_behind(self) -> int | None:
        """Records of `__consumer_offsets` not read yet, up to the last stable offset; None where no end was sampled."""
        sample, positions = self.view.sample, self.view.health.positions
        if sample is None or not sample.offsets_topic:
            return None
        return sum(
            max(0, ends.last_stable_offset - positions.get(number, 0)) for number, ends in sample.offsets_topic.items()
        )

    def records_read(self) -> int:
        """Records read since the monitor's tables began, of any kind."""
        return sum(
            sum(partition_state.records_read.values()) for partition_state in self.view.partition_states.values()
        )
