"""Reads the timeline of a group from the tables.

1. Each table file contains rows of one date. The reader reads only the files of the window and of the look-back. To
   know the members at the start of the window, the reader also reads the files of the newest rebalance before the
   window. If the group has no record in the window, its members did not change. Then the reader reads no files about
   the members.
2. If the table `group_lag` has too many rows to read (`MAX_LAG_ROWS`), the timeline shows no lag. With more rows, each
   reload of the page would need several seconds of processor time.
3. The reader reads `group_lag` in pieces, because the rows of one large group need several GB of memory. To limit the
   memory, at most `MAX_READS` requests read timelines of a cluster at the same time. Up to `MAX_WAITING_READS` other
   requests wait. The pages of all further requests show an error instead of the timeline.
4. The reader caches a timeline of one hour for 10 s. A longer timeline is cached for at most `MAX_CACHE_SECONDS`.
5. If a table cannot be read, a part of the timeline is missing, and `errors` contains the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Final, NamedTuple, TypeVar

from deltalake.exceptions import DeltaError

from streaming.delta.cells import utc
from streaming.delta.tables import COMMIT_GAPS, GROUP_CONDITIONS, GROUP_GENERATIONS, GROUP_LAG, REBALANCES, Table
from streaming.errors import RemedyError
from streaming.evaluation.limits import GroupLimits
from streaming.page.page_input import WatchedCluster
from streaming.page.recent_answers import ReadLimit, RecentAnswers, TooManyReadsError
from streaming.page.timeline.group_at_end import GroupAtEnd, past_group, present_group
from streaming.page.timeline.history import (
    Generation,
    LagPoint,
    MemberRows,
    Span,
    Timeline,
    condition_bars,
    gaps_between,
    silences,
)
from streaming.page.timeline.lag_line import LagLine
from streaming.page.timeline.lag_rows import Lags
from streaming.page.timeline.late_times import LateTimes
from streaming.page.timeline.member_rows import member_rows
from streaming.page.timeline.queries import GroupTables
from streaming.page.timeline.window import SPANS, Window, utc_date
from streaming.past.report import PastGroup
from streaming.past.silence import LOOK_BACK_MS

MAX_LAG_ROWS: Final = 50_000_000
MAX_READS: Final = 2
MAX_WAITING_READS: Final = 4
MAX_CACHE_SECONDS: Final = 60.0
_CACHED_SHARE: Final = 360

_Key = tuple[str, str, int | None]
"""The group, the span and the end of the window. The end is None if the window ends now."""
Value = TypeVar("Value")
Other = TypeVar("Other")


class TimelineReader:
    """Reads the tables in the folder `root`.

    `monotonic_seconds` returns the time of a clock that never goes backwards.
    """

    def __init__(self, root: str, cluster: str, monotonic_seconds: Callable[[], float]) -> None:
        self._root = root
        self._cluster = cluster
        self._recent = RecentAnswers[_Key, Timeline](monotonic_seconds)
        self._limit = ReadLimit(MAX_READS, MAX_WAITING_READS)

    def read(self, watched: WatchedCluster, group_id: str, span: str) -> Timeline | None:
        """Return the timeline that ends now. Return None if the group does not exist."""
        report = watched.reports.get(group_id)
        if report is None:
            return None
        window = Window(watched.now_ms - SPANS[span], watched.now_ms)
        return self._cached((group_id, span, None), window, lambda: present_group(watched, report))

    def read_past(self, past: PastGroup, limits: GroupLimits | None, at_ms: int, span: str) -> Timeline:
        """Return the timeline that ends at a moment in the past. `limits` are the present limits of the group."""
        window = Window(at_ms - SPANS[span], at_ms, ends_now=False)
        return self._cached((past.report.group_id, span, at_ms), window, lambda: past_group(past, limits))

    def _cached(self, key: _Key, window: Window, at_end: Callable[[], GroupAtEnd]) -> Timeline:
        known = self._recent.known(key)
        if known is not None:
            return known
        group_id, span, _ = key
        tables = GroupTables(self._root, self._cluster, group_id)
        valid_seconds = min(MAX_CACHE_SECONDS, SPANS[span] / 1000 / _CACHED_SHARE)
        try:
            with self._limit.place():
                return self._recent.get(key, valid_seconds, lambda: _Reading(tables, span, window).timeline(at_end()))
        except TooManyReadsError:
            return _not_read(span, window)


class _LagHistory(NamedTuple):
    """`proved_until_ms` is the time of the last measurement in the tables."""

    points: tuple[LagPoint, ...] = ()
    above_limit: tuple[Span, ...] = ()
    silences: tuple[Span, ...] = ()
    proved_until_ms: int | None = None


class _Reading:
    """One read of all tables. `_unreadable` lists the unreadable tables. `_errors` contains all other errors."""

    def __init__(self, tables: GroupTables, span: str, window: Window) -> None:
        self._tables = tables
        self._span = span
        self._window = window
        self._unreadable: list[str] = []
        self._errors: list[str] = []

    def timeline(self, group: GroupAtEnd) -> Timeline:
        window, tables = self._window, self._tables
        marks = self._read(REBALANCES, lambda: tables.marks(window), None)
        gaps = gaps_between(self._read(COMMIT_GAPS, lambda: tables.gaps(window), ()), window)
        generations = self._generations(group)
        lag = self._lag(group.lag, group.max_lag_seconds)
        measured_ms = max((one for one in (lag.proved_until_ms, group.sampled_ms) if one is not None), default=None)
        active = [(one.name, one.since_ms, one.detail) for one in group.report.conditions]
        rows = self._read(GROUP_CONDITIONS, lambda: tables.conditions(window), ())
        return Timeline(
            span=self._span,
            window=window,
            marks=None if marks is None else tuple(marks),
            gaps=gaps,
            conditions=condition_bars(rows, active, lag.proved_until_ms or window.from_ms, window),
            members=member_rows(generations, window),
            lag=lag.points,
            silences=lag.silences,
            above_limit=lag.above_limit,
            max_lag_seconds=group.max_lag_seconds,
            measured_ms=measured_ms if measured_ms is not None and measured_ms >= window.from_ms else None,
            errors=(*self._table_errors(), *self._errors),
        )

    def _generations(self, group: GroupAtEnd) -> Sequence[Generation]:
        last_ms, from_ms = group.last_record_ms, self._window.from_ms
        if last_ms is None:
            return ()
        if last_ms < from_ms:
            return [Generation(last_ms, group.members)]
        before = [at_ms for at_ms in group.rebalances_ms if at_ms < from_ms]
        newest = utc(max(before, default=from_ms)).date()
        earlier: Sequence[date] = (newest, newest + timedelta(1), utc_date(from_ms) - timedelta(1))
        return self._read(GROUP_GENERATIONS, lambda: self._tables.generations(self._window, earlier), ())

    def _lag(self, present: Lags | None, limit_seconds: float | None) -> _LagHistory:
        read = self._window.extend(LOOK_BACK_MS)
        stored = self._read(GROUP_LAG, lambda: self._tables.lag_rows_stored(read), None)
        if stored is None:
            return _LagHistory()
        if stored > MAX_LAG_ROWS:
            self._errors.append(
                f"The lag is not shown, because the table group_lag contains {stored:,} rows for this time range."
                " Select a shorter time range."
            )
            return _LagHistory()
        measured_ms = self._read(GROUP_LAG, lambda: self._tables.measured_ms(read), ())
        silent = silences(measured_ms, self._window)
        points, above_limit = self._read(
            GROUP_LAG, lambda: self._lag_line(present, limit_seconds, measured_ms, silent), ((), ())
        )
        return _LagHistory(points, above_limit, silent, max(measured_ms, default=None))

    def _lag_line(
        self, present: Lags | None, limit_seconds: float | None, measured_ms: Sequence[int], silent: Sequence[Span]
    ) -> tuple[tuple[LagPoint, ...], tuple[Span, ...]]:
        """Return the lag and the periods above the limit. Only one piece of the rows is in memory at a time."""
        window = self._window
        partitions, pieces = self._tables.lag(window)
        line = LagLine(partitions, present, window)
        late = None if limit_seconds is None else LateTimes(partitions, limit_seconds, present, window, measured_ms)
        for rows in pieces:
            line.add(rows)
            if late is not None:
                late.add(rows)
        return line.points(silent), late.spans(silent) if late is not None else ()

    def _read(self, table: Table, query: Callable[[], Value], otherwise: Other) -> Value | Other:
        try:
            return query()
        except (RemedyError, DeltaError, OSError, ValueError):
            if table.name not in self._unreadable:
                self._unreadable.append(table.name)
            return otherwise

    def _table_errors(self) -> Sequence[str]:
        if not self._unreadable:
            return ()
        return [
            f"Parts of the timeline are missing, because these tables cannot be read: {', '.join(self._unreadable)}."
        ]


def _not_read(span: str, window: Window) -> Timeline:
    """Return a timeline that contains only an error: too many requests wait (rule 3)."""
    error = "The timeline is not shown, because too many requests read timelines now. Reload the page in a few seconds."
    unknown = MemberRows(unknown=(Span(window.from_ms, window.to_ms),))
    return Timeline(span, window, marks=None, members=unknown, errors=(error,))
