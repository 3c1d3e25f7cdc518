"""Write the tables of a group's life as the monitor does, for tests of the past."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from deltalake import write_deltalake

from assignors import assignor_named
from streaming.delta.cells import Row, utc
from streaming.delta.rows import arrow_table, condition_rows
from streaming.delta.tables import GROUP_CONDITIONS, GROUP_LAG, PARTITION_STATUS, PARTITIONED_BY, Table
from streaming.evaluation.conditions.condition_tracker import Condition, ConditionChange
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.events import GroupEvent, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.table_rows import update_rows

CLUSTER = "prod"
NAMED = TopicsSampled({"orders": TopicMetadata(4, 10**9, topic_id="id")})


def rows_of_life(events: Sequence[GroupEvent], group_id: str, cluster: str = CLUSTER) -> Mapping[Table, list[Row]]:
    """Return the rows of all tables that the events of a group cause. Each event is one batch."""
    record, updates = GroupState(GroupSnapshot(group_id)), []
    for event in events:
        for one in (event, NAMED):
            updates.append(apply_batch(record, [one], [assignor_named("range")]))
            record = updates[-1].record
    return update_rows(cluster, updates, {})


def write_rows(folder: Path, rows: Mapping[Table, Iterable[Row]]) -> None:
    """Append rows to their tables."""
    for table, each in rows.items():
        if listed := list(each):
            written = arrow_table(table, listed)
            write_deltalake(str(folder / table.name), written, mode="append", partition_by=list(PARTITIONED_BY))


def write_life(folder: Path, events: Sequence[GroupEvent], group_id: str = "g", cluster: str = CLUSTER) -> None:
    """Write all rows of a group's events."""
    write_rows(folder, rows_of_life(events, group_id, cluster))


def lag_row(  # noqa: PLR0913 - the values of a row
    at_ms: int,
    lag: int | None,
    *,
    group_id: str = "g",
    partition: int = 0,
    seconds: float | None = None,
    reason: str | None = None,
    cluster: str = CLUSTER,
) -> Row:
    """Return a row of `group_lag`."""
    time = utc(at_ms)
    return {
        "cluster": cluster,
        "date": time.date(),
        "sampled_time": time,
        "group_id": group_id,
        "topic": "orders",
        "partition": partition,
        "committed_offset": 100,
        "commit_time": time - timedelta(seconds=1),
        "end_offset": None if lag is None else 100 + lag,
        "log_start_offset": 0,
        "lag": lag,
        "unknown_reason": reason,
        "lag_seconds": seconds,
        "lag_seconds_kind": "exact" if seconds is not None else "unknown",
    }


def write_lag(folder: Path, *rows: Row) -> None:
    write_rows(folder, {GROUP_LAG: rows})


def write_status(  # noqa: PLR0913 - the values of a row
    folder: Path, at_ms: int, status: str, *, group_id: str = "g", lost: int | None = None, cluster: str = CLUSTER
) -> None:
    """Write a row of `partition_status` for partition orders-0."""
    row = {
        **lag_row(at_ms, 7, group_id=group_id, cluster=cluster),
        "status": status,
        "status_rule": 5,
        "records_lost": lost,
    }
    names = PARTITION_STATUS.schema.names
    write_rows(folder, {PARTITION_STATUS: [{name: row.get(name) for name in names}]})


def write_condition(  # noqa: PLR0913 - the values of a row
    folder: Path, at_ms: int, name: str, *, active: bool, group_id: str = "g", cluster: str = CLUSTER
) -> None:
    """Write the start or the end of a condition."""
    change = ConditionChange(group_id, Condition(name, 1000, f"{name} of {group_id}"), active=active, read_up_to_ms=1)
    write_rows(folder, {GROUP_CONDITIONS: condition_rows(cluster, at_ms, [change])})
