"""Makes table rows from group updates, decode failures, commit gaps, conditions and lag. All functions are pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.gaps import CommitGap
from streaming.combine.partition_state import DecodeFailure, FailureSummary
from streaming.delta.cells import LAST_MS, Row, record_cells, utc
from streaming.delta.fairness_rows import alternative_rows, partition_rows
from streaming.delta.tables import (
    ASSIGNMENT_DRIFT,
    ASSIGNMENT_IMBALANCE,
    COMMIT_GAPS,
    GROUP_GENERATIONS,
    QUARANTINE,
    REBALANCES,
    WHAT_IF,
    Table,
)
from streaming.evaluation.assignment.drift import StrategyDrift
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.conditions.condition_tracker import ConditionChange
from streaming.evaluation.group_update import GroupUpdate
from streaming.evaluation.lag.status import status_names
from streaming.evaluation.rebalances.failed_rebalances import SkipDecisions, failed_rebalances
from streaming.evaluation.rebalances.member_changes import MemberChange
from streaming.evaluation.rebalances.rebalance_history import ReportedRebalance
from streaming.evaluation.snapshot_evaluation import Evaluation
from streaming.events import Position
from streaming.group.members import TopicPartitions, members
from streaming.group.not_known import not_known
from streaming.group.snapshot import GroupSnapshot

CELLS_PER_PART = 5_000
"""Number of cells and list elements after which rows are converted to Arrow, which needs less memory than Python.

A row of a group with 1,000 members needs 7 MB in Python.
"""


def arrow_table(table: Table, rows: Iterable[Row]) -> pa.Table:
    """Return the rows as an Arrow table with the schema of the table. `rows` is read in parts, to save memory."""
    parts = [pa.Table.from_pylist(part, schema=table.schema) for part in _parts(rows)]
    return pa.concat_tables(parts) if parts else table.schema.empty_table()


def _parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    part: list[Row] = []
    cells = 0
    for row in rows:
        part.append(row)
        cells += sum(len(cell) if isinstance(cell, list) else 1 for cell in row.values())
        if cells >= CELLS_PER_PART:
            yield part
            part, cells = [], 0
    if part:
        yield part


def update_rows(
    cluster: str, updates: Sequence[GroupUpdate], decisions: SkipDecisions
) -> Mapping[Table, Iterator[Row]]:
    """Return the rows that one batch of group updates adds to the tables."""
    ids = [update.record.snapshot.group_id for update in updates]
    evaluations = [
        ({**record_cells(cluster, evaluation.position), "group_id": group_id}, evaluation)
        for group_id, update in zip(ids, updates, strict=True)
        for evaluation in update.evaluations
    ]
    return {
        GROUP_GENERATIONS: (
            _generation_row(cluster, snapshot, decisions) for update in updates for snapshot in update.history
        ),
        REBALANCES: (
            _rebalance_row(cluster, group_id, reported)
            for group_id, update in zip(ids, updates, strict=True)
            for reported in update.rebalances
        ),
        ASSIGNMENT_DRIFT: (
            _drift_row(key, evaluation, drift) for key, evaluation in evaluations for drift in evaluation.drifts
        ),
        ASSIGNMENT_IMBALANCE: (row for key, evaluation in evaluations for row in partition_rows(key, evaluation)),
        WHAT_IF: (
            row
            for group_id, update in zip(ids, updates, strict=True)
            if update.alternatives is not None
            for row in alternative_rows(cluster, group_id, update.alternatives)
        ),
    }


def quarantine_rows(
    cluster: str, records: Iterable[DecodeFailure], summaries: Iterable[FailureSummary] = ()
) -> Mapping[Table, list[Row]]:
    """Return the rows for records that could not be decoded, and for the summaries of such records."""
    rows = [
        {
            **record_cells(
                cluster, Position(record.offsets_topic_partition, record.offsets_topic_offset, record.timestamp_ms)
            ),
            "key": record.key,
            "value": record.value,
            "reason": record.reason,
            "field": record.field,
            "key_bytes": record.key_bytes,
            "value_bytes": record.value_bytes,
            "records": 1,
            "first_offset": record.offsets_topic_offset,
        }
        for record in records
    ]
    rows += [
        {
            **record_cells(cluster, summary.last),
            "reason": summary.reason,
            "records": summary.records,
            "first_offset": summary.first_offset,
        }
        for summary in summaries
    ]
    return {QUARANTINE: rows}


def commit_gap_rows(cluster: str, gaps: Iterable[CommitGap]) -> Mapping[Table, list[Row]]:
    """Return the rows for commit gaps. Most columns have the same names as the fields of CommitGap."""
    rows = []
    for gap in gaps:
        fields = msgspec.structs.asdict(gap)
        last_commit_ms = fields.pop("last_commit_ms")
        last_commit_time = None if last_commit_ms is None else utc(last_commit_ms)
        rows.append({**record_cells(cluster, fields.pop("position")), **fields, "last_commit_time": last_commit_time})
    return {COMMIT_GAPS: rows}


def _generation_row(cluster: str, snapshot: GroupSnapshot, decisions: SkipDecisions) -> Row:
    classic, modern, position, totals = snapshot.classic, snapshot.modern, snapshot.position, snapshot.totals
    if position is None:
        raise ValueError(f"{snapshot.group_id}: a snapshot in the history must have the position of a record")
    return {
        **record_cells(cluster, position),
        "group_id": snapshot.group_id,
        "group_type": snapshot.group_type,
        "state": snapshot.state,
        "generation_id": snapshot.generation_id,
        "assignment_epoch": modern.assignment_epoch if modern else None,
        "protocol_type": snapshot.protocol_type,
        "protocol": snapshot.protocol,
        "protocol_source": snapshot.protocol_source,
        "leader": classic.leader if classic else None,
        "members": None if snapshot.is_over else _members(snapshot),
        "not_known": list(not_known(snapshot)),
        "rebalances_total": totals.rebalances,
        "rebalances_failed_total": failed_rebalances(snapshot, decisions),
        "empty_transitions_total": totals.empty_transitions,
        "incarnations": totals.incarnations,
    }


def _members(snapshot: GroupSnapshot) -> list[Row]:
    unnamed = snapshot.modern.unnamed_topic_ids() if snapshot.modern else frozenset()
    return [
        {
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "rack_id": member.rack_id,
            "subscription": None if member.subscribed_topics is None else list(member.subscribed_topics),
            "subscribed_regex": member.subscribed_regex,
            "member_epoch": member.member_epoch,
            "owned": _partitions(member.owned, unnamed),
            "assignment": _partitions(member.assigned, unnamed),
            "target": _partitions(member.target, unnamed),
            "pending_revocation": _partitions(member.pending_revocation, unnamed),
        }
        for member in members(snapshot)
    ]


def _partitions(topic_partitions: TopicPartitions | None, unnamed: frozenset[str] = frozenset()) -> list[Row] | None:
    if topic_partitions is None:
        return None
    return [
        {"topic_id": topic, "partition": partition} if topic in unnamed else {"topic": topic, "partition": partition}
        for topic, partition in topic_partitions
    ]


def _rebalance_row(cluster: str, group_id: str, reported: ReportedRebalance) -> Row:
    rebalance, totals = reported.rebalance, reported.totals
    movement, claims = rebalance.movement, rebalance.claims
    return {
        **record_cells(cluster, rebalance.position),
        "group_id": group_id,
        "generation_id": rebalance.generation_id,
        "kind": rebalance.kind,
        "primary_cause": rebalance.primary_cause,
        "causes": None if rebalance.causes is None else list(rebalance.causes),
        "members": rebalance.members,
        "protocol": rebalance.protocol,
        "protocol_source": rebalance.protocol_source,
        "previous_protocol": rebalance.previous_protocol,
        "changes": [_change(change) for change in rebalance.changes],
        "moved_partitions": movement.moved_partitions,
        "fewest_moves": movement.fewest_moves,
        "fewest_is_exact": None if movement.fewest_moves is None else movement.is_exact,
        "withheld_partitions": len(movement.withheld),
        "unowned": _partitions(movement.unowned),
        "unowned_before_partitions": movement.unowned_before_partitions,
        "claimed_twice": _partitions(claims.claimed_twice),
        "eager_claimers": claims.eager_claimers,
        "subscriptions": claims.subscriptions,
        "sync_time_ms": rebalance.sync_time_ms,
        "skipped_generations": rebalance.skipped_generations,
        "not_known": list(rebalance.not_known),
        "conditions": list(reported.conditions),
        "rebalances_by_cause_total": [
            {"cause": cause, "rebalances": count} for cause, count in sorted(totals.rebalances_by_cause.items())
        ],
        "moved_partitions_total": [
            {"necessary": need, "partitions": count} for need, count in sorted(totals.moved_partitions.items())
        ],
    }


def _change(change: MemberChange) -> Row:
    return {
        "member_id": change.member_id,
        "previous_member_id": change.previous_member_id,
        "group_instance_id": change.group_instance_id,
        "client_id": change.client_id,
        "client_host": change.client_host,
        "changes": list(change.changes),
        "revoked": _partitions(change.revoked),
        "assigned": _partitions(change.assigned),
    }


def _drift_row(key: Row, evaluation: Evaluation, drift: StrategyDrift) -> Row:
    sampled_at_ms = evaluation.metadata_sampled_at_ms
    return {
        **key,
        "generation_id": evaluation.generation_id,
        "strategy": drift.strategy,
        "is_group_strategy": drift.is_group_strategy,
        "verdict": drift.verdict,
        "reason": drift.reason,
        "drift_partitions": drift.drift_partitions,
        "misplaced": [
            {
                "topic": misplaced.topic,
                "partition": misplaced.partition,
                "actual_members": list(misplaced.actual_members),
                "expected_member": misplaced.expected_member,
            }
            for misplaced in drift.misplaced
        ],
        "violations": list(drift.violations),
        "assigned_by": evaluation.assigned_by.implementation if evaluation.assigned_by else None,
        "evidence": list(evaluation.assigned_by.evidence) if evaluation.assigned_by else [],
        "not_known": list(evaluation.not_known),
        "metadata_sampled_time": None if sampled_at_ms is None else utc(sampled_at_ms),
    }


def condition_rows(
    cluster: str, sampled_at_ms: int, changes: Iterable[ConditionChange], *, is_repeated: bool = False
) -> list[Row]:
    """Return the rows of `group_conditions` for conditions that started or ended.

    If `is_repeated` is True, the rows repeat active conditions.
    """
    sampled_time = utc(sampled_at_ms)
    return [
        {
            "cluster": cluster,
            "date": sampled_time.date(),
            "sampled_time": sampled_time,
            "group_id": change.group_id,
            "condition": change.condition.name,
            "active": change.active,
            "is_repeated": is_repeated,
            "since_time": utc(change.condition.since_ms),
            "detail": change.condition.detail,
            "read_up_to_time": None if change.read_up_to_ms is None else utc(change.read_up_to_ms),
        }
        for change in changes
    ]


def lag_cause_row(cluster: str, sampled_at_ms: int, group_id: str, cause: Cause) -> Row:
    """Return the row of `lag_causes` for a cause that starts at the last sample."""
    sampled_time = utc(sampled_at_ms)
    return {
        "cluster": cluster,
        "date": sampled_time.date(),
        "sampled_time": sampled_time,
        "group_id": group_id,
        "cause": cause.kind,
        "active": True,
        "is_repeated": False,
        "since_time": sampled_time,
        "reason": cause.reason,
        "topic": cause.topic or None,
        "partition": cause.partition,
        "member": cause.member or None,
        "client_id": cause.client_id or None,
        "client_host": cause.client_host or None,
        "text": cause.text,
    }


def lag_cause_end(row: Row, sampled_at_ms: int) -> Row:
    """Return the row of `lag_causes` for a cause that ends at the last sample. `row` is the cause's last row."""
    return {**repeat_lag_cause(row, sampled_at_ms), "active": False, "is_repeated": False}


def repeat_lag_cause(row: Row, sampled_at_ms: int) -> Row:
    """Return the row of `lag_causes` that repeats an active cause. `row` is the last row of the cause."""
    sampled_time = utc(sampled_at_ms)
    return {**row, "date": sampled_time.date(), "sampled_time": sampled_time, "is_repeated": True}


def lag_rows(table: Table, cluster: str, sampled_at_ms: int, partitions: pa.Table) -> pa.Table:
    """Return the rows of `group_lag` or `partition_status` for the evaluated partitions."""
    sampled_time = utc(sampled_at_ms)
    count = partitions.num_rows
    columns = {
        "cluster": pa.array([cluster] * count, pa.string()),
        "date": pa.array([sampled_time.date()] * count, pa.date32()),
        "sampled_time": pa.array([sampled_time] * count, pa.timestamp("us", tz="UTC")),
        "commit_time": _as_time(partitions["commit_timestamp_ms"]),
        "lost_since_time": _as_time(partitions["lost_since_ms"]),
        "lag_seconds_kind": partitions["lag_seconds_kind"].cast(pa.string()),
        "status": status_names(partitions["status"]),
    }
    arrays = [columns[name] if name in columns else partitions[name] for name in table.schema.names]
    return pa.table(arrays, schema=table.schema)


def _as_time(times_ms: pa.ChunkedArray) -> pa.ChunkedArray:
    in_calendar = pc.min_element_wise(pc.max_element_wise(times_ms, 0, skip_nulls=False), LAST_MS, skip_nulls=False)
    return in_calendar.cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))
