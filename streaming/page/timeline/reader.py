"""Reads the timeline of a group from the tables.

1. Each table file contains rows of one date. The reader reads only the files of the window and of the look-back. To
   know the members at the start of the window, it also reads the files of the newest rebalance before the window. If
   the group has no record in the window, its members did not change, and the reader reads no files about them.
2. If `group_lag` has more than `MAX_LAG_ROWS` rows to read, the timeline shows no lag. With more rows, each reload of
   the page would need several seconds of processor time.
3. The reader reads `group_lag` in pieces (`lag_line`). To limit the memory, at most `MAX_READS` requests read timelines
   of a cluster at the same time. Up to `MAX_WAITING_READS` other requests wait. The pages of all further requests show
   an error instead of the timeline.
4. The reader caches a timeline of one hour for 10 s. A longer timeline is cached for at most `MAX_CACHE_SECONDS`.
5. If a table cannot be read, a part of the timeline is missing, and `errors` contains the reason.
6. The window ends now or at a moment in the past. The state of the group at the end of the window comes from the
   `MonitorView` or from the tables.
7. The limit of the lag (`max_lag_seconds`) always comes from the present settings. If the group does not exist now, the
   limit is unknown. Without a known limit, the timeline shows no periods above the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Final, NamedTuple, TypeVar

from deltalake.exceptions import DeltaError

from streaming.delta.cells import timestamp_ms, utc
from streaming.delta.tables import COMMIT_GAPS, GROUP_CONDITIONS, GROUP_GENERATIONS, GROUP_LAG, REBALANCES, Table
from streaming.errors import RemedyError
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.limits import GroupLimits
from streaming.evaluation.report import GroupReport
from streaming.group.snapshot import UNKNOWN
from streaming.page.page_input import READY, WatchedCluster
from streaming.page.recent_answers import ReadLimit, RecentAnswers, TooManyReadsError
from streaming.page.timeline.history import (
    Generation,
    Holding,
    LagPoint,
    MemberRows,
    Span,
    Timeline,
    condition_bars,
    gaps_between,
    silences,
)
from streaming.page.timeline.lag_line import LagLine, Lags
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
_TOO_MANY_READS: Final = (
    "The timeline is not shown, because too many requests read timelines now. Reload the page in a few seconds."
)

_Key = tuple[str, str, int | None]
"""The group, the span and the end of the window. The end is None if the window ends now."""
Value = TypeVar("Value")
Other = TypeVar("Other")


class TimelineReader:
    """Reads the tables in the folder `root`. `monotonic_seconds` is a clock that never goes backwards."""

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
        return self._cached((group_id, span, None), window, lambda: _present_group(watched, report))

    def read_past(self, past: PastGroup, limits: GroupLimits | None, at_ms: int, span: str) -> Timeline:
        """Return the timeline that ends at a moment in the past. `limits` are the present limits of the group."""
        window = Window(at_ms - SPANS[span], at_ms, ends_now=False)
        return self._cached((past.report.group_id, span, at_ms), window, lambda: _past_group(past, limits))

    def _cached(self, key: _Key, window: Window, at_end: Callable[[], _GroupAtEnd]) -> Timeline:
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
            unknown = MemberRows(unknown=(Span(window.from_ms, window.to_ms),))
            return Timeline(span, window, marks=None, members=unknown, errors=(_TOO_MANY_READS,))


class _GroupAtEnd(NamedTuple):
    """What is known about a group at the end of the window (rule 6). None means unknown.

    `conditions` are active at the end of the window. If the active conditions are unknown, `conditions` is empty.
    `last_record_ms` is the time of the group's last record. `rebalances_ms` are the times of the group's last
    rebalances. `sampled_ms` is the time of the last sample, if the cluster is ready and the window ends now.
    """

    report: GroupReport
    members: tuple[Holding, ...] | None
    last_record_ms: int | None
    rebalances_ms: Sequence[int]
    lag: Lags | None
    max_lag_seconds: float | None
    sampled_ms: int | None = None
    conditions: Sequence[Condition] = ()


def _present_group(watched: WatchedCluster, report: GroupReport) -> _GroupAtEnd:
    view, record = watched.view, watched.view.groups.get(report.group_id)
    position = record.snapshot.position if record else None
    lag = None
    if watched.lag is not None and not report.is_blocked:
        lag = watched.lag.by_partition.get(report.group_id, {})
    is_ready = watched.phase == READY
    return _GroupAtEnd(
        report=report,
        members=None if report.members.snapshot is None else _holdings(report),
        last_record_ms=position.timestamp_ms if position else None,
        rebalances_ms=[one.timestamp_ms for one in record.rebalance_history.recent] if record else (),
        lag=lag,
        max_lag_seconds=report.limits.max_lag_seconds,
        sampled_ms=view.sample.sampled_at_ms if is_ready and view.sample else None,
        conditions=report.conditions if is_ready else (),
    )


def _past_group(past: PastGroup, limits: GroupLimits | None) -> _GroupAtEnd:
    report = past.report
    lag = {(one.topic, one.partition): one.lag for one in past.partitions}
    return _GroupAtEnd(
        report=report,
        members=_holdings(report),
        last_record_ms=report.membership.record_timestamp_ms,
        rebalances_ms=[timestamp_ms(row["record_time"]) for row in past.rebalances],
        lag=lag if past.measurement.is_recent and not report.is_blocked else None,
        max_lag_seconds=limits.max_lag_seconds if limits else None,
        conditions=report.conditions,
    )


def _holdings(report: GroupReport) -> tuple[Holding, ...] | None:
    if report.membership.state == UNKNOWN:
        return None
    return tuple(
        Holding(one.member_id, one.name, one.client_host, None if one.assigned is None else len(one.assigned))
        for one in report.members.each
    )


class _LagHistory(NamedTuple):
    """`proved_until_ms` is the time of the last measurement in the tables."""

    points: tuple[LagPoint, ...] = ()
    last: LagPoint | None = None
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

    def timeline(self, group: _GroupAtEnd) -> Timeline:
        window, tables = self._window, self._tables
        marks = self._read(REBALANCES, lambda: tables.marks(window), None)
        gaps = gaps_between(self._read(COMMIT_GAPS, lambda: tables.gaps(window), ()), window)
        generations = self._generations(group)
        lag = self._lag(group.lag, group.max_lag_seconds)
        measured_ms = max((one for one in (lag.proved_until_ms, group.sampled_ms) if one is not None), default=None)
        active = [(one.name, one.since_ms, one.detail) for one in group.conditions]
        rows = self._read(GROUP_CONDITIONS, lambda: tables.conditions(window), ())
        if self._unreadable:
            names = ", ".join(self._unreadable)
            text = f"Parts of the timeline are missing, because these tables cannot be read: {names}."
            self._errors.insert(0, text)
        return Timeline(
            span=self._span,
            window=window,
            marks=None if marks is None else tuple(marks),
            gaps=gaps,
            conditions=condition_bars(rows, active, lag.proved_until_ms or window.from_ms, lag.silences, window),
            members=member_rows(generations, window),
            lag=lag.points,
            last_lag=lag.last,
            silences=lag.silences,
            above_limit=lag.above_limit,
            max_lag_seconds=group.max_lag_seconds,
            measured_ms=measured_ms if measured_ms is not None and measured_ms >= window.from_ms else None,
            errors=tuple(self._errors),
        )

    def _generations(self, group: _GroupAtEnd) -> Sequence[Generation]:
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
        return self._read(
            GROUP_LAG,
            lambda: self._lag_line(present, limit_seconds, measured_ms, silent),
            _LagHistory(silences=silent, proved_until_ms=max(measured_ms, default=None)),
        )

    def _lag_line(
        self, present: Lags | None, limit_seconds: float | None, measured_ms: Sequence[int], silent: Sequence[Span]
    ) -> _LagHistory:
        """Compute the lag and the periods above the limit. Only one piece of the rows is in memory at a time."""
        window = self._window
        partitions, pieces = self._tables.lag(window)
        line = LagLine(partitions, present, window)
        late = None if limit_seconds is None else LateTimes(partitions, limit_seconds, present, window, measured_ms)
        for rows in pieces:
            line.add(rows)
            if late is not None:
                late.add(rows)
        points, last = line.points(silent)
        above_limit = late.spans(silent) if late is not None else ()
        return _LagHistory(points, last, above_limit, tuple(silent), max(measured_ms, default=None))

    def _read(self, table: Table, query: Callable[[], Value], otherwise: Other) -> Value | Other:
        try:
            return query()
        except (RemedyError, DeltaError, OSError, ValueError):
            if table.name not in self._unreadable:
                self._unreadable.append(table.name)
            return otherwise
