"""Creates the metrics of the last sample: lag, status, records lost to retention, and end offsets.

The module computes and writes the metrics by column, not by row. `lag_tables` creates the tables once per sample. While
the sample and the limit (`series_limit`) stay the same, a scrape uses the text of the previous scrape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import Int64Array
from streaming.config.names import NameFilter
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.prometheus.counted_lines import SeriesCounts
from streaming.prometheus.exposition import Text
from streaming.prometheus.lag_tables import LAG_TABLES, SAMPLE_TABLES, filter_rows, select_lag_rows
from streaming.prometheus.lines import Writer, as_one_array, escape_labels
from streaming.prometheus.series_limit import NO_LIMIT, SeriesLimit
from streaming.signals import Granularity, Signal, kafka_exporter, kafka_lag_exporter, partitions
from streaming.signals import lag as signals

_COLUMN_OF_LABEL: Final = {
    "group": "group_id",
    "consumergroup": "group_id",
    "topic": "topic",
    "partition": "partition",
    "reason": "unknown_reason",
    "status": "status",
}


class ColumnFamily(NamedTuple):
    """A metric, and the column in `lag_tables` that contains its values. A null value has no series."""

    signal: Signal
    table: str
    column: str


COLUMN_FAMILIES: Final = (
    ColumnFamily(signals.GROUP_LAG, "groups", "lag"),
    ColumnFamily(signals.GROUP_LAG_SECONDS, "groups", "lag_seconds"),
    ColumnFamily(signals.GROUP_LAG_SECONDS_IS_BOUND, "groups", "lag_seconds_is_bound"),
    ColumnFamily(signals.LAG_UNKNOWN_PARTITIONS, "unknown", "count_all"),
    ColumnFamily(signals.GROUP_BLOCKED_PARTITIONS, "groups", "blocked_partitions"),
    ColumnFamily(signals.GROUP_STATUS, "groups", "has_status"),
    ColumnFamily(signals.GROUP_STATUS_COMPLETENESS, "groups", "completeness"),
    ColumnFamily(signals.GROUP_RECORDS_LOST, "groups", "records_lost"),
    ColumnFamily(signals.GROUP_SECONDS_UNTIL_LOST, "groups", "seconds_until_lost"),
    ColumnFamily(signals.GROUP_LAST_COMMIT_TIMESTAMP_SECONDS, "groups", "last_commit_seconds"),
    ColumnFamily(signals.GROUP_CONSUMED_RECORDS_PER_SECOND, "groups", "consumed_records_per_second"),
    ColumnFamily(signals.GROUP_PRODUCED_RECORDS_PER_SECOND, "groups", "produced_records_per_second"),
    ColumnFamily(signals.GROUP_CATCH_UP_SECONDS, "groups", "catch_up_seconds"),
    ColumnFamily(signals.GROUP_OFFSETS_EXPIRE_TIMESTAMP_SECONDS, "groups", "offsets_expire_seconds"),
    ColumnFamily(partitions.TOPIC_LAG, "group_topics", "lag_sum"),
    ColumnFamily(partitions.TOPIC_LAG_UNKNOWN_PARTITIONS, "unknown_topics", "count_all"),
    ColumnFamily(partitions.TOPIC_HOTTEST_PARTITION_RATIO, "hot_topics", "max_to_mean_ratio"),
    ColumnFamily(partitions.PARTITION_LAG, "group_partitions", "lag"),
    ColumnFamily(partitions.PARTITION_LAG_SECONDS, "group_partitions", "lag_seconds"),
    ColumnFamily(partitions.PARTITION_STATUS, "group_partitions", "has_status"),
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
    ColumnFamily(kafka_lag_exporter.GROUP_MAX_LAG, "groups", "max_partition_lag"),
    ColumnFamily(kafka_lag_exporter.GROUP_MAX_LAG_SECONDS, "groups", "lag_seconds"),
    ColumnFamily(kafka_lag_exporter.GROUP_SUM_LAG, "groups", "lag"),
    ColumnFamily(kafka_lag_exporter.GROUP_TOPIC_SUM_LAG, "group_topics", "lag_sum"),
    ColumnFamily(kafka_lag_exporter.PARTITION_LATEST_OFFSET, "partitions", "end_offset"),
    ColumnFamily(kafka_lag_exporter.PARTITION_EARLIEST_OFFSET, "partitions", "log_start_offset"),
)


class FamilyWriter(NamedTuple):
    """A metric, and the writer of its lines."""

    family: ColumnFamily
    writer: Writer


class ColumnTexts:
    """Caches the lines of several lag metrics of a cluster, for one sample.

    Several threads can call `lines` at the same time.
    """

    def __init__(
        self,
        families: Iterable[ColumnFamily],
        constant: Callable[[Signal], Mapping[str, str]],
        groups: NameFilter,
        topics: NameFilter,
    ) -> None:
        self._groups, self._topics = groups, topics
        self._writers = [FamilyWriter(family, Writer(family.signal, constant(family.signal))) for family in families]
        self._cache: tuple[_SampleInputs, ColumnLines] | None = None

    def lines(
        self, lag: LagEvaluation | None, sample: ClusterSample | None, only: AbstractSet[str] | None = None
    ) -> ColumnLines:
        """Return the lines of all metrics for one sample. If `only` is set, return only the lines of these groups."""
        inputs, cached = _SampleInputs(lag, sample, only), self._cache
        if cached is None or not inputs.is_same(cached[0]):
            cached = self._cache = (inputs, self._make_lines(inputs))
        return cached[1]

    def _make_lines(self, inputs: _SampleInputs) -> ColumnLines:
        lag, sample, only = inputs
        names, tables = {one.family.table for one in self._writers}, dict[str, pa.Table]()
        if lag is not None and self._writers:
            rows = select_lag_rows(lag, self._groups, only)
            tables |= {name: make(rows, self._topics) for name, make in LAG_TABLES.items() if name in names}
        if sample is not None:
            tables |= {name: make(sample, self._topics) for name, make in SAMPLE_TABLES.items() if name in names}
        return ColumnLines([one for one in self._writers if one.family.table in tables], tables)


class _SampleInputs(NamedTuple):
    lag: LagEvaluation | None
    sample: ClusterSample | None
    only: AbstractSet[str] | None

    def is_same(self, other: _SampleInputs) -> bool:
        return self.lag is other.lag and self.sample is other.sample and self.only == other.only


class ColumnLines:
    """The lines of all metrics for one sample. Caches the text until the limit changes."""

    def __init__(self, writers: Sequence[FamilyWriter], tables: Mapping[str, pa.Table]) -> None:
        self._tables = tables
        self._writers: dict[tuple[str, Granularity], list[FamilyWriter]] = {}
        """The writers by table and granularity, because the limit selects the rows of a table by granularity."""
        for one in writers:
            self._writers.setdefault((one.family.table, one.family.signal.granularity), []).append(one)
        self._cache: tuple[SeriesLimit, Mapping[str, Text]] | None = None

    def count_series(self) -> int:
        """Return the number of series, including dropped series."""
        return sum(
            len(column) - column.null_count
            for (name, _), writers in self._writers.items()
            for column in (self._tables[name][one.family.column] for one in writers)
        )

    def count_by_group(self) -> Iterator[SeriesCounts]:
        """Return the numbers of series of each group and of topics, including dropped series."""
        for (name, granularity), writers in self._writers.items():
            table = self._tables[name]
            valid = np.stack([pc.is_valid(table[one.family.column]).to_numpy() for one in writers])
            by_row: Int64Array = valid.sum(axis=0, dtype=np.int64)
            if "group_id" in table.column_names:
                encoded = as_one_array(table["group_id"]).dictionary_encode()
                by_group = np.bincount(encoded.indices.to_numpy(), by_row, len(encoded.dictionary)).astype(np.int64)
                yield SeriesCounts(granularity, encoded.dictionary.to_pylist(), by_group)
            else:
                yield SeriesCounts(granularity, None, by_row)

    def text(self, limit: SeriesLimit) -> Mapping[str, Text]:
        """Return the lines of the shown series. The keys are metric names."""
        cached = self._cache
        if cached is None or cached[0] != limit:
            cached = self._cache = (limit, dict(self._lines(limit)))
        return cached[1]

    def _lines(self, limit: SeriesLimit) -> Iterator[tuple[str, Text]]:
        for (name, granularity), writers in self._writers.items():
            table = _shown_rows(self._tables[name], granularity, limit)
            labels = _labels(table)
            for (signal, _, column), writer in writers:
                yield signal.name, writer.column(labels, as_one_array(table[column]))


def _shown_rows(table: pa.Table, granularity: Granularity, limit: SeriesLimit) -> pa.Table:
    if limit == NO_LIMIT:
        return table
    if "group_id" not in table.column_names:
        return table if limit.shows_topics(granularity) else table.slice(0, 0)
    return filter_rows(table, "group_id", lambda names: [limit.shows(name, granularity) for name in names])


def _labels(table: pa.Table) -> Mapping[str, pa.Array]:
    """Return for each label name the column of escaped label values. Several label names can have the same column."""
    escaped = {column: escape_labels(table[column]) for column in {*_COLUMN_OF_LABEL.values()} & {*table.column_names}}
    return {label: escaped[column] for label, column in _COLUMN_OF_LABEL.items() if column in escaped}
