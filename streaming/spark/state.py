"""Read the content that the state store had after the last committed batch."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark code

from streaming.combine.combiner import GROUP_KIND
from streaming.combine.partition_state import PARTITION_CODEC, PartitionSnapshot
from streaming.evaluation.group_update import GROUP_CODEC, GroupState


def stored_state(session: SparkSession, query_checkpoint: str) -> tuple[list[GroupState], list[PartitionSnapshot]]:
    """Return all states in the checkpoint: one per group, and one per `__consumer_offsets` partition."""
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
