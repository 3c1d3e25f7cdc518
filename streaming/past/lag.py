"""Computes the lag of a group's partitions at a past moment, from rows of `group_lag` and `partition_status`.

1. The result is the lag at the last measurement before `at_ms`. If a value changed, the monitor wrote a new row. So
   the last row of a partition was still valid at the last measurement. If the last measurement is too old
   (`silence.py`), the lag is unknown for the reason `not_measured`.
2. The first write of each UTC date contains all partitions (`run/samples/lag/lag_tables.py`). So the reader reads only
   the rows on the date of the moment. If the cluster has no row between the start of this date and the moment, the
   reader reads the previous date instead. The result contains only partitions with a row. It does not contain a
   partition whose last row is an end row (`offset_deleted` or `not_subscribed`).
3. `lag_seconds` is the age of the oldest record that the group has not committed. At the last measurement, the
   committed offset was the same as in the row, so the same record still waited. So for a partition with a lag, the
   result is `lag_seconds` plus the time from the row to the last measurement. The time after the last measurement does
   not count, because no row shows whether the group has committed since then.
4. The time of the last commit and the rates are unknown, because they can change without a new row. The time until
   records are lost is also unknown.
5. A partition without a row in `partition_status` has an unknown status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from assignors import TopicPartition
from streaming.delta.cells import timestamp_ms
from streaming.delta.tables.lag import END_REASONS
from streaming.evaluation.facts import GroupLag
from streaming.evaluation.lag.group_lags import GROUP_LAGS_SCHEMA, group_lags
from streaming.evaluation.lag.lag import BLOCKED, LAG_SCHEMA
from streaming.evaluation.lag.lag_seconds import AT_LEAST, LAG_SECONDS_SCHEMA
from streaming.evaluation.lag.rates import RATES_SCHEMA
from streaming.evaluation.lag.retention.expiry import EXPIRY_SCHEMA
from streaming.evaluation.lag.retention.lost_records import RETENTION_SCHEMA
from streaming.evaluation.lag.status import STATUS_SCHEMA, Status
from streaming.group.snapshot import OVER
from streaming.past.partition import PastPartition
from streaming.past.rows import Row
from streaming.past.silence import Measurement

_SCHEMAS = (LAG_SCHEMA, LAG_SECONDS_SCHEMA, STATUS_SCHEMA, RETENTION_SCHEMA, EXPIRY_SCHEMA, RATES_SCHEMA)
_INPUTS = pa.schema([field for schema in _SCHEMAS for field in schema])
"""The columns of `LagEvaluation.partitions`. The function `group_lags` reads some of these columns."""

NOT_MEASURED = "not_measured"
"""The reason why the lag is unknown at a moment without measurements (rule 1)."""

_STATUS_NUMBERS = {status.name: status.value for status in Status}


def past_partitions(
    lag_rows: Iterable[Row], status_rows: Iterable[Row], measurement: Measurement
) -> Mapping[str, tuple[PastPartition, ...]]:
    """Return the partitions of each group: first those with an unknown lag, then those with the largest lag.

    `lag_rows` and `status_rows` contain the last row of each partition.
    """
    measured_ms = measurement.last_ms if measurement.is_recent else None
    statuses = {(row["group_id"], row["topic"], row["partition"]): row for row in status_rows}
    by_group: dict[str, list[PastPartition]] = {}
    for row in lag_rows:
        if row["unknown_reason"] in END_REASONS:
            continue
        group_id, topic, number = row["group_id"], row["topic"], row["partition"]
        if measured_ms is None:
            one = PastPartition(topic, number, timestamp_ms(row["sampled_time"]), unknown_reason=NOT_MEASURED)
        else:
            one = _partition(row, statuses.get((group_id, topic, number)), measured_ms)
        by_group.setdefault(group_id, []).append(one)
    return {group_id: tuple(sorted(each, key=_sort_key)) for group_id, each in by_group.items()}


def _sort_key(one: PastPartition) -> tuple[bool, int, str, int]:
    return one.lag is not None, -(one.lag or 0), one.topic, one.partition


def _partition(row: Row, status: Row | None, measured_ms: int) -> PastPartition:
    row_time_ms, seconds = timestamp_ms(row["sampled_time"]), row["lag_seconds"]
    return PastPartition(
        topic=row["topic"],
        partition=row["partition"],
        row_time_ms=row_time_ms,
        committed_offset=row["committed_offset"],
        end_offset=row["end_offset"],
        lag=row["lag"],
        unknown_reason=row["unknown_reason"],
        lag_seconds=seconds + (measured_ms - row_time_ms) / 1000 if seconds is not None and row["lag"] else seconds,
        lag_seconds_is_bound=row["lag_seconds_kind"] == AT_LEAST,
        status=status["status"] if status else None,
        records_lost=status["records_lost"] if status else None,
    )


def group_lags_of(partitions: Mapping[str, tuple[PastPartition, ...]]) -> Mapping[str, GroupLag]:
    """Return the lag of each group, computed in the same way as the current lag."""
    rows = [_inputs(group_id, one) for group_id, each in partitions.items() for one in each]
    lags = group_lags(pa.Table.from_pylist(rows, schema=_INPUTS)).to_pylist() if rows else []
    return {lag["group_id"]: GroupLag(*(lag[name] for name in GROUP_LAGS_SCHEMA.names[1:])) for lag in lags}


def _inputs(group_id: str, one: PastPartition) -> Row:
    return {
        "group_id": group_id,
        "topic": one.topic,
        "partition": one.partition,
        "lag": one.lag,
        "unknown_reason": one.unknown_reason,
        "lag_seconds": one.lag_seconds,
        "lag_seconds_kind": AT_LEAST if one.lag_seconds_is_bound else None,
        "is_blocked": one.unknown_reason == BLOCKED,
        "status": _STATUS_NUMBERS.get(one.status or ""),
        "records_lost": one.records_lost,
    }


def without_ends_before_commits(
    generations: Iterable[Row], partitions: Mapping[str, tuple[PastPartition, ...]]
) -> Sequence[Row]:
    """Return the rows of `group_generations`, without the end of a group that has a later row in `group_lag`."""
    return [
        row
        for row in generations
        if row["state"] not in OVER
        or all(one.row_time_ms <= timestamp_ms(row["record_time"]) for one in partitions.get(row["group_id"], ()))
    ]


def lag_by_partition(partitions: Iterable[PastPartition]) -> Mapping[TopicPartition, int | None]:
    """Return the lag of each partition, as a number of records."""
    return {(one.topic, one.partition): one.lag for one in partitions}
