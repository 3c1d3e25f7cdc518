"""What is told from the last sample, in whole columns: lag in records and seconds, status, what retention takes, ends.

Rules:

1. Groups that an open transaction holds back have no lag; that they have none is told by reason.
2. A sum over partitions is known where each part is; the most of a column is the most of what is known.
3. Topics that are not shown are in the sums of groups all the same.
4. Columns of text are made once for a sample and a choice of what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.judgement.lag import HELD_BACK, ClusterSample
from streaming.judgement.lag_judgement import LagJudgement
from streaming.judgement.status import Status
from streaming.signals import Signal, kafka_exporter, kafka_lag_exporter
from streaming.signals import lag as signals
from streaming.sinks.lines import Writer, combined, each, escaped_column
from streaming.sinks.shown import Shown, every_one

_STATUS_NAMES = {status.value: status.name for status in Status}
_ALL_KNOWN = pc.ScalarAggregateOptions(skip_nulls=False)
_COLUMN_OF_LABEL: Final = {
    "group": "group_id",
    "consumergroup": "group_id",
    "topic": "topic",
    "partition": "partition",
    "reason": "unknown_reason",
    "status": "status",
}


class ColumnFamily(NamedTuple):
    """A metric, and the column of a table (of `_TABLES`) that has its values; null is no series."""

    signal: Signal
    table: str
    column: str


COLUMN_FAMILIES: Final = (
    ColumnFamily(signals.GROUP_LAG, "groups", "lag_sum"),
    ColumnFamily(signals.GROUP_LAG_SECONDS, "groups", "lag_seconds"),
    ColumnFamily(signals.GROUP_LAG_SECONDS_IS_BOUND, "groups", "is_at_least"),
    ColumnFamily(signals.LAG_UNKNOWN_PARTITIONS, "unknown", "count_all"),
    ColumnFamily(signals.GROUP_STATUS, "groups", "has_status"),
    ColumnFamily(signals.GROUP_STATUS_COMPLETENESS, "groups", "completeness"),
    ColumnFamily(signals.GROUP_RECORDS_LOST, "groups", "records_lost"),
    ColumnFamily(signals.GROUP_SECONDS_UNTIL_LOST, "groups", "seconds_until_lost"),
    ColumnFamily(kafka_exporter.CONSUMERGROUP_CURRENT_OFFSET, "group_partitions", "committed_offset"),
    ColumnFamily(kafka_exporter.CONSUMERGROUP_CURRENT_OFFSET_SUM, "group_topics", "committed_offset_sum"),
    ColumnFamily(kafka_exporter.CONSUMERGROUP_LAG, "group_partitions", "lag"),
    ColumnFamily(kafka_exporter.CONSUMERGROUP_LAG_SUM, "group_topics", "lag_sum"),
    ColumnFamily(kafka_exporter.TOPIC_PARTITIONS, "topics", "partitions"),
    ColumnFamily(kafka_exporter.TOPIC_PARTITION_CURRENT_OFFSET, "partitions", "end_offset"),
    ColumnFamily(kafka_exporter.TOPIC_PARTITION_OLDEST_OFFSET, "partitions", "log_start_offset"),
    ColumnFamily(kafka_lag_exporter.GROUP_OFFSET, "group_partitions", "committed_offset"),
    ColumnFamily(kafka_lag_exporter.GROUP_LAG, "group_partitions", "lag"),
    ColumnFamily(kafka_lag_exporter.GROUP_LAG_SECONDS, "group_partitions", "lag_seconds"),
    ColumnFamily(kafka_lag_exporter.GROUP_MAX_LAG, "groups", "lag_max"),
    ColumnFamily(kafka_lag_exporter.GROUP_MAX_LAG_SECONDS, "groups", "lag_seconds"),
    ColumnFamily(kafka_lag_exporter.GROUP_SUM_LAG, "groups", "lag_sum"),
    ColumnFamily(kafka_lag_exporter.GROUP_TOPIC_SUM_LAG, "group_topics", "lag_sum"),
    ColumnFamily(kafka_lag_exporter.PARTITION_LATEST_OFFSET, "partitions", "end_offset"),
    ColumnFamily(kafka_lag_exporter.PARTITION_EARLIEST_OFFSET, "partitions", "log_start_offset"),
)


class ColumnTexts:
    """The lines of these metrics for a cluster, kept for one sample (rule 4). Several threads may ask."""

    def __init__(self, constant: Callable[[Signal], Mapping[str, str]]) -> None:
        self._writers = [(family, Writer(family.signal, constant(family.signal))) for family in COLUMN_FAMILIES]
        self._kept: tuple[tuple[object, ...], Mapping[str, pa.Buffer]] = ((), {})

    def texts(self, lag: LagJudgement | None, sample: ClusterSample | None, shown: Shown) -> Mapping[str, pa.Buffer]:
        """All lines by metric."""
        causes = (lag, sample, shown)
        known, texts = self._kept
        if len(known) != len(causes) or any(one is not other for one, other in zip(known, causes, strict=True)):
            texts = self._written(lag, sample, shown)
            self._kept = (causes, texts)
        return texts

    def _written(self, lag: LagJudgement | None, sample: ClusterSample | None, shown: Shown) -> Mapping[str, pa.Buffer]:
        writers = [(family, writer) for family, writer in self._writers if family.signal.name in shown.signals]
        made = {name: _TABLES[name](lag, sample, shown) for name in {family.table for family, _ in writers}}
        tables = {name: table for name, table in made.items() if table is not None}
        labels = {name: _labels(table) for name, table in tables.items()}
        return {
            family.signal.name: writer.column(labels[family.table], combined(tables[family.table][family.column]))
            for family, writer in writers
            if family.table in tables
        }


def _labels(table: pa.Table) -> Mapping[str, pa.Array]:
    """The columns that are labels, escaped, by the names they have in different metrics."""
    escaped = {column: escaped_column(table[column]) for column in {*_COLUMN_OF_LABEL.values()} & {*table.column_names}}
    return {label: escaped[column] for label, column in _COLUMN_OF_LABEL.items() if column in escaped}


def _groups(lag: LagJudgement | None, _: ClusterSample | None, shown: Shown) -> pa.Table | None:
    if lag is None:
        return None
    told = _told(lag, shown)
    judged = LagJudgement(lag.report, told).by_group()
    sums = told.group_by("group_id").aggregate([("lag", "sum", _ALL_KNOWN), ("lag", "max")]).sort_by("group_id")
    is_bound = pc.if_else(pc.is_valid(judged["lag_seconds"]), judged["is_at_least"].cast(pa.int8()), None)
    has_status = pc.if_else(pc.is_valid(judged["status"]), 1, None)
    status = each(lambda code: _STATUS_NAMES[code], combined(judged["status"]))
    columns = {name: judged[name] for name in judged.column_names} | {
        "is_at_least": is_bound,
        "status": status,
        "has_status": has_status,
        "lag_sum": sums["lag_sum"],
        "lag_max": sums["lag_max"],
    }
    return pa.table(columns)


def _unknown(lag: LagJudgement | None, _: ClusterSample | None, shown: Shown) -> pa.Table | None:
    if lag is None:
        return None
    rows = _only(lag.partitions, "group_id", shown.group)
    unknown = rows.filter(pc.is_valid(rows["unknown_reason"]))
    return unknown.group_by(["group_id", "unknown_reason"]).aggregate([([], "count_all")])


def _group_topics(lag: LagJudgement | None, _: ClusterSample | None, shown: Shown) -> pa.Table | None:
    if lag is None:
        return None
    rows = _only(_told(lag, shown), "topic", shown.topic)
    return rows.group_by(["group_id", "topic"]).aggregate([("committed_offset", "sum"), ("lag", "sum", _ALL_KNOWN)])


def _group_partitions(lag: LagJudgement | None, _: ClusterSample | None, shown: Shown) -> pa.Table | None:
    return None if lag is None else _only(_told(lag, shown), "topic", shown.topic)


def _topics(_: LagJudgement | None, sample: ClusterSample | None, shown: Shown) -> pa.Table | None:
    if sample is None:
        return None
    counts = [(topic, sampled.partitions) for topic, sampled in sorted(sample.topics.items()) if shown.topic(topic)]
    return pa.table(
        {
            "topic": pa.array([topic for topic, _ in counts], pa.string()),
            "partitions": pa.array([count for _, count in counts], pa.int64()),
        }
    )


def _partitions(_: LagJudgement | None, sample: ClusterSample | None, shown: Shown) -> pa.Table | None:
    if sample is None:
        return None
    keys = sample.end_offsets.keys() | sample.log_start_offsets.keys()
    table = pa.table(
        {
            "topic": pa.array([topic for topic, _ in keys], pa.string()),
            "partition": pa.array([partition for _, partition in keys], pa.int32()),
            "end_offset": pa.array([sample.end_offsets.get(key) for key in keys], pa.int64()),
            "log_start_offset": pa.array([sample.log_start_offsets.get(key) for key in keys], pa.int64()),
        }
    )
    return _only(table, "topic", shown.topic)


_TABLES: Final[Mapping[str, Callable[[LagJudgement | None, ClusterSample | None, Shown], pa.Table | None]]] = {
    "groups": _groups,
    "unknown": _unknown,
    "group_topics": _group_topics,
    "group_partitions": _group_partitions,
    "topics": _topics,
    "partitions": _partitions,
}
"""How each table is made of a sample, by what it has a row of; None where nothing is known."""


def _told(lag: LagJudgement, shown: Shown) -> pa.Table:
    """Partitions of the groups that are shown and not held back (rule 1)."""
    rows = lag.partitions
    is_held_back = pc.fill_null(pc.equal(rows["unknown_reason"], HELD_BACK), fill_value=False)
    told = rows.filter(pc.invert(is_held_back)) if pc.any(is_held_back).as_py() else rows
    return _only(told, "group_id", shown.group)


def _only(table: pa.Table, column: str, is_shown: Callable[[str], bool]) -> pa.Table:
    """The rows whose name is shown, asked once a name."""
    if is_shown is every_one:
        return table
    encoded = combined(table[column]).dictionary_encode()
    names = encoded.dictionary.to_pylist()
    return table.filter(pa.array(map(is_shown, names), pa.bool_()).take(encoded.indices))
