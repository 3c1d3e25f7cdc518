"""What is told from the last sample, in whole columns: lag in records and seconds, status, what retention takes, ends.

Tables (`lag_tables`) are made once for a sample, columns of text once for a sample and a cut (`exposure`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.wire import Int64Array
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.prometheus.counted_lines import Counted
from streaming.prometheus.exposition import Text
from streaming.prometheus.lag_tables import TABLES, by_name
from streaming.prometheus.lines import Writer, combined, escaped_column
from streaming.prometheus.metric_selection import MetricSelection
from streaming.prometheus.series_limit import WHOLE, SeriesLimit
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
    """A metric, and the column of a table (of `lag_tables`) that has its values; null is no series."""

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
    ColumnFamily(partitions.TOPIC_LAG, "group_topics", "lag_sum"),
    ColumnFamily(partitions.PARTITION_LAG, "group_partitions", "lag"),
    ColumnFamily(partitions.PARTITION_LAG_SECONDS, "group_partitions", "lag_seconds"),
    ColumnFamily(partitions.PARTITION_LAG_SECONDS_IS_BOUND, "group_partitions", "is_bound"),
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


class Written(NamedTuple):
    """A metric and who writes it."""

    family: ColumnFamily
    writer: Writer


class ColumnTexts:
    """The lines of these metrics for a cluster, kept for one sample. Several threads may ask."""

    def __init__(self, constant: Callable[[Signal], Mapping[str, str]], shown: MetricSelection) -> None:
        self._shown = shown
        self._written = [
            Written(family, Writer(family.signal, constant(family.signal)))
            for family in COLUMN_FAMILIES
            if family.signal.name in shown.signals
        ]
        self._kept: tuple[LagEvaluation | None, ClusterSample | None, ColumnLines] | None = None

    def lines(self, lag: LagEvaluation | None, sample: ClusterSample | None) -> ColumnLines:
        """All lines of a sample."""
        kept = self._kept
        if kept is None or kept[0] is not lag or kept[1] is not sample:
            names = {one.family.table for one in self._written}
            made = {name: TABLES[name](lag, sample, self._shown) for name in names}
            tables = {name: table for name, table in made.items() if table is not None}
            kept = self._kept = (
                lag,
                sample,
                ColumnLines([one for one in self._written if one.family.table in tables], tables),
            )
        return kept[2]


class ColumnLines:
    """The lines of one sample."""

    def __init__(self, written: Sequence[Written], tables: Mapping[str, pa.Table]) -> None:
        self._tables = tables
        self._of_table = {name: [one for one in written if one.family.table == name] for name in tables}
        self._kept: tuple[SeriesLimit, Mapping[str, Text]] | None = None

    def series(self) -> int:
        """How many there are in all."""
        return sum(
            len(column) - column.null_count
            for name, written in self._of_table.items()
            for column in (self._tables[name][one.family.column] for one in written)
        )

    def counted(self) -> Iterator[Counted]:
        """How many there are of each group, or of topics."""
        for name, written in self._of_table.items():
            table = self._tables[name]
            valid = np.stack([pc.is_valid(table[one.family.column]).to_numpy() for one in written])
            of_row: Int64Array = valid.sum(axis=0, dtype=np.int64)
            if "group_id" in table.column_names:
                encoded = combined(table["group_id"]).dictionary_encode()
                of_group = np.bincount(encoded.indices.to_numpy(), of_row, len(encoded.dictionary)).astype(np.int64)
                yield Counted(_granularity(written), encoded.dictionary.to_pylist(), of_group)
            else:
                yield Counted(_granularity(written), None, of_row)

    def text(self, cut: SeriesLimit) -> Mapping[str, Text]:
        """The lines that are shown, by metric."""
        kept = self._kept
        if kept is None or kept[0] != cut:
            kept = self._kept = (cut, dict(self._lines(cut)))
        return kept[1]

    def _lines(self, cut: SeriesLimit) -> Iterator[tuple[str, Text]]:
        for name, written in self._of_table.items():
            table = _left(self._tables[name], _granularity(written), cut)
            labels = _labels(table)
            for (signal, _, column), writer in written:
                yield signal.name, writer.column(labels, combined(table[column]))


def _granularity(written: Sequence[Written]) -> Granularity:
    """That of a table's metrics: what it has a row of."""
    return written[0].family.signal.granularity


def _left(table: pa.Table, granularity: Granularity, cut: SeriesLimit) -> pa.Table:
    """The rows that are shown."""
    if cut == WHOLE:
        return table
    if "group_id" not in table.column_names:
        return table if cut.shows_topics(granularity) else table.slice(0, 0)
    return by_name(
        table, "group_id", lambda names: pa.array([cut.shows(name, granularity) for name in names], pa.bool_())
    )


def _labels(table: pa.Table) -> Mapping[str, pa.Array]:
    """The columns that are labels, escaped, by the names they have in different metrics."""
    escaped = {column: escaped_column(table[column]) for column in {*_COLUMN_OF_LABEL.values()} & {*table.column_names}}
    return {label: escaped[column] for label, column in _COLUMN_OF_LABEL.items() if column in escaped}
