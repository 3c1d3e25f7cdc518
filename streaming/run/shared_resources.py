"""What a run stands on: what the clusters of one monitor share, and what it holds of its own cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from streaming.delta.on_disk import DeltaTables
from streaming.run.samples.upkeep import Upkeep
from streaming.sampling.brokers import Brokers
from streaming.sampling.connection import Connection
from streaming.spark.checkpoint import CheckpointLock


@dataclass(frozen=True, slots=True)
class SharedResources:
    """What the clusters of one monitor share."""

    session: SparkSession
    tables: DeltaTables
    upkeep: Upkeep
    users_references: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ClusterSession:
    """A cluster whose brokers have answered, and its checkpoint, held. No `partitions` where they are not read."""

    connection: Connection
    brokers: Brokers
    partitions: list[int]
    security_options: Mapping[str, str]
    lock: CheckpointLock
