"""Reading back what the state store holds, as of the last batch that is wholly done."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from streaming.combine.combiner import GROUP_LANE
from streaming.combine.lanes import LANE_CODEC, PartitionSnapshot
from streaming.evaluation.turn import GROUP_CODEC, GroupRecord


def stored_state(session: SparkSession, query_checkpoint: str) -> tuple[list[GroupRecord], list[PartitionSnapshot]]:
    """Every group and every Kafka partition the checkpoint knows."""
    state = session.read.format("statestore").load(query_checkpoint)
    rows = state.select(
        F.col("key.lane").alias("lane"),
        F.col("value.groupState.version").alias("version"),
        F.col("value.groupState.encoded").alias("encoded"),
    ).toArrow()
    stored: Iterable[tuple[str, int, bytes]] = zip(*(rows[name].to_pylist() for name in rows.column_names), strict=True)
    groups, lanes = [], []
    for lane, version, encoded in stored:
        if lane == GROUP_LANE:
            groups.append(GROUP_CODEC.decode(version, encoded))
        else:
            lanes.append(LANE_CODEC.decode(version, encoded))
    return groups, lanes
