"""Creates tables from the values of the last sample. Each row describes one group, one topic or one partition.

Null means unknown, except in rule 4.

1. If an open transaction blocks a group, the lag of the group is unknown. The tables of topics and partitions have no
   rows of this group. The table `unknown` contains the number of partitions with unknown lag, for each group and each
   reason.
2. A sum over partitions is known only if the value of each partition is known. A maximum ignores unknown values.
3. The sums of a group include all topics, even topics that the settings do not select.
4. Some values are null if there is no problem. The number of lost records is null instead of 0. If no records will be
   lost within `SOON_SECONDS`, the time until records are lost is null. If the lag is not a lower bound,
   `lag_seconds_is_bound` is null.
5. The table `hot_topics` has one row for each hot topic (`topic_loads`). If only some groups are selected, the table
   contains only topics for which these groups have committed offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.config.names import NameFilter
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.lag.status import status_names
from streaming.evaluation.lag.topic_loads import TopicLoad
from streaming.prometheus.lines import as_one_array

SOON_SECONDS: Final = 86_400
"""Longest exported time until records are lost. Almost every group with lag has a longer time."""

_ALL_KNOWN = pc.ScalarAggregateOptions(skip_nulls=False)
_INT64_LIMIT = 1 << 63


class LagRows(NamedTuple):
    """The rows of one sample for the selected groups.

    `groups` has one row per group. `partitions` has one row per partition with a committed offset. `unblocked` contains
    the rows of `partitions`, except the rows of groups that an open transaction blocks (rule 1). `hot_topics` contains
    the loads of the hot topics (rule 5).
    """

    groups: pa.Table
    partitions: pa.Table
    unblocked: pa.Table
    hot_topics: Sequence[TopicLoad]


def select_lag_rows(lag: LagEvaluation, groups: NameFilter, only: AbstractSet[str] | None = None) -> LagRows:
    """Return the rows of the groups in `only`. If `only` is None, the filter `groups` selects the groups."""
    hot = [load for load in lag.topic_loads.values() if load.is_hot]
    if only is not None:
        of_groups = {load.topic for group_id in only for load in lag.topic_loads_by_group.get(group_id, ())}
        hot = [load for load in hot if load.topic in of_groups]

    def select(table: pa.Table) -> pa.Table:
        if only is None:
            return filter_names(table, "group_id", groups)
        return filter_rows(table, "group_id", lambda names: [name in only for name in names])

    return LagRows(select(lag.groups), select(lag.partitions), select(lag.unblocked), hot)


def _groups(lag: LagRows, _: NameFilter) -> pa.Table:
    rows = _with_status(lag.groups)
    is_bound, lost, seconds = (rows[name] for name in ("lag_seconds_is_bound", "records_lost", "seconds_until_lost"))
    for name, column in (
        ("lag_seconds_is_bound", pc.if_else(is_bound, 1, None)),
        ("records_lost", pc.if_else(pc.greater(lost, 0), lost, None)),
        ("seconds_until_lost", pc.if_else(pc.less(seconds, SOON_SECONDS), seconds, None)),
    ):
        rows = rows.set_column(rows.column_names.index(name), name, column)
    for name in ("last_commit", "offsets_expire"):
        seconds = pc.divide(rows[f"{name}_ms"].cast(pa.float64()), 1000.0)
        rows = rows.append_column(f"{name}_seconds", seconds)
    return rows


def _with_status(rows: pa.Table) -> pa.Table:
    return rows.append_column("has_status", pc.if_else(pc.is_valid(rows["status"]), 1, None))


def _unknown(lag: LagRows, _: NameFilter) -> pa.Table:
    return _count(_unknown_partitions(lag), "unknown_reason")


def _unknown_topics(lag: LagRows, topics: NameFilter) -> pa.Table:
    return _count(filter_names(_unknown_partitions(lag), "topic", topics), "topic")


def _unknown_partitions(lag: LagRows) -> pa.Table:
    return lag.partitions.filter(pc.is_valid(lag.partitions["unknown_reason"]))


def _count(rows: pa.Table, column: str) -> pa.Table:
    return rows.group_by(["group_id", column], use_threads=False).aggregate([([], "count_all")])


def _group_topics(lag: LagRows, topics: NameFilter) -> pa.Table:
    rows = filter_names(lag.unblocked, "topic", topics)
    if rows.num_rows * (pc.max(rows["committed_offset"]).as_py() or 0) >= _INT64_LIMIT:
        # A client committed an offset that no log has. The sum would not fit into an int64.
        committed = rows["committed_offset"].cast(pa.float64(), safe=False)
        rows = rows.set_column(rows.column_names.index("committed_offset"), "committed_offset", committed)
    return rows.group_by(["group_id", "topic"], use_threads=False).aggregate(
        [("committed_offset", "sum"), ("lag", "sum", _ALL_KNOWN)]
    )


def _group_partitions(lag: LagRows, topics: NameFilter) -> pa.Table:
    rows = filter_names(lag.unblocked, "topic", topics)
    columns = {
        name: rows[name] for name in ("group_id", "topic", "partition", "committed_offset", "lag", "lag_seconds")
    }
    return _with_status(pa.table({**columns, "status": status_names(rows["status"])}))


def _topics(sample: ClusterSample, topics: NameFilter) -> pa.Table:
    shown = topics.among(sorted(sample.topics))
    counts = [sample.topics[topic].partitions for topic in shown]
    return pa.table({"topic": pa.array(shown, pa.string()), "partitions": pa.array(counts, pa.int64())})


def _hot_topics(lag: LagRows, topics: NameFilter) -> pa.Table:
    table = pa.table(
        {
            "topic": pa.array([load.topic for load in lag.hot_topics], pa.string()),
            "partition": pa.array([load.hottest_partition for load in lag.hot_topics], pa.int32()),
            "max_to_mean_ratio": pa.array([load.max_to_mean_ratio for load in lag.hot_topics], pa.float64()),
        }
    )
    return filter_names(table, "topic", topics)


def _partitions(sample: ClusterSample, topics: NameFilter) -> pa.Table:
    keys = sample.end_offsets.keys() | sample.log_start_offsets.keys()
    table = pa.table(
        {
            "topic": pa.array([topic for topic, _ in keys], pa.string()),
            "partition": pa.array([partition for _, partition in keys], pa.int32()),
            "end_offset": pa.array([sample.end_offsets.get(key) for key in keys], pa.int64()),
            "log_start_offset": pa.array([sample.log_start_offsets.get(key) for key in keys], pa.int64()),
        }
    )
    return filter_names(table, "topic", topics)


LAG_TABLES: Final[Mapping[str, Callable[[LagRows, NameFilter], pa.Table]]] = {
    "groups": _groups,
    "unknown": _unknown,
    "unknown_topics": _unknown_topics,
    "group_topics": _group_topics,
    "group_partitions": _group_partitions,
    "hot_topics": _hot_topics,
}
"""The functions that create the tables about groups. A table name shows what a row describes."""
SAMPLE_TABLES: Final[Mapping[str, Callable[[ClusterSample, NameFilter], pa.Table]]] = {
    "topics": _topics,
    "partitions": _partitions,
}


def filter_names(table: pa.Table, column: str, names: NameFilter) -> pa.Table:
    """Return the rows whose name in `column` passes the filter."""
    return table if names.passes_all else filter_rows(table, column, names.passing)


def filter_rows(table: pa.Table, column: str, are_shown: Callable[[list[str]], Iterable[bool]]) -> pa.Table:
    """Return the rows for which `are_shown` returns True. `are_shown` receives the distinct names in `column`."""
    encoded = as_one_array(table[column]).dictionary_encode()
    return table.filter(pa.array(are_shown(encoded.dictionary.to_pylist()), pa.bool_()).take(encoded.indices))
