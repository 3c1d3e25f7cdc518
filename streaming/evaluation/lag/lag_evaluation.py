"""Evaluate all partitions of all groups at one sample: lag, lag in seconds, status, and loss by retention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assignors import TopicPartition
from assignors.coordinator import coordinator_partition
from streaming.combine.big_endian import Float64Array
from streaming.evaluation.lag.group_lags import group_lags
from streaming.evaluation.lag.lag import BLOCKED, ClusterSample, LagReport
from streaming.evaluation.lag.lag_seconds import LAG_SECONDS_SCHEMA, end_offset_at, lag_seconds
from streaming.evaluation.lag.next_offsets import FEW_OFFSETS
from streaming.evaluation.lag.rates import RATES_SCHEMA, rates
from streaming.evaluation.lag.retention.expiry import EXPIRY_SCHEMA, Starts, expiry
from streaming.evaluation.lag.retention.lost_records import RETENTION_SCHEMA, Losses, LossKey, retention
from streaming.evaluation.lag.retention.time_retention import RetentionMs, is_only_by_time, seconds_left
from streaming.evaluation.lag.status import RECENT_END_OFFSETS_MS, STATUS_SCHEMA, Tails, status_names, statuses
from streaming.evaluation.lag.stored.commit_windows import Windows
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets
from streaming.evaluation.lag.topic_loads import TopicLoad


@dataclass(frozen=True)
class LagEvaluation:
    """The values of all partitions of all groups at one sample.

    `partitions` has the columns of LAG_SCHEMA, LAG_SECONDS_SCHEMA, STATUS_SCHEMA, RETENTION_SCHEMA, EXPIRY_SCHEMA and
    RATES_SCHEMA. `topic_loads` contains the known loads of all sampled topics. `crossed` contains each pair of group
    and partition for which the log start is between the last two committed offsets (rule 7 of `rates.py`).
    """

    report: LagReport
    partitions: pa.Table
    topic_loads: Mapping[str, TopicLoad] = field(default_factory=dict)
    crossed: frozenset[LossKey] = frozenset()

    @cached_property
    def unblocked(self) -> pa.Table:
        """The rows of all groups, without groups that an open transaction blocks."""
        is_blocked = pc.fill_null(pc.equal(self.partitions["unknown_reason"], BLOCKED), fill_value=False)
        return self.partitions.filter(pc.invert(is_blocked)) if pc.any(is_blocked).as_py() else self.partitions

    @cached_property
    def groups(self) -> pa.Table:
        """One row per group that is not blocked (GROUP_LAGS_SCHEMA). The table is computed once."""
        return group_lags(self.unblocked)

    @cached_property
    def group_ids(self) -> frozenset[str]:
        """The ids of all groups that have committed, including blocked groups."""
        return frozenset(pc.unique(self.partitions["group_id"]).to_pylist())

    @cached_property
    def by_partition(self) -> Mapping[str, Mapping[TopicPartition, int | None]]:
        """The lag in records by group id and topic partition. None if unknown."""
        lags: dict[str, dict[TopicPartition, int | None]] = defaultdict(dict)
        columns = (self.partitions[name].to_pylist() for name in ("group_id", "topic", "partition", "lag"))
        for group_id, topic, partition, records in zip(*columns, strict=True):
            lags[group_id][topic, partition] = records
        return lags

    @cached_property
    def topics_by_group(self) -> Mapping[str, tuple[str, ...]]:
        """For each group: the topics for which it has committed offsets, sorted."""
        topics: dict[str, tuple[str, ...]] = defaultdict(tuple)
        pairs = self.partitions.group_by(["group_id", "topic"], use_threads=False).aggregate([]).sort_by("topic")
        for group_id, topic in zip(pairs["group_id"].to_pylist(), pairs["topic"].to_pylist(), strict=True):
            topics[group_id] += (topic,)
        return topics

    @cached_property
    def topic_loads_by_group(self) -> Mapping[str, tuple[TopicLoad, ...]]:
        """For each group: the known loads of its topics in `topics_by_group`, sorted by topic."""
        if not self.topic_loads:
            return {}
        return {
            group_id: tuple(self.topic_loads[topic] for topic in topics if topic in self.topic_loads)
            for group_id, topics in self.topics_by_group.items()
            if not self.topic_loads.keys().isdisjoint(topics)
        }

    def rows_of_topic(self, topic: str) -> Sequence[Mapping[str, Any]]:
        """Return the rows of one topic's partitions for all groups. `status` is the status name."""
        return self._rows("topic", topic)

    def rows_of(self, group_id: str) -> Sequence[Mapping[str, Any]]:
        """Return the rows of one group's partitions. `status` is the status name.

        Return no rows if the group id contains a lone surrogate, because Arrow cannot store it. Such a group id can
        come from a URL, but not from a record.
        """
        return self._rows("group_id", group_id)

    def _rows(self, column: str, name: str) -> Sequence[Mapping[str, Any]]:
        if any("\ud800" <= character <= "\udfff" for character in name):
            return ()
        rows = self.partitions.filter(pc.equal(self.partitions[column], name))
        at = rows.column_names.index("status")
        named: Sequence[Mapping[str, Any]] = rows.set_column(at, "status", status_names(rows["status"])).to_pylist()
        return named


@dataclass(frozen=True, slots=True)
class RetentionInputs:
    """The inputs that concern the retention of records and of committed offsets.

    `earlier` and `commits_read_ms` are inputs of `retention`. `topics` and `without_size_limit` are inputs of
    `time_retention.py`. `expiry_starts` and `offsets_retention_ms` are inputs of `expiry.py`.
    """

    earlier: Losses = field(default_factory=dict)
    topics: RetentionMs = field(default_factory=dict)
    expiry_starts: Starts = field(default_factory=dict)
    offsets_retention_ms: int | None = None
    without_size_limit: frozenset[str] = frozenset()
    commits_read_ms: pa.Array | None = None


NO_RETENTION_INPUTS = RetentionInputs()


def evaluate_lag(  # noqa: PLR0913, PLR0917 - the inputs of one evaluation
    report: LagReport,
    ends: SampledOffsets,
    starts: SampledOffsets,
    windows: Windows | None,
    read_up_to_ms: pa.Array,
    allowed_lag: int = 0,
    retained: RetentionInputs = NO_RETENTION_INPUTS,
    consumed: Float64Array | None = None,
) -> LagEvaluation:
    """Evaluate all rows of the report. If `windows` is None, all statuses are unknown.

    `ends` and `starts` must contain the report's sample. `consumed` contains the consume rates of the rows
    (`CommitPoints.rates`), or None if unknown.
    """
    partitions = report.partitions
    seconds = lag_seconds(report, ends)
    columns = [*partitions.columns, *seconds.columns]
    if windows is None:
        columns += [pa.nulls(partitions.num_rows, field.type) for field in STATUS_SCHEMA]
    else:
        rows = ends.rows(partitions["topic"].combine_chunks(), partitions["partition"].to_numpy())
        old_ms = read_up_to_ms.fill_null(0).to_numpy() - RECENT_END_OFFSETS_MS
        end_offsets = end_offset_at(ends, rows, old_ms)
        reached_end = end_offsets <= partitions["next_offset"].to_numpy()
        lag = partitions["lag"].combine_chunks()
        columns += statuses(windows, lag, read_up_to_ms, reached_end, allowed_lag, _tails(partitions)).columns
    left = seconds_left(partitions["topic"], seconds, retained.topics)
    only_by_time = is_only_by_time(partitions["topic"], left, retained.topics, retained.without_size_limit)
    columns += retention(report, starts, retained.earlier, left, only_by_time, retained.commits_read_ms).columns
    columns += expiry(partitions, retained.expiry_starts, retained.offsets_retention_ms, report.sampled_at_ms).columns
    columns += rates(report, ends, consumed).columns
    schemas = (partitions.schema, LAG_SECONDS_SCHEMA, STATUS_SCHEMA, RETENTION_SCHEMA, EXPIRY_SCHEMA, RATES_SCHEMA)
    return LagEvaluation(report, pa.table(columns, schema=pa.schema([field for schema in schemas for field in schema])))


def _tails(partitions: pa.Table) -> Tails:
    few = pc.fill_null(pc.less_equal(partitions["lag"], FEW_OFFSETS), fill_value=False)
    doubtful = pc.or_(few, partitions["has_transactions"])
    maybe_only_markers = pc.and_(doubtful, pc.is_null(partitions["record_offset"]))
    return Tails(partitions["is_blocked"].to_numpy(), maybe_only_markers.to_numpy())


def read_up_to_of_groups(
    group_ids: pa.ChunkedArray, times_ms: Mapping[int, int | None], sample: ClusterSample, polled_at_ms: int | None
) -> pa.Array:
    """Return for each row the value in `times_ms` for the group's partition of `__consumer_offsets`.

    Usually, `times_ms` contains the times up to which the monitor has read the partitions.

    In the polling mode, the monitor reads no log. So the result is `polled_at_ms`, the time of the last poll. For a
    group in `ClusterSample.refused_groups`, the result is null, because the poll does not contain the group's commits.
    """
    encoded = group_ids.combine_chunks().dictionary_encode()
    partitions = sample.offsets_topic_partitions
    of_group = [
        None
        if group_id in sample.refused_groups
        else (times_ms.get(coordinator_partition(group_id, partitions)) if partitions else polled_at_ms)
        for group_id in encoded.dictionary.to_pylist()
    ]
    return pa.array(of_group, pa.int64()).take(encoded.indices)


def observed_rows(report: LagReport) -> np.ndarray:
    """Return for each row whether its lag is known."""
    known: np.ndarray = pc.is_valid(report.partitions["lag"]).to_numpy()
    return known
