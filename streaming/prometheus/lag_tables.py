"""Creates tables from the values of the last sample. Each row describes one group, one topic or one partition.

Null means unknown.

Rules:

1. The lag of groups that are blocked by an open transaction is unknown, so it is not in the tables. The table `unknown`
   contains the number of partitions of these groups, and the reason.
2. A sum over partitions is known only if the value of each partition is known. A maximum ignores unknown values.
3. The sums of a group include all topics of the group, even topics that the settings do not select.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from streaming.config.names import NameFilter
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.lag.lag_seconds import AT_LEAST
from streaming.evaluation.lag.status import status_names
from streaming.prometheus.lines import as_one_array
from streaming.prometheus.metric_selection import MetricSelection

_ALL_KNOWN = pc.ScalarAggregateOptions(skip_nulls=False)


def _groups(lag: LagEvaluation | None, _: ClusterSample | None, selection: MetricSelection) -> pa.Table | None:
    if lag is None:
        return None
    rows = filter_names(lag.groups, "group_id", selection.groups)
    last_commit_seconds = pc.divide(rows["last_commit_ms"].cast(pa.float64()), 1000)
    rows = rows.append_column("last_commit_seconds", last_commit_seconds)
    rows = rows.append_column("offsets_expire_seconds", pc.divide(rows["offsets_expire_ms"].cast(pa.float64()), 1000.0))
    at = rows.column_names.index("lag_seconds_is_bound")
    return _with_status(rows.set_column(at, "lag_seconds_is_bound", rows["lag_seconds_is_bound"].cast(pa.int8())))


def _with_status(rows: pa.Table) -> pa.Table:
    """Return the rows with an additional column `has_status`. Its value is 1 if the status is known, otherwise null."""
    return rows.append_column("has_status", pc.if_else(pc.is_valid(rows["status"]), 1, None))


def _unknown(lag: LagEvaluation | None, _: ClusterSample | None, selection: MetricSelection) -> pa.Table | None:
    if lag is None:
        return None
    rows = filter_names(lag.partitions, "group_id", selection.groups)
    unknown = rows.filter(pc.is_valid(rows["unknown_reason"]))
    return unknown.group_by(["group_id", "unknown_reason"]).aggregate([([], "count_all")])


def _group_topics(lag: LagEvaluation | None, _: ClusterSample | None, selection: MetricSelection) -> pa.Table | None:
    if lag is None:
        return None
    rows = filter_names(_visible_partitions(lag, selection), "topic", selection.topics)
    return rows.group_by(["group_id", "topic"]).aggregate([("committed_offset", "sum"), ("lag", "sum", _ALL_KNOWN)])


def _group_partitions(
    lag: LagEvaluation | None, _: ClusterSample | None, selection: MetricSelection
) -> pa.Table | None:
    if lag is None:
        return None
    rows = filter_names(_visible_partitions(lag, selection), "topic", selection.topics)
    is_bound = pc.if_else(pc.equal(rows["lag_seconds_kind"].cast(pa.string()), AT_LEAST), 1, None)
    columns = {
        name: rows[name] for name in ("group_id", "topic", "partition", "committed_offset", "lag", "lag_seconds")
    }
    return _with_status(pa.table({**columns, "is_bound": is_bound, "status": status_names(rows["status"])}))


def _topics(_: LagEvaluation | None, sample: ClusterSample | None, selection: MetricSelection) -> pa.Table | None:
    if sample is None:
        return None
    topics = selection.topics.among(sorted(sample.topics))
    counts = [sample.topics[topic].partitions for topic in topics]
    return pa.table({"topic": pa.array(topics, pa.string()), "partitions": pa.array(counts, pa.int64())})


def _partitions(_: LagEvaluation | None, sample: ClusterSample | None, selection: MetricSelection) -> pa.Table | None:
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
    return filter_names(table, "topic", selection.topics)


TABLES: Final[
    Mapping[str, Callable[[LagEvaluation | None, ClusterSample | None, MetricSelection], pa.Table | None]]
] = {
    "groups": _groups,
    "unknown": _unknown,
    "group_topics": _group_topics,
    "group_partitions": _group_partitions,
    "topics": _topics,
    "partitions": _partitions,
}
"""The functions that create the tables from a sample. The keys are table names.

The table name shows what one row of the table describes. A function returns None if there is no sample yet.
"""


def _visible_partitions(lag: LagEvaluation, selection: MetricSelection) -> pa.Table:
    """Return the partitions of the selected groups, except groups that an open transaction blocks (rule 1)."""
    return filter_names(lag.unblocked, "group_id", selection.groups)


def filter_names(table: pa.Table, column: str, names: NameFilter) -> pa.Table:
    """Return the rows whose name in `column` is selected by the settings."""
    return table if names.passes_all else filter_rows(table, column, lambda found: pa.array(names.passing(found)))


def filter_rows(table: pa.Table, column: str, are_shown: Callable[[list[str]], pa.Array]) -> pa.Table:
    """Return the rows whose name in `column` is shown. `are_shown` is called once, with all different names."""
    encoded = as_one_array(table[column]).dictionary_encode()
    return table.filter(are_shown(encoded.dictionary.to_pylist()).take(encoded.indices))
