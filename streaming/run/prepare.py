"""What a run stands on: a checkpoint and tables that fit each other, made or checked.

A new checkpoint reads the topic from its start, over tables that may have rows already. So when it is made, the tables'
own content is written down beside it (`Origin`): positions that need no second row, and the totals each group had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from streaming.combine.wire import Int64Array
from streaming.config.load import Settings
from streaming.events import Position
from streaming.group.snapshot import GroupSnapshot, GroupTotals
from streaming.judgement.turn import GROUP_CODEC, GroupRecord
from streaming.sinks.delta import DeltaTables
from streaming.sinks.tables import ASSIGNMENT_DRIFT, ASSIGNMENT_IMBALANCE, GROUP_GENERATIONS, QUARANTINE, Table
from streaming.spark.checkpoint import (
    HANDED_BACK,
    Identity,
    check_identity,
    new_identity,
    read_identity,
    write_identity,
)
from streaming.spark.files import Files

_KEYED_BY_POSITION = (GROUP_GENERATIONS, ASSIGNMENT_DRIFT, ASSIGNMENT_IMBALANCE, QUARANTINE)
_OFFSET_BITS = 48


class Seeds(msgspec.Struct, frozen=True):
    """Stored group records a new checkpoint starts from, by group id."""

    version: int = GROUP_CODEC.version
    records: dict[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class Origin:
    """What the tables held when the checkpoint was made: sorted position numbers by table name, and seeds."""

    positions: Mapping[str, Int64Array] = field(default_factory=dict)
    seeds: Seeds = field(default_factory=Seeds)


def position_numbers(kafka_partitions: pa.ChunkedArray, kafka_offsets: pa.ChunkedArray) -> Int64Array:
    """Positions as single numbers, so that a million of them are compared at once."""
    partitions = kafka_partitions.to_numpy().astype(np.int64)
    numbers: Int64Array = (partitions << _OFFSET_BITS) | kafka_offsets.to_numpy()
    return numbers


def prepare_checkpoint(session: SparkSession, settings: Settings, files: Files) -> tuple[Identity, DeltaTables, Origin]:
    """Make the checkpoint or check it; open the tables. Raises CheckpointError or TableVersionError, each by name."""
    cluster, shuffle_partitions = settings.kafka.cluster, settings.spark.shuffle_partitions
    identity = read_identity(files)
    if identity is not None:
        check_identity(identity, cluster, shuffle_partitions, settings.paths.checkpoint)
        tables = DeltaTables(settings.paths.tables, identity.checkpoint_id)
        tables.open_all(session)
        return identity, tables, _read_origin(files)
    identity = new_identity(cluster, shuffle_partitions)
    tables = DeltaTables(settings.paths.tables, identity.checkpoint_id)
    tables.open_all(session)
    origin = origin_of(session, tables, cluster)
    _write_origin(files, origin)
    files.make_folder(HANDED_BACK)
    write_identity(files, identity)
    return identity, tables, origin


def origin_of(session: SparkSession, tables: DeltaTables, cluster: str) -> Origin:
    """Read what the tables hold of this cluster."""
    positions = {table.name: _positions(session, tables, table, cluster) for table in _KEYED_BY_POSITION}
    if not len(positions[GROUP_GENERATIONS.name]):
        return Origin(positions)
    return Origin(positions, _seeds(session, tables, cluster))


def _positions(session: SparkSession, tables: DeltaTables, table: Table, cluster: str) -> Int64Array:
    if tables.is_empty(table):
        return np.empty(0, dtype=np.int64)
    rows = session.read.format("delta").load(tables.path(table)).where(F.col("cluster") == cluster)
    found = rows.select("kafka_partition", "kafka_offset").distinct().toArrow()
    return np.sort(position_numbers(found["kafka_partition"], found["kafka_offset"]))


def _seeds(session: SparkSession, tables: DeltaTables, cluster: str) -> Seeds:
    rows = session.read.format("delta").load(tables.path(GROUP_GENERATIONS)).where(F.col("cluster") == cluster)
    last = F.max_by(F.struct(*[name for name in rows.columns if name not in ("members", "date")]), "kafka_offset")
    found = rows.groupBy("group_id").agg(last.alias("last")).select("last.*").toArrow().to_pylist()
    return Seeds(records={row["group_id"]: GROUP_CODEC.encode(GroupRecord(_seed(row)))[1] for row in found})


def _seed(row: Mapping[str, object]) -> GroupSnapshot:
    """A group as its last row tells, one position before it: re-reading that record fills in the members."""
    position = Position(int(row["kafka_partition"]), int(row["kafka_offset"]) - 1, 0)  # type: ignore[call-overload]
    return GroupSnapshot(
        group_id=str(row["group_id"]),
        group_type=str(row["group_type"]),
        state=str(row["state"]),
        position=position,
        generation_id=int(row["generation_id"]),  # type: ignore[call-overload]
        totals=GroupTotals(
            rebalances=int(row["rebalances_total"]),  # type: ignore[call-overload]
            rebalances_failed=int(row["rebalances_failed_total"]),  # type: ignore[call-overload]
            empty_transitions=int(row["empty_transitions_total"]),  # type: ignore[call-overload]
            incarnations=int(row["incarnations"]),  # type: ignore[call-overload]
        ),
    )


def _write_origin(files: Files, origin: Origin) -> None:
    files.make_folder("origin")
    for name, numbers in origin.positions.items():
        files.write(f"origin/{name}.positions", numbers.astype("<i8").tobytes())
    files.write("origin/seeds", msgspec.msgpack.encode(origin.seeds))


def _read_origin(files: Files) -> Origin:
    positions = {
        table.name: np.frombuffer(files.read(f"origin/{table.name}.positions") or b"", dtype="<i8")
        for table in _KEYED_BY_POSITION
    }
    stored_seeds = files.read("origin/seeds")
    return Origin(positions, msgspec.msgpack.decode(stored_seeds, type=Seeds) if stored_seeds else Seeds())
