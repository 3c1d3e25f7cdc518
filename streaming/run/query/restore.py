"""Restore the monitor state and the committed offsets of an earlier run from the state store."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import msgspec
from py4j.protocol import Py4JError
from pyarrow.lib import ArrowException
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark code

from streaming.combine.combiner import GROUP_KIND
from streaming.combine.commits import COMMIT_SCHEMA
from streaming.combine.partition_state import PARTITION_CODEC, GapsClosed, PartitionSnapshot, table_of
from streaming.config.load import Settings
from streaming.evaluation.group_update import GROUP_CODEC, GroupState
from streaming.run.failures import SparkEndedError
from streaming.run.query.batches import end_positions
from streaming.spark.causes import is_spark_gone, plain_cause
from streaming.spark.checkpoint import CheckpointDamagedError, last_committed_batch, read_identity
from streaming.spark.checkpoint_files import QUERY
from streaming.spark.files import Files
from streaming.spark.freed_memory import return_freed_memory
from streaming.state.committed_offsets import CommittedOffsets
from streaming.state.monitor_state import MonitorState

_log = logging.getLogger(__name__)


def restore(
    session: SparkSession,
    settings: Settings,
    files: Files,
    monitor_state: MonitorState,
    committed_offsets: CommittedOffsets,
) -> None:
    """Restore the values after the last committed batch. Raises CheckpointDamagedError.

    The monitor state can contain values from an earlier run in this process. If the checkpoint is new, remove these
    values.
    """
    batch_id, cluster, identity = last_committed_batch(files), settings.kafka.cluster, read_identity(files)
    checkpoint_id = identity.checkpoint_id if identity else ""
    monitor_state.use_checkpoint(checkpoint_id, has_batch=batch_id is not None)
    if batch_id is None:
        return
    try:
        groups, partition_states = stored_state(session, files.uri(QUERY))
    except (PySparkException, Py4JError, msgspec.DecodeError, ArrowException) as failure:
        if is_spark_gone(failure):
            raise SparkEndedError from None
        damage = f"{QUERY}/state cannot be read: {plain_cause(failure)}"
        raise CheckpointDamagedError(settings.paths.checkpoint, damage) from failure
    for partition_state in partition_states:
        committed_offsets.apply(table_of(partition_state.commits, COMMIT_SCHEMA))
    monitor_state.put_batch(groups, partition_states)
    monitor_state.put_gap_totals(GapsClosed((), {**one.gap_totals()}) for one in partition_states)
    monitor_state.put_health(positions=end_positions(files, batch_id, monitor_state.view().partition_states))
    return_freed_memory()
    _log.info(
        "%s: restored %d groups and %d partitions of batch %d", cluster, len(groups), len(partition_states), batch_id
    )


def stored_state(session: SparkSession, query_checkpoint: str) -> tuple[list[GroupState], list[PartitionSnapshot]]:
    """Return the states after the last committed batch: one per group, and one per `__consumer_offsets` partition."""
    state = session.read.format("statestore").load(query_checkpoint)
    rows = state.select(
        F.col("key.state_kind").alias("state_kind"),
        F.col("value.groupState.version").alias("version"),
        F.col("value.groupState.encoded").alias("encoded"),
    ).toArrow()
    stored: Iterable[tuple[str, int, bytes]] = zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True)
    groups, state_rows = [], []
    for state_kind, version, encoded in stored:
        if state_kind == GROUP_KIND:
            groups.append(GROUP_CODEC.decode(version, encoded))
        else:
            state_rows.append(PARTITION_CODEC.decode(version, encoded))
    return groups, state_rows
