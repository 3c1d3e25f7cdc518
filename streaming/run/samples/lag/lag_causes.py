"""Find the cause of the lag of each late group once per sample.

Store the causes in the monitor state. Write the start and the end of each cause to the table LAG_CAUSES.

1. Only groups with waiting records (`evaluation.causes.lateness`) are evaluated.
2. A cause starts at the first sample that finds it. A cause ends when a different cause replaces it, or when the group
   has caught up. A group has caught up if no partition is behind, and if each partition with waiting records has a
   commit after the start of the cause. Partitions that an open transaction blocks do not count. If only the rates
   change, the cause does not end (`Cause.identity`).
3. While it is unknown whether a cause exists, no cause starts or ends. If the lag is unknown, the cause is unknown.
   Deleted partitions are ignored, because their commits remain until they expire. A lower bound of the lag counts as
   unknown if it was below WAITING_SECONDS at the last commit: after a restart, the monitor must first observe the
   partitions for some time.
4. The monitor state also contains the advice for each cause (`lag_advice.py`). The table does not contain advice,
   because a cause often starts before the members' capacity is known.
5. The row of an active cause is written again on each UTC date. So the deletion of old dates never deletes the last row
   of an active cause.
6. The active causes are read from the table at the first sample, and after an append that raised an error. So no row is
   written twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from assignors import TopicPartition
from streaming.combine.gaps import CommitGap
from streaming.delta.cells import Row, timestamp_ms, utc
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table, lag_cause_end, lag_cause_row, repeat_lag_cause
from streaming.delta.stored import active_lag_causes
from streaming.delta.tables import LAG_CAUSES
from streaming.evaluation.causes.cause_of_lag import WINDOW_MS
from streaming.evaluation.causes.late_group import ExplainedLag, LateGroup, SampledGroup, follow
from streaming.evaluation.causes.lateness import BLOCKED_SECONDS, WAITING_SECONDS
from streaming.evaluation.causes.member_work import PartitionWork
from streaming.evaluation.conditions.commit_gaps import members_since_ms, time_without_members_ms
from streaming.evaluation.fairness.fairness import among_members
from streaming.evaluation.fairness.imbalance import THROUGHPUT
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.incidents.evidence import lag_cause_name
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.lag.lag_seconds import AT_LEAST
from streaming.evaluation.lag.rates import DELETED
from streaming.evaluation.lag.retention.lost_records import LossKey
from streaming.evaluation.lag.status import Status, status_names
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from streaming.group.members import members
from streaming.run.samples.lag.lag_advice import LagAdvice
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import MonitorView

_COLUMNS = (
    "topic",
    "partition",
    "lag",
    "lag_seconds",
    "produced_records_per_second",
    "consumed_records_per_second",
    "commit_timestamp_ms",
    "is_blocked",
    "records_lost",
)


class LagCauses:
    """The causes of lag of all groups. Only the sampler's thread calls the methods."""

    def __init__(self, cluster: str, monitor_state: MonitorState, tables: DeltaTables) -> None:
        self._cluster = cluster
        self._monitor_state = monitor_state
        self._tables = tables
        self._late_groups: Mapping[str, LateGroup] = {}
        self._advice = LagAdvice()
        self._active: dict[str, Row] = {}
        self._must_restore = True

    @property
    def hidden(self) -> Iterator[tuple[str, str]]:
        """Pairs (group, name of evidence) of the active causes that the last sample did not find (rules 2 and 3)."""
        shown = self._monitor_state.view().explained_lags
        return (
            (group_id, lag_cause_name(row["cause"], row["reason"]))
            for group_id, row in self._active.items()
            if group_id not in shown
        )

    def after_sample(self, sample: ClusterSample, lag: LagEvaluation) -> None:
        """Find the causes. The sample must already be in the monitor state."""
        if self._must_restore:
            self._active = {row["group_id"]: row for row in active_lag_causes(self._tables.root, self._cluster)}
        self._late_groups, explained = explain_lags(self._late_groups, self._monitor_state.view(), sample, lag)
        rows, active = self._changes(explained, lag, sample.sampled_at_ms)
        advised = self._advice.add(_with_starts(explained, active), self._monitor_state.view(), lag, sample)
        self._monitor_state.put_explained_lags(advised)
        if rows:
            self._must_restore = True
            self._tables.append(LAG_CAUSES, arrow_table(LAG_CAUSES, rows))
        self._must_restore = False
        self._active = active

    def _changes(
        self, explained: Mapping[str, ExplainedLag], lag: LagEvaluation, sampled_at_ms: int
    ) -> tuple[list[Row], dict[str, Row]]:
        rows, active = [], {}
        may_go_on = self._groups_that_have_not_caught_up(lag)
        for group_id, row in self._active.items():
            explanation = explained.get(group_id)
            goes_on = group_id in may_go_on if explanation is None else _identity(row) == explanation.cause.identity
            if goes_on:
                active[group_id] = row
            else:
                rows.append(lag_cause_end(row, sampled_at_ms))
        for group_id, explanation in explained.items():
            if group_id not in active:
                active[group_id] = lag_cause_row(self._cluster, sampled_at_ms, group_id, explanation.cause)
                rows.append(active[group_id])
        today = utc(sampled_at_ms).date()
        repeated = {
            group_id: repeat_lag_cause(row, sampled_at_ms) for group_id, row in active.items() if row["date"] < today
        }
        return [*rows, *repeated.values()], {**active, **repeated}

    def _groups_that_have_not_caught_up(self, lag: LagEvaluation) -> AbstractSet[str]:
        """Return the groups whose cause continues, although this sample does not show the cause (rules 2 and 3)."""
        if not self._active:
            return frozenset()
        behind = {
            group_id
            for group_id, group in self._late_groups.items()
            if not all(one.is_blocked for one in group.behind.values())
        }
        oldest_ms = _oldest_commits_of_waiting_groups(lag)
        without_commit = {
            group_id
            for group_id, row in self._active.items()
            if group_id in oldest_ms and oldest_ms[group_id] <= timestamp_ms(row["since_time"])
        }
        return behind | without_commit | _groups_with_unknown_lag(lag)


def explain_lags(
    known: Mapping[str, LateGroup], view: MonitorView, sample: ClusterSample, lag: LagEvaluation
) -> tuple[Mapping[str, LateGroup], Mapping[str, ExplainedLag]]:
    """Return two mappings by group id: the values that the next sample needs, and the causes of lag."""
    following, explained = {}, {}
    for group_id, rows in _rows_of_waiting_groups(lag):
        sampled = _sampled_group(group_id, rows, view, sample, lag.crossed)
        following[group_id], explanation = follow(known.get(group_id), sampled)
        if explanation is not None:
            explained[group_id] = explanation
    return following, explained


def _identity(row: Row) -> tuple[str, ...]:
    number = "" if row["partition"] is None else str(row["partition"])
    return row["cause"], row["reason"], row["topic"] or "", number, row["member"] or "", row["client_host"] or ""


def _with_starts(explained: Mapping[str, ExplainedLag], active: Mapping[str, Row]) -> Mapping[str, ExplainedLag]:
    return {
        group_id: one._replace(cause=replace(one.cause, since_ms=timestamp_ms(active[group_id]["since_time"])))
        for group_id, one in explained.items()
    }


def _groups_with_unknown_lag(lag: LagEvaluation) -> frozenset[str]:
    """Return the groups with a partition whose lag in seconds is unknown or counts as unknown (rule 3)."""
    is_deleted = pc.is_in(lag.partitions["unknown_reason"], value_set=DELETED)
    rows = lag.partitions.filter(pc.invert(is_deleted))
    is_bound = pc.fill_null(pc.equal(rows["lag_seconds_kind"].cast(pa.string()), AT_LEAST), fill_value=False)
    at_commit = _seconds_at_commit(rows, lag.report.sampled_at_ms)
    is_low = pc.fill_null(pc.less(at_commit, WAITING_SECONDS), fill_value=True)
    is_unknown = pc.or_(pc.is_null(rows["lag_seconds"]), pc.and_(is_bound, is_low))
    return frozenset(pc.unique(rows["group_id"].filter(is_unknown)).to_pylist())


def _seconds_at_commit(rows: pa.Table, sampled_at_ms: int) -> pa.ChunkedArray:
    """Return for each row the lag in seconds at its last commit, or null if the lag in seconds is unknown."""
    since_commit_ms = pc.max_element_wise(pc.subtract(sampled_at_ms, rows["commit_timestamp_ms"]), 0)
    return pc.subtract(rows["lag_seconds"], pc.divide(since_commit_ms.cast(pa.float64()), 1000.0))


def _do_wait(table: pa.Table) -> pa.ChunkedArray:
    return pc.fill_null(pc.greater_equal(table["lag_seconds"], WAITING_SECONDS), fill_value=False)


def _oldest_commits_of_waiting_groups(lag: LagEvaluation) -> Mapping[str, int]:
    waiting = lag.unblocked.filter(_do_wait(lag.unblocked))
    oldest = waiting.group_by("group_id", use_threads=False).aggregate([("commit_timestamp_ms", "min")])
    return dict(zip(oldest["group_id"].to_pylist(), oldest["commit_timestamp_ms_min"].to_pylist(), strict=True))


def _rows_of_waiting_groups(lag: LagEvaluation) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    table = lag.unblocked
    group_ids = pc.unique(table["group_id"].filter(_do_wait(table)))
    if not len(group_ids):
        return
    rows = table.filter(pc.is_in(table["group_id"], value_set=group_ids))
    by_group = defaultdict[str, list[dict[str, Any]]](list)
    columns = pa.table(
        [
            rows["group_id"],
            status_names(rows["status"]),
            _seconds_at_commit(rows, lag.report.sampled_at_ms),
            *(rows[name] for name in _COLUMNS),
        ],
        names=["group_id", "status", "seconds_at_commit", *_COLUMNS],
    )
    for row in columns.to_pylist():
        by_group[row.pop("group_id")].append(row)
    yield from by_group.items()


def _sampled_group(
    group_id: str,
    rows: list[dict[str, Any]],
    view: MonitorView,
    sample: ClusterSample,
    crossed: Container[LossKey],
) -> SampledGroup:
    record = view.groups.get(group_id)
    is_member_group = record is not None and not record.snapshot.is_over
    each = members(record.snapshot) if record is not None and is_member_group else None
    member_count = None if each is None else len(each)
    if not is_member_group and view.listing is not None and group_id in view.listing.groups:
        member_count = view.listing.groups[group_id].member_count
    owners = {partition: member.member_id for member in each or () for partition in member.held or ()}
    waiting = [row for row in rows if row["lag_seconds"] is not None and row["lag_seconds"] >= WAITING_SECONDS]
    recent = () if record is None else record.rebalance_history.recent
    return SampledGroup(
        sampled_at_ms=sample.sampled_at_ms,
        partitions=tuple(_partition_work(row, owners.get(_key(row), "")) for row in rows),
        behind={
            _key(row): row["seconds_at_commit"]
            for row in waiting
            if row["seconds_at_commit"] >= WAITING_SECONDS
            or (row["is_blocked"] and row["lag_seconds"] >= BLOCKED_SECONDS)
        },
        stopped=frozenset(_key(row) for row in waiting if row["status"] == Status.STOP.name),
        lost=frozenset(_key(row) for row in waiting if row["records_lost"] or (group_id, *_key(row)) in crossed),
        members=each,
        member_count=member_count,
        empty=frozenset(key for key in owners if sample.is_empty(key)),
        fair_records_per_second=_fair_rate(group_id, record, view),
        lost_times=[
            *_commit_gaps(view.recent_gaps.get(group_id, ()), recent, sample.leaders_ahead_ms),
            *_rebalance_in_progress(view.rebalancing_since_ms.get(group_id), rows, sample.sampled_at_ms),
        ],
        rebalances=record.snapshot.totals.rebalances if record is not None and is_member_group else 0,
        without_members_ms=time_without_members_ms(recent, sample.sampled_at_ms - WINDOW_MS, sample.sampled_at_ms),
    )


def _commit_gaps(
    gaps: Iterable[CommitGap], recent: Sequence[RebalanceSummary], ahead_ms: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each commit gap, without the time in which the group had no members.

    The times of commits and rebalances come from the clock of the coordinator. This clock is `ahead_ms` ahead.
    """
    for gap in gaps:
        if gap.last_commit_ms is not None and gap.end_ms is not None:
            had_members_ms = members_since_ms([one for one in recent if one.timestamp_ms <= gap.end_ms])
            step_ms = ahead_ms.get(gap.position.offsets_topic_partition, 0)
            yield max(gap.last_commit_ms, had_members_ms) - step_ms, gap.end_ms - step_ms


def _rebalance_in_progress(
    since_ms: int | None, rows: Iterable[Mapping[str, Any]], now_ms: int
) -> Iterator[tuple[int, int]]:
    """Yield the part of the rebalance in which the group did not commit.

    Until all members have joined again, members can commit with the old generation.
    """
    if since_ms is not None:
        yield max([since_ms, *(row["commit_timestamp_ms"] for row in rows)]), now_ms


def _key(row: Mapping[str, Any]) -> TopicPartition:
    return row["topic"], row["partition"]


def _partition_work(row: Mapping[str, Any], member_id: str) -> PartitionWork:
    return PartitionWork(
        topic=row["topic"],
        partition=row["partition"],
        lag=row["lag"],
        produced_records_per_second=row["produced_records_per_second"],
        consumed_records_per_second=row["consumed_records_per_second"],
        status=row["status"],
        last_commit_ms=row["commit_timestamp_ms"],
        is_blocked=row["is_blocked"],
        member_id=member_id,
    )


def _fair_rate(group_id: str, record: GroupState | None, view: MonitorView) -> float | None:
    """Return the produce rate of the busiest member's partitions in the fairest assignment, in records per second."""
    shares, evaluation = view.work.get(group_id), record.evaluation if record else None
    if shares is None or evaluation is None or shares.position != evaluation.position:
        return None
    throughput = among_members(shares.imbalances, THROUGHPUT)
    if throughput is None or throughput.largest is None or throughput.excess is None:
        return None
    return throughput.largest - throughput.excess
