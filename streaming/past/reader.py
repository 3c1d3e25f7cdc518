"""Reads the state of groups at a past moment from the tables.

1. Each value comes from the last record at or before the moment. If several records have the same time, the record with
   the highest position is the last record. No table contains duplicate rows for a record, even after a start with a new
   checkpoint (`run/query/prepare.py`).
2. The list of groups does not contain a group that ended before the moment. The report of a group that ended has the
   state Dead or Gone. But a client that uses `assign()` can commit again after Kafka deleted the group. Such commits
   write no record of the group. So if `group_lag` has a later row of the group, the group only commits offsets, and the
   row of its end is ignored.
3. The maintenance deletes old rows, even the last row of a group. So if a group has no row, nothing is known about the
   group.
4. The verdict and the distribution of partitions in a report are for the generation that the report shows. If the
   tables have no verdict for this generation, it is unknown. In the polling mode (`source.kind = "admin-api"`), a
   classic group has no generation id. Then both values are for the record that the report shows.
5. No row contains a name with a lone surrogate, so the reader does not search for such a name.
6. Conditions, causes of lag and incidents are unknown at a moment without measurements (`silence.py`). They may have
   ended while the monitor did not run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta

from streaming.delta.cells import LAST_MS, timestamp_ms, utc
from streaming.delta.incident_rows import restore_incident
from streaming.delta.stored import (
    covered_times,
    has_rows,
    last_rows,
    last_sampled_time,
    latest_rows,
    sampled_times,
    stored_rows,
)
from streaming.delta.stored_table import NoTableError, is_storable
from streaming.delta.tables import (
    ASSIGNMENT_DRIFT,
    ASSIGNMENT_IMBALANCE,
    COMMIT_GAPS,
    GROUP_CONDITIONS,
    GROUP_GENERATIONS,
    GROUP_LAG,
    INCIDENTS,
    LAG_CAUSES,
    PARTITION_STATUS,
    REBALANCES,
    Table,
)
from streaming.evaluation.fairness.imbalance import PARTITIONS
from streaming.evaluation.fairness.participants import MEMBER
from streaming.evaluation.incidents.incident import Incident, incident_by_group
from streaming.evaluation.rebalances.rebalance_words import with_commit_gaps, without_upgrade_tombstones
from streaming.evaluation.report import GroupReport
from streaming.group.snapshot import OVER
from streaming.past.commit_gaps import ended_gaps
from streaming.past.comparison import Comparison, compare
from streaming.past.coverage import Coverage
from streaming.past.lag import group_lags_of, past_partitions, without_ends_before_commits
from streaming.past.moments import Generation
from streaming.past.partition import PastPartition
from streaming.past.report import Findings, GroupRows, PastGroup, past_report, past_reports
from streaming.past.rows import Row, condition, is_of_generation, position
from streaming.past.silence import LOOK_BACK_MS, Measurement, is_measured

MAX_REBALANCES = 20
MAX_COMPARED_REBALANCES = 100
_MOST_STRATEGIES = 100
_GROUP, _PARTITION = ("group_id",), ("group_id", "topic", "partition")
_LAG_COLUMNS = (
    "sampled_time",
    *_PARTITION,
    "committed_offset",
    "end_offset",
    "lag",
    "unknown_reason",
    "lag_seconds",
    "lag_seconds_kind",
)
_STATUS_COLUMNS = ("sampled_time", *_PARTITION, "status", "records_lost")
_POSITION = ("offsets_topic_partition", "offsets_topic_offset", "record_time")
_GENERATION_COLUMNS = (
    *_POSITION,
    "group_id",
    "group_type",
    "state",
    "generation_id",
    "protocol_type",
    "protocol",
    "protocol_source",
    "not_known",
    "rebalances_total",
)
_REBALANCE_COLUMNS = (*_POSITION, "group_id", "members")
_DRIFT_COLUMNS = (
    *_POSITION,
    "group_id",
    "generation_id",
    "strategy",
    "is_group_strategy",
    "verdict",
    "reason",
    "drift_partitions",
    "violations",
    "assigned_by",
)


class PastReader:
    """Reads the tables of one cluster in the folder `root`.

    Methods raise NoTableError if the table `group_generations` does not exist. Any other table can be missing, because
    earlier versions of the monitor did not write all tables. Values from a missing table are unknown.
    """

    def __init__(self, root: str, cluster: str) -> None:
        self._root = root
        self._cluster = cluster
        self._measurements: dict[int, Measurement] = {}

    def coverage(self) -> Coverage:
        """Return the first and the last moment that the tables cover."""
        times = [covered_times(self._root, GROUP_GENERATIONS, self._cluster)]
        with suppress(NoTableError):
            times.append(covered_times(self._root, GROUP_LAG, self._cluster))
        known = [each for each in times if each is not None]
        if not known:
            return Coverage()
        return Coverage(timestamp_ms(min(first for first, _ in known)), timestamp_ms(max(last for _, last in known)))

    def group(self, group_id: str, at_ms: int) -> PastGroup | None:
        """Return one group at a moment. Return None if the tables have no row of this group (rule 3)."""
        if not is_storable(group_id):
            return None
        until = utc(at_ms)
        partitions = self._partitions(until, group_id).get(group_id, ())
        generation = without_ends_before_commits(
            self._latest(GROUP_GENERATIONS, 1, until, group_id=group_id), {group_id: partitions}
        )
        if not generation and not partitions:
            return None
        row = generation[0] if generation else None
        rows = GroupRows(
            generation=row,
            drifts=self._last_evaluated(ASSIGNMENT_DRIFT, row, until),
            imbalances=self._last_evaluated(ASSIGNMENT_IMBALANCE, row, until, measure=PARTITIONS, scope=MEMBER),
        )
        rebalances = self._rebalances(group_id, until, MAX_REBALANCES)
        gaps = ended_gaps(self._gaps(group_id, rebalances), rebalances, until)
        measurement, last = self.measurement(at_ms), self._findings(group_id, at_ms)
        findings = last if measurement.is_recent else Findings()
        report = past_report(group_id, rows, group_lags_of({group_id: partitions}).get(group_id), findings)
        return PastGroup(
            report,
            partitions=() if report.membership.state in OVER else partitions,
            rebalances=with_commit_gaps(rebalances, gaps),
            measurement=measurement,
            findings=findings,
            last_findings=None if measurement.is_recent else last,
        )

    def measurement(self, at_ms: int) -> Measurement:
        """Return the last measurement of the cluster at or before a moment. Results are cached."""
        if at_ms not in self._measurements:
            until, since = utc(at_ms), utc(max(0, at_ms - LOOK_BACK_MS))
            try:
                times = sampled_times(self._root, GROUP_LAG, since, until, self._cluster)
                last = times[-1] if times else last_sampled_time(self._root, GROUP_LAG, until, self._cluster)
            except NoTableError:
                times, last = (), None
            is_recent = is_measured([timestamp_ms(one) for one in times], at_ms)
            self._measurements[at_ms] = Measurement(None if last is None else timestamp_ms(last), is_recent)
        return self._measurements[at_ms]

    def _findings(self, group_id: str, at_ms: int) -> Findings:
        until = utc(at_ms)
        conditions = self._active(GROUP_CONDITIONS, ("group_id", "condition"), until, group_id)
        causes = self._active(LAG_CAUSES, _GROUP, until, group_id)
        return Findings(
            tuple(condition(row) for row in conditions),
            causes[0] if causes else None,
            self._incidents(at_ms).get(group_id),
        )

    def _incidents(self, at_ms: int) -> Mapping[str, Incident]:
        """For each group, return the oldest open incident."""
        last_ms = self.measurement(at_ms).last_ms
        if last_ms is None:
            return {}
        today = utc(last_ms).date()
        dates = {today, today - timedelta(days=1)}  # each open incident has a row on one of these dates
        rows = self._active(INCIDENTS, ("incident_id",), utc(at_ms), dates=dates)
        return incident_by_group(restore_incident({**row}) for row in rows)

    def groups(self, at_ms: int) -> Sequence[GroupReport]:
        """Return the reports of all groups that existed at a moment, in any order. The reports contain no members."""
        until = utc(at_ms)
        partitions = self._partitions(until)
        is_recent = self.measurement(at_ms).is_recent
        return past_reports(
            generations=without_ends_before_commits(
                self._last(GROUP_GENERATIONS, _GROUP, until, _GENERATION_COLUMNS), partitions
            ),
            rebalances=self._last(REBALANCES, _GROUP, until, _REBALANCE_COLUMNS),
            drifts=self._last(ASSIGNMENT_DRIFT, _GROUP, until, _DRIFT_COLUMNS, is_group_strategy=True),
            imbalances=self._last(ASSIGNMENT_IMBALANCE, _GROUP, until, measure=PARTITIONS, scope=MEMBER),
            conditions=self._active(GROUP_CONDITIONS, ("group_id", "condition"), until) if is_recent else (),
            lags=group_lags_of(partitions),
            incidents=self._incidents(at_ms) if is_recent else {},
        )

    def causes(self, at_ms: int) -> Mapping[str, Row]:
        """Return the row of each group's active cause of lag. Empty if the last measurement is too old (rule 6)."""
        if not self.measurement(at_ms).is_recent:
            return {}
        return {row["group_id"]: row for row in self._active(LAG_CAUSES, _GROUP, utc(at_ms))}

    def compare(self, group_id: str, one: int | Generation, other: int | Generation) -> Comparison | None:
        """Compare two generations of a group. A moment selects the last row at or before the moment.

        Return None if the tables have no row for one of the two generations.
        """
        if not is_storable(group_id):
            return None
        found = [self.generation(group_id, which) for which in (one, other)]
        rows = [row for row in found if row is not None]
        if len(rows) < len(found):
            return None
        before, after = sorted(rows, key=position)
        last = self._rebalances(group_id, after["record_time"], MAX_COMPARED_REBALANCES + 1)
        between = [row for row in last if position(before) < position(row) <= position(after)]
        has_more = len(last) > MAX_COMPARED_REBALANCES and position(before) < position(last[-1])
        between = between[:MAX_COMPARED_REBALANCES]
        between = [*with_commit_gaps(between, self._gaps(group_id, between))]
        return compare(before, after, between, has_more_rebalances=has_more)

    def _last_evaluated(self, table: Table, generation: Row | None, until: datetime, **equal: str) -> Sequence[Row]:
        """Return the rows of the last evaluated record, one per strategy.

        If this record is of another generation, return no rows (rule 4).
        """
        if generation is None:
            return ()
        rows = self._latest(table, _MOST_STRATEGIES, until, group_id=generation["group_id"], **equal)
        last = [row for row in rows if position(row) == position(rows[0])]
        return [row for row in last if is_of_generation(row, generation)]

    def generation(self, group_id: str, which: int | Generation) -> Row | None:
        """Return the last row of a generation, or the last row at or before a moment. Return None if there is none."""
        if isinstance(which, Generation):
            number = which.generation_id
            rows = self._latest(GROUP_GENERATIONS, 1, utc(LAST_MS), OVER, group_id=group_id, generation_id=number)
        else:
            rows = self._latest(GROUP_GENERATIONS, 1, utc(which), group_id=group_id)
        return rows[0] if rows else None

    def _rebalances(self, group_id: str, until: datetime, count: int) -> Sequence[Row]:
        """Return the last rebalances, the newest first, without the tombstones that belong to an upgrade."""
        rows = [*reversed(self._latest(REBALANCES, 2 * count, until, group_id=group_id))]
        return [*reversed(without_upgrade_tombstones(rows)[-count:])]

    def _gaps(self, group_id: str, rebalances: Sequence[Row]) -> Sequence[Row]:
        dates = {row["record_time"].date() for row in rebalances}
        try:
            return stored_rows(self._root, COMMIT_GAPS, dates, group_id=group_id, cluster=self._cluster)
        except NoTableError:
            return ()

    def _partitions(self, until: datetime, group_id: str | None = None) -> Mapping[str, tuple[PastPartition, ...]]:
        dates = {until.date() - timedelta(days=1)}
        with suppress(NoTableError):
            if has_rows(self._root, GROUP_LAG, until.date(), until, self._cluster):
                dates = {until.date()}
        lags = self._last(GROUP_LAG, _PARTITION, until, _LAG_COLUMNS, dates, group_id=group_id)
        statuses = self._last(PARTITION_STATUS, _PARTITION, until, _STATUS_COLUMNS, dates, group_id=group_id)
        return past_partitions(lags, statuses, self.measurement(timestamp_ms(until)))

    def _active(
        self,
        table: Table,
        keys: Sequence[str],
        until: datetime,
        group_id: str | None = None,
        dates: Collection[date] | None = None,
    ) -> Sequence[Row]:
        return [row for row in self._last(table, keys, until, dates=dates, group_id=group_id) if row["active"]]

    def _last(
        self,
        table: Table,
        keys: Sequence[str],
        until: datetime,
        columns: Sequence[str] | None = None,
        dates: Collection[date] | None = None,
        **equal: str | bool | None,
    ) -> Sequence[Row]:
        try:
            return last_rows(
                self._root, table, keys, until, columns=columns, dates=dates, cluster=self._cluster, **equal
            )
        except NoTableError:
            if table is GROUP_GENERATIONS:
                raise
            return ()

    def _latest(
        self,
        table: Table,
        count: int,
        until: datetime,
        without_states: Collection[str] = (),
        **equal: str | int | None,
    ) -> Sequence[Row]:
        """Return the last rows, the newest first."""
        try:
            return latest_rows(
                self._root, table, count, until, without_states=without_states, cluster=self._cluster, **equal
            )
        except NoTableError:
            if table is GROUP_GENERATIONS:
                raise
            return ()
