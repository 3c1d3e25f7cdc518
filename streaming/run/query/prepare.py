"""Create the checkpoint and the tables of a run, or check that the existing checkpoint matches the tables.

With a new checkpoint, the query reads the topic from its start. But the tables may already have rows from an earlier
checkpoint. So the new checkpoint stores a summary of the tables (`Bootstrap`). The summary contains the totals of each
group and the positions of all records that already have rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark code

from streaming.combine.big_endian import Int64Array
from streaming.config.load import Settings
from streaming.config.settings import ADMIN_API_SOURCE
from streaming.delta.on_disk import DeltaTables
from streaming.delta.table_files import UnusableTableError
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
from streaming.run.query.last_checkpoint import LastCheckpoint
from streaming.run.query.table_progress import ProgressFile
from streaming.spark.causes import plain_cause
from streaming.spark.checkpoint import (
    CHECKPOINT_VERSION,
    CheckpointDamagedError,
    Identity,
    check_identity,
    last_begun_batch,
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
    """Encoded group states by group id. With a new checkpoint, the query starts from these states."""

    version: int = GROUP_CODEC.version
    records: dict[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A summary of the tables when the checkpoint was created. `positions` maps table names to sorted positions."""

    positions: Mapping[str, Int64Array] = field(default_factory=dict)
    initial_state: InitialState = field(default_factory=InitialState)


def position_numbers(offsets_topic_partitions: pa.ChunkedArray, offsets_topic_offsets: pa.ChunkedArray) -> Int64Array:
    """Encode each position as one number, so that NumPy can compare a million positions in one step."""
    partitions = offsets_topic_partitions.to_numpy().astype(np.int64)
    numbers: Int64Array = (partitions << _OFFSET_BITS) | offsets_topic_offsets.to_numpy()
    return numbers


def prepare_checkpoint(
    session: SparkSession, settings: Settings, files: Files, tables: DeltaTables
) -> tuple[DeltaTables, Bootstrap]:
    """Open the tables. Create the checkpoint, or check it if it exists. Raises RemedyError."""
    last = _last_checkpoint(session, settings)
    identity = read_identity(files)
    if identity is None:
        created, bootstrap = make_checkpoint(session, settings, files, tables)
        last.take(created, settings.paths.checkpoint)
        return tables.for_checkpoint(created.checkpoint_id), bootstrap
    cluster, shuffle_partitions = settings.kafka.cluster, settings.spark.shuffle_partitions
    check_identity(identity, cluster, shuffle_partitions, settings.paths.checkpoint, settings.source.kind)
    tables.open_all()
    own_tables = tables.for_checkpoint(identity.checkpoint_id)
    check_age(files, own_tables.last_batch())
    last.take(identity, settings.paths.checkpoint)
    ProgressFile(cluster, files, own_tables).check()
    files.make_folder(FEEDBACK_FOLDER)  # the query's second source fails if the folder does not exist
    files.remove_partial_files(FEEDBACK_FOLDER)
    return own_tables, _read_bootstrap(files, identity.origin)


def check_age(files: Files, last_written: int) -> None:
    """Raise CheckpointDamagedError if the checkpoint is older than `last_written`, the last batch in the tables.

    Otherwise, new batches would get numbers that the tables already contain, so the tables would ignore these batches.
    """
    last_begun = last_begun_batch(files)
    if last_written > last_begun:
        raise CheckpointDamagedError(
            files.uri(""),
            f"it is older than the tables: it ends at batch {last_begun}, and the tables have batch {last_written}",
        )


def make_checkpoint(
    session: SparkSession, settings: Settings, files: Files, tables: DeltaTables
) -> tuple[Identity, Bootstrap]:
    """Create a checkpoint. Raises UnusableTableError if the tables cannot be read."""
    cluster, source = settings.kafka.cluster, settings.source.kind
    tables.open_all()
    try:
        bootstrap = summarize_tables(session, tables, cluster, is_polled=source == ADMIN_API_SOURCE)
    except (PySparkException, Py4JJavaError) as failure:
        raise UnusableTableError(
            f"tables {tables.root} cannot be read ({plain_cause(failure)}): check the disk, or run"
            " `rebalance-monitor rebuild --repair-tables`, which deletes no file"
        ) from failure
    identity = Identity(
        version=CHECKPOINT_VERSION,
        checkpoint_id=uuid.uuid4().hex,
        cluster=cluster,
        shuffle_partitions=settings.spark.shuffle_partitions,
        source=source,
        origin=_write_bootstrap(files, bootstrap),
        after=_last_checkpoint(session, settings).read(),
    )
    files.make_folder(FEEDBACK_FOLDER)
    write_identity(files, identity)  # last, because a checkpoint without an identity is incomplete
    return identity, bootstrap


def _last_checkpoint(session: SparkSession, settings: Settings) -> LastCheckpoint:
    open_tables = partial(Files, session, settings.paths.tables)
    return LastCheckpoint(open_tables, settings.kafka.cluster, settings.source.kind)


def summarize_tables(session: SparkSession, tables: DeltaTables, cluster: str, *, is_polled: bool) -> Bootstrap:
    """Summarize the cluster's rows in the tables. The totals come only from rows that the same `source.kind` wrote."""
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
    positions = rows.select("offsets_topic_partition", "offsets_topic_offset").distinct().toArrow()
    return np.sort(position_numbers(positions["offsets_topic_partition"], positions["offsets_topic_offset"]))


def _initial_state(session: SparkSession, tables: DeltaTables, cluster: str, *, is_polled: bool) -> InitialState:
    of_source = (F.col("offsets_topic_partition") == POLLED_PARTITION) == F.lit(is_polled)
    of_cluster = (F.col("cluster") == cluster) & of_source
    rebalances = _last_rows(session, tables, REBALANCES, of_cluster)
    states = {
        group_id: GroupState(_initial_snapshot(row), rebalance_history=_rebalance_history(rebalances.get(group_id)))
        for group_id, row in _last_rows(session, tables, GROUP_GENERATIONS, of_cluster).items()
    }
    return InitialState(records={group_id: GROUP_CODEC.encode(state)[1] for group_id, state in states.items()})


def _last_rows(
    session: SparkSession, tables: DeltaTables, table: Table, of_cluster: Column
) -> dict[str, dict[str, Any]]:
    """Return the last row of each group, without the columns `members`, `changes` and `date`.

    For each group and each `__consumer_offsets` partition, the row with the highest offset is the last row. A row with
    the state Gone has the same offset as the row before it. Of these two rows, the row with the later time is the last
    row. If a group has last rows in several partitions, return the latest of these rows.
    """
    if tables.is_empty(table):
        return {}
    rows = session.read.format("delta").load(tables.path(table)).where(of_cluster)
    columns = [name for name in rows.columns if name not in {"members", "changes", "date"}]
    last_row = F.max_by(F.struct(*columns), F.struct("offsets_topic_offset", "record_time")).alias("last")
    last = rows.groupBy("group_id", "offsets_topic_partition").agg(last_row)
    return latest_by_group(last.select("last.*").toArrow().to_pylist())


def latest_by_group(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the latest row of each group. `rows` can contain several rows of a group, one for each partition."""
    return {row["group_id"]: row for row in sorted(rows, key=lambda row: row["record_time"])}


def _rebalance_history(row: Mapping[str, Any] | None) -> RebalanceHistory:
    if row is None:
        return RebalanceHistory()
    totals = RebalanceTotals(
        {of["cause"]: of["rebalances"] for of in row["rebalances_by_cause_total"]},
        {of["necessary"]: of["partitions"] for of in row["moved_partitions_total"]},
    )
    return RebalanceHistory(
        totals=totals, reported_up_to=row["offsets_topic_offset"], reported_in_partition=row["offsets_topic_partition"]
    )


def _initial_snapshot(row: Mapping[str, Any]) -> GroupSnapshot:
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


def _write_bootstrap(files: Files, bootstrap: Bootstrap) -> dict[str, int]:
    positions = bootstrap.positions.items()
    stored = {f"origin/{name}.positions": numbers.astype("<i8").tobytes() for name, numbers in positions}
    stored["origin/seeds"] = msgspec.msgpack.encode(bootstrap.initial_state)
    files.make_folder("origin")
    for name, content in stored.items():
        files.write(name, content)
    return {name: checksum(content) for name, content in stored.items()}


def _read_bootstrap(files: Files, checksums: Mapping[str, int]) -> Bootstrap:
    def read(name: str) -> bytes:
        content = files.read(name) or b""
        if checksums.get(name) not in {None, checksum(content)}:
            raise ValueError(f"{name} is missing or has unexpected content")
        return content

    try:
        positions = {
            table.name: np.frombuffer(read(f"origin/{table.name}.positions"), dtype="<i8")
            for table in _KEYED_BY_POSITION
        }
        stored_states = read("origin/seeds")
        initial = msgspec.msgpack.decode(stored_states, type=InitialState) if stored_states else InitialState()
    except (ValueError, msgspec.DecodeError) as damaged:
        raise CheckpointDamagedError(files.uri(""), f"origin: {damaged}") from None
    GROUP_CODEC.check(initial.version)  # without this check, an error of a Spark worker would not end the run
    return Bootstrap(positions, initial)
