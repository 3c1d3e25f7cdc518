"""Turns, partition batches and lag as rows of the tables. Pure: values in, Arrow tables out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.lanes import PartitionSnapshot, QuarantinedRecord
from streaming.events import Position
from streaming.group.snapshot import GroupSnapshot
from streaming.judgement.drift import StrategyDrift
from streaming.judgement.imbalance import PartitionShares
from streaming.judgement.judge import Judgement
from streaming.judgement.skips import proven_failures
from streaming.judgement.turn import Turn
from streaming.protocol.classic import ClassicMember
from streaming.sinks.tables import (
    ASSIGNMENT_DRIFT,
    ASSIGNMENT_IMBALANCE,
    GROUP_GENERATIONS,
    GROUP_LAG,
    QUARANTINE,
    Table,
)

Row = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST_MS = 253_402_300_799_000
"""The last second of the year 9999, beyond which neither Python nor SQL has a calendar."""


def arrow_table(table: Table, rows: Sequence[Row]) -> pa.Table:
    """Rows as the table's schema has them."""
    return pa.Table.from_pylist(list(rows), schema=table.schema)


def turn_rows(cluster: str, turns: Iterable[Turn], lanes: Mapping[int, PartitionSnapshot]) -> Mapping[Table, list[Row]]:
    """What the turns of one batch add to the tables. `lanes` tell which skipped generations are proven failures."""
    rows: dict[Table, list[Row]] = {GROUP_GENERATIONS: [], ASSIGNMENT_DRIFT: [], ASSIGNMENT_IMBALANCE: []}
    for turn in turns:
        group_id = turn.record.snapshot.group_id
        rows[GROUP_GENERATIONS] += [_generation_row(cluster, snapshot, lanes) for snapshot in turn.history]
        for judgement in turn.judgements:
            key = {**_record(cluster, judgement.position), "group_id": group_id}
            rows[ASSIGNMENT_DRIFT] += [_drift_row(key, judgement, drift) for drift in judgement.drifts]
            rows[ASSIGNMENT_IMBALANCE] += [_imbalance_row(key, judgement, shares) for shares in judgement.shares]
    return rows


def quarantine_rows(cluster: str, records: Iterable[QuarantinedRecord]) -> Mapping[Table, list[Row]]:
    """Records nobody could read, as rows."""
    rows = [
        {
            **_record(cluster, Position(record.kafka_partition, record.kafka_offset, record.timestamp_ms)),
            "key": record.key,
            "value": record.value,
            "reason": record.reason,
            "field": record.field,
        }
        for record in records
    ]
    return {QUARANTINE: rows}


def _record(cluster: str, position: Position) -> Row:
    record_time = utc(position.timestamp_ms)
    return {
        "cluster": cluster,
        "date": record_time.date(),
        "kafka_partition": position.kafka_partition,
        "kafka_offset": position.kafka_offset,
        "record_time": record_time,
    }


def utc(timestamp_ms: int) -> datetime:
    """Kafka's milliseconds as a time in UTC; times beyond the calendar (hostile records) at its nearest end."""
    return _EPOCH + timedelta(milliseconds=min(max(timestamp_ms, 0), _LAST_MS))


def _generation_row(cluster: str, snapshot: GroupSnapshot, lanes: Mapping[int, PartitionSnapshot]) -> Row:
    metadata, position, totals = snapshot.metadata, snapshot.position, snapshot.totals
    if position is None:
        raise ValueError(f"{snapshot.group_id}: a snapshot in the history stems from a record")
    lane = lanes.get(position.kafka_partition, PartitionSnapshot(position.kafka_partition))
    return {
        **_record(cluster, position),
        "group_id": snapshot.group_id,
        "group_type": snapshot.group_type,
        "state": snapshot.state,
        "generation_id": snapshot.generation_id,
        "protocol_type": metadata.protocol_type if metadata else None,
        "protocol": metadata.protocol if metadata else None,
        "leader": metadata.leader if metadata else None,
        "members": [_member(member) for member in sorted(metadata.members, key=_member_id)] if metadata else None,
        "rebalances_total": totals.rebalances,
        "rebalances_failed_total": totals.rebalances_failed + proven_failures(snapshot.unsettled_skips, lane),
        "empty_transitions_total": totals.empty_transitions,
        "incarnations": totals.incarnations,
    }


def _member_id(member: ClassicMember) -> str:
    return member.member_id


def _member(member: ClassicMember) -> Row:
    assigned = member.assignment.partitions if member.assignment else ()
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscription": list(member.subscription.topics) if member.subscription else None,
        "assignment": [{"topic": topic, "partition": partition} for topic, partition in assigned],
    }


def _drift_row(key: Row, judgement: Judgement, drift: StrategyDrift) -> Row:
    sampled_at_ms = judgement.metadata_sampled_at_ms
    return {
        **key,
        "generation_id": judgement.generation_id,
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
        "metadata_sampled_time": None if sampled_at_ms is None else utc(sampled_at_ms),
    }


def _imbalance_row(key: Row, judgement: Judgement, shares: PartitionShares) -> Row:
    return {
        **key,
        "generation_id": judgement.generation_id,
        "topic": shares.topic,
        "members": shares.members,
        "assigned_partitions": shares.assigned_partitions,
        "max_partitions": shares.max_partitions,
        "min_partitions": shares.min_partitions,
        "idle_members": shares.idle_members,
        "max_to_mean_ratio": shares.max_to_mean_ratio,
    }


def lag_rows(cluster: str, sampled_at_ms: int, partitions: pa.Table) -> pa.Table:
    """Rows of a lag report as the table has them."""
    sampled_time = utc(sampled_at_ms)
    count = partitions.num_rows
    in_calendar = pc.min_element_wise(pc.max_element_wise(partitions["commit_timestamp_ms"], 0), _LAST_MS)
    commit_time = in_calendar.cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))
    columns = {
        "cluster": pa.array([cluster] * count, pa.string()),
        "date": pa.array([sampled_time.date()] * count, pa.date32()),
        "sampled_time": pa.array([sampled_time] * count, pa.timestamp("us", tz="UTC")),
        "commit_time": commit_time,
    }
    arrays = [columns[name] if name in columns else partitions[name] for name in GROUP_LAG.schema.names]
    return pa.table(arrays, schema=GROUP_LAG.schema)
