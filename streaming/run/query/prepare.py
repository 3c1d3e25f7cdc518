"""What a run stands on: a checkpoint and tables that fit each other, made or checked.

A new checkpoint reads the topic from its start, over tables that may have rows already. So when it is made, the tables'
own content is written down beside it (`Bootstrap`): positions that need no second row, and the totals each group had.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from streaming.combine.wire import Int64Array
from streaming.config.load import Settings
from streaming.config.settings import ADMIN_API_SOURCE
from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import TableDamagedError
from streaming.delta.tables import (
    ASSIGNMENT_DRIFT,
    ASSIGNMENT_IMBALANCE,
    COMMIT_GAPS,
    GROUP_GENERATIONS,
    QUARANTINE,
    REBALANCES,
    WHAT_IF,
    Table,
)
from streaming.evaluation.group_update import GROUP_CODEC, GroupState
from streaming.evaluation.rebalances.rebalance_history import RebalanceHistory, RebalanceTotals
from streaming.events import POLLED_PARTITION
from streaming.group.snapshot import GroupSnapshot, GroupTotals, Resume
from streaming.spark.causes import plain_cause
from streaming.spark.checkpoint import (
    CheckpointDamagedError,
    check_identity,
    last_begun_batch,
    new_identity,
    read_identity,
    write_identity,
)
from streaming.spark.checkpoint_files import FEEDBACK_FOLDER, checksum
from streaming.spark.files import Files

_KEYED_BY_POSITION = (
    GROUP_GENERATIONS,
    REBALANCES,
    COMMIT_GAPS,
    ASSIGNMENT_DRIFT,
    ASSIGNMENT_IMBALANCE,
    WHAT_IF,
    QUARANTINE,
)
_OFFSET_BITS = 48


class InitialState(msgspec.Struct, frozen=True):
    """Stored group records a new checkpoint starts from, by group id."""

    version: int = GROUP_CODEC.version
    records: dict[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """What the tables held when the checkpoint was made: sorted position numbers by table name, and seeds."""

    positions: Mapping[str, Int64Array] = field(default_factory=dict)
    initial_state: InitialState = field(default_factory=InitialState)


def position_numbers(kafka_partitions: pa.ChunkedArray, kafka_offsets: pa.ChunkedArray) -> Int64Array:
    """Positions as single numbers, so that a million of them are compared at once."""
    partitions = kafka_partitions.to_numpy().astype(np.int64)
    numbers: Int64Array = (partitions << _OFFSET_BITS) | kafka_offsets.to_numpy()
    return numbers


def prepare_checkpoint(
    session: SparkSession, settings: Settings, files: Files, tables: DeltaTables
) -> tuple[DeltaTables, Bootstrap]:
    """Make the checkpoint or check it; open the tables. Raises CheckpointError or TableVersionError, each by name."""
    identity = read_identity(files)
    if identity is None:
        return make_checkpoint(session, settings, files, tables)
    cluster, shuffle_partitions = settings.kafka.cluster, settings.spark.shuffle_partitions
    check_identity(identity, cluster, shuffle_partitions, settings.paths.checkpoint, settings.source.kind)
    tables.open_all()
    own_tables = tables.for_checkpoint(identity.checkpoint_id)
    check_age(files, own_tables.last_batch())
    files.make_folder(FEEDBACK_FOLDER)  # the query's second source cannot do without it, and needs no file in it
    return own_tables, _read_origin(files)


def check_age(files: Files, last_written: int) -> None:
    """Refuse a checkpoint that is older than the tables: they would leave out its next batches as repeated."""
    last_begun = last_begun_batch(files)
    if last_written > last_begun:
        raise CheckpointDamagedError(
            files.uri(""),
            f"it is older than the tables: ends at batch {last_begun}, and they have batch {last_written}",
        )


def make_checkpoint(
    session: SparkSession, settings: Settings, files: Files, tables: DeltaTables
) -> tuple[DeltaTables, Bootstrap]:
    """Make a checkpoint where there is none. It is one when its identity is written, which is done last."""
    cluster, source = settings.kafka.cluster, settings.source.kind
    tables.open_all()
    try:
        bootstrap = origin_of(session, tables, cluster, is_polled=source == ADMIN_API_SOURCE)
    except (PySparkException, Py4JJavaError) as failure:
        raise TableDamagedError(
            f"tables {tables.root} cannot be read ({plain_cause(failure)}): check their disk, or run"
            " `rebalance-monitor rebuild --repair-tables`, which keeps what it replaces"
        ) from failure
    checksums = _write_origin(files, bootstrap)
    identity = new_identity(cluster, settings.spark.shuffle_partitions, source, checksums)
    files.make_folder(FEEDBACK_FOLDER)
    write_identity(files, identity)
    return tables.for_checkpoint(identity.checkpoint_id), bootstrap


def origin_of(session: SparkSession, tables: DeltaTables, cluster: str, *, is_polled: bool) -> Bootstrap:
    """Read what the tables hold of this cluster. Groups go on counting from rows of their source's own kind."""
    positions = {table.name: _positions(session, tables, table, cluster) for table in _KEYED_BY_POSITION}
    if not len(positions[GROUP_GENERATIONS.name]):
        return Bootstrap(positions)
    return Bootstrap(positions, _initial_state(session, tables, cluster, is_polled=is_polled))


def _positions(session: SparkSession, tables: DeltaTables, table: Table, cluster: str) -> Int64Array:
    if tables.is_empty(table):
        return np.empty(0, dtype=np.int64)
    rows = session.read.format("delta").load(tables.path(table)).where(F.col("cluster") == cluster)
    if "sampled_time" in rows.columns:
        rows = rows.where(F.col("sampled_time").isNull())
    found = rows.select("offsets_topic_partition", "offsets_topic_offset").distinct().toArrow()
    return np.sort(position_numbers(found["offsets_topic_partition"], found["offsets_topic_offset"]))


def _initial_state(session: SparkSession, tables: DeltaTables, cluster: str, *, is_polled: bool) -> InitialState:
    of_source = (F.col("offsets_topic_partition") == POLLED_PARTITION) == F.lit(is_polled)
    of_cluster = (F.col("cluster") == cluster) & of_source
    rebalances = {row["group_id"]: row for row in _last_rows(session, tables, REBALANCES, of_cluster)}
    generations = _last_rows(session, tables, GROUP_GENERATIONS, of_cluster)
    records = {
        row["group_id"]: GroupState(_seed(row), rebalance_history=_rebalance_history(rebalances.get(row["group_id"])))
        for row in generations
    }
    return InitialState(records={group_id: GROUP_CODEC.encode(record)[1] for group_id, record in records.items()})


def _last_rows(session: SparkSession, tables: DeltaTables, table: Table, of_cluster: Column) -> list[dict[str, Any]]:
    """Each group's last row, without its members.

    In one partition that is the row of the highest offset. The end of a group that no record tells (Gone) has the
    offset of the group's last record and a later time. Of two partitions the later time decides: once a group has
    moved, nothing more is told of it in the earlier one.
    """
    if tables.is_empty(table):
        return []
    rows = session.read.format("delta").load(tables.path(table)).where(of_cluster)
    kept = [name for name in rows.columns if name not in {"members", "changes", "date"}]
    last_of_all = F.max_by(F.struct(*kept), F.struct("offsets_topic_offset", "record_time")).alias("last")
    last = rows.groupBy("group_id", "offsets_topic_partition").agg(last_of_all)
    return last_by_group(last.select("last.*").toArrow().to_pylist())


def last_by_group(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The latest row of each group, of the last rows of each partition it was in."""
    latest: dict[str, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["record_time"]):
        latest[row["group_id"]] = row
    return list(latest.values())


def _rebalance_history(row: Mapping[str, Any] | None) -> RebalanceHistory:
    """A story that is to be read again and goes on counting after its last row."""
    if row is None:
        return RebalanceHistory()
    totals = RebalanceTotals(
        {of["cause"]: of["rebalances"] for of in row["rebalances_by_cause_total"]},
        {of["necessary"]: of["partitions"] for of in row["moved_partitions_total"]},
    )
    return RebalanceHistory(
        totals=totals, reported_up_to=row["offsets_topic_offset"], reported_in_partition=row["offsets_topic_partition"]
    )


def _seed(row: Mapping[str, Any]) -> GroupSnapshot:
    """A group that is to be read again and goes on counting after its last row."""
    totals = GroupTotals(
        rebalances=row["rebalances_total"],
        rebalances_failed=row["rebalances_failed_total"] or 0,
        empty_transitions=row["empty_transitions_total"],
        incarnations=row["incarnations"],
    )
    resume = Resume(
        row["offsets_topic_offset"],
        row["group_type"],
        row["state"],
        row["generation_id"],
        totals,
        row["offsets_topic_partition"],
    )
    return GroupSnapshot(row["group_id"], totals=totals, resume=resume)


def _write_origin(files: Files, bootstrap: Bootstrap) -> Mapping[str, int]:
    """Write it down. Returns the checksum of each file."""
    stored = {
        **{
            f"origin/{name}.positions": numbers.astype("<i8").tobytes() for name, numbers in bootstrap.positions.items()
        },
        "origin/seeds": msgspec.msgpack.encode(bootstrap.initial_state),
    }
    files.make_folder("origin")
    for name, content in stored.items():
        files.write(name, content)
    return {name: checksum(content) for name, content in stored.items()}


def _read_origin(files: Files) -> Bootstrap:
    try:
        positions = {
            table.name: np.frombuffer(files.read(f"origin/{table.name}.positions") or b"", dtype="<i8")
            for table in _KEYED_BY_POSITION
        }
        stored_seeds = files.read("origin/seeds")
        return Bootstrap(
            positions, msgspec.msgpack.decode(stored_seeds, type=InitialState) if stored_seeds else InitialState()
        )
    except (ValueError, msgspec.DecodeError) as damaged:
        raise CheckpointDamagedError(files.uri(""), f"origin: {damaged}") from None
