"""The resources that all clusters of a monitor share, and the resources of one cluster."""

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
    """The resources that all clusters of one monitor share.

    `users_references` contains a pair (name, reference) for each strategy of a user. `page` is the URL of the monitor's
    pages.
    """

    session: SparkSession
    tables: DeltaTables
    upkeep: Upkeep
    users_references: tuple[tuple[str, str], ...]
    page: str


@dataclass(frozen=True, slots=True)
class ClusterSession:
    """A connected cluster and its locked checkpoint. In the polling mode, `partitions` is empty."""

    connection: Connection
    brokers: Brokers
    partitions: list[int]
    security_options: Mapping[str, str]
    lock: CheckpointLock
