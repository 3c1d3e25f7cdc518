"""What the last sample tells, as tables with a row for each thing that it is told of. Null is not known.

Rules:

1. Groups that an open transaction holds back have no lag; that they have none is told by reason.
2. A sum over partitions is known where each part is; the most of a column is the most of what is known.
3. Topics that are not asked for are in the sums of groups all the same.
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
from streaming.prometheus.lines import combined
from streaming.prometheus.metric_selection import MetricSelection

_ALL_KNOWN = pc.ScalarAggregateOptions(skip_nulls=False)


def _groups(lag: LagEvaluation | None, _: ClusterSample | None, shown: MetricSelection) -> pa.Table | None:
    if lag is None:
        return None
    rows = only(lag.groups, "group_id", shown.groups)
    at = rows.column_names.index("lag_seconds_is_bound")
    return _with_status(rows.set_column(at, "lag_seconds_is_bound", rows["lag_seconds_is_bound"].cast(pa.int8())))


def _with_status(rows: pa.Table) -> pa.Table:
    """The rows with 1 where there is a status."""
    return rows.append_column("has_status", pc.if_else(pc.is_valid(rows["status"]), 1, None))


def _unknown(lag: LagEvaluation | None, _: ClusterSample | None, shown: MetricSelection) -> pa.Table | None:
    if lag is None:
        return None
    rows = only(lag.partitions, "group_id", shown.groups)
    unknown = rows.filter(pc.is_valid(rows["unknown_reason"]))
    return unknown.group_by(["group_id", "unknown_reason"]).aggregate([([], "count_all")])


def _group_topics(lag: LagEvaluation | None, _: ClusterSample | None, shown: MetricSelection) -> pa.Table | None:
    if lag is None:
        return None
    rows = only(_reported(lag, shown), "topic", shown.topics)
    return rows.group_by(["group_id", "topic"]).aggregate([("committed_offset", "sum"), ("lag", "sum", _ALL_KNOWN)])


def _group_partitions(lag: LagEvaluation | None, _: ClusterSample | None, shown: MetricSelection) -> pa.Table | None:
    if lag is None:
        return None
    rows = only(_reported(lag, shown), "topic", shown.topics)
    is_bound = pc.if_else(pc.equal(rows["lag_seconds_kind"].cast(pa.string()), AT_LEAST), 1, None)
    columns = {
        name: rows[name] for name in ("group_id", "topic", "partition", "committed_offset", "lag", "lag_seconds")
    }
    return _with_status(pa.table({**columns, "is_bound": is_bound, "status": status_names(rows["status"])}))


def _topics(_: LagEvaluation | None, sample: ClusterSample | None, shown: MetricSelection) -> pa.Table | None:
    if sample is None:
        return None
    topics = shown.topics.among(sorted(sample.topics))
    counts = [sample.topics[topic].partitions for topic in topics]
    return pa.table({"topic": pa.array(topics, pa.string()), "partitions": pa.array(counts, pa.int64())})


def _partitions(_: LagEvaluation | None, sample: ClusterSample | None, shown: MetricSelection) -> pa.Table | None:
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
    return only(table, "topic", shown.topics)


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
"""How each table is made of a sample, by what it has a row of; None where nothing is known."""


def _reported(lag: LagEvaluation, shown: MetricSelection) -> pa.Table:
    """Partitions of the groups that are shown and not held back (rule 1)."""
    return only(lag.unblocked, "group_id", shown.groups)


def only(table: pa.Table, column: str, names: NameFilter) -> pa.Table:
    """The rows whose name is asked for."""
    return table if names.passes_all else by_name(table, column, lambda found: pa.array(names.passing(found)))


def by_name(table: pa.Table, column: str, are_shown: Callable[[list[str]], pa.Array]) -> pa.Table:
    """The rows whose name is shown, asked once a name."""
    encoded = combined(table[column]).dictionary_encode()
    return table.filter(are_shown(encoded.dictionary.to_pylist()).take(encoded.indices))
