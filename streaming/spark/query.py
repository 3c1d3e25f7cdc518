"""Build, start and stop the query: the Spark plan from the topic to the driver."""

from __future__ import annotations

import time
from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark code
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from streaming.combine.own_partitions import OwnPartitions
from streaming.spark.folder import local_folder
from streaming.spark.source import STATE_ROWS
from streaming.spark.steps import CombineFunction, StateFunction

STORED_STATE = StructType([StructField("version", IntegerType()), StructField("encoded", BinaryType())])
"""The schema of the state: only a format version and encoded bytes, because a checkpoint's schema can never change."""

BATCH_GRACE_SECONDS = 10.0

_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_LOCAL_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"

BatchFunction = Callable[[DataFrame, int], None]


def combine_records(records: DataFrame, combine_tasks: int, own_partitions: OwnPartitions) -> DataFrame:
    """Combine records into state rows, in a few large tasks. Many small tasks would need three times the CPU time."""
    return records.coalesce(combine_tasks).mapInArrow(CombineFunction(own_partitions), STATE_ROWS)


def start_query(  # noqa: PLR0913 - everything that a query needs, as keywords
    *,
    state_rows: DataFrame,
    cluster: str,
    state_function: StateFunction,
    on_batch: BatchFunction,
    checkpoint: str,
    trigger_seconds: float,
) -> StreamingQuery:
    """Start the query. `on_batch` is called for each batch, with the state rows that the state step returned."""
    choose_file_manager(state_rows.sparkSession, checkpoint)
    keyed = state_rows.select(F.lit(cluster).alias("cluster"), *STATE_ROWS.names)
    advanced = keyed.groupBy("cluster", "state_kind", "state_key").applyInPandasWithState(
        state_function, STATE_ROWS, STORED_STATE, "append", GroupStateTimeout.NoTimeout
    )
    writer = advanced.writeStream.outputMode("append").option("checkpointLocation", checkpoint)
    return writer.foreachBatch(on_batch).trigger(processingTime=f"{trigger_seconds} seconds").start()


def choose_file_manager(session: SparkSession, checkpoint: str) -> None:
    """Choose the class that writes the checkpoint files of all queries that start later.

    A batch writes four or five files. On a local disk, Spark's default class starts eight processes for each file
    (chmod and readlink), and `_LOCAL_FILE_MANAGER` starts two. In HDFS, only the default class replaces a file in one
    step. If `spark.conf` in the settings contains a class, this class has precedence.
    """
    if local_folder(checkpoint) and session.conf.get(_FILE_MANAGER, "") == "":
        session.conf.set(_FILE_MANAGER, _LOCAL_FILE_MANAGER)


def await_query(query: StreamingQuery, is_over: Callable[[], bool]) -> None:
    """Wait until the query ends. If `is_over` returns True, stop the query. Raises the error that ended the query."""
    while not is_over():
        if query.awaitTermination(1):
            return
    stop_query(query)


def stop_query(query: StreamingQuery) -> None:
    """Stop the query, if possible between two batches, because a stopped batch must run again.

    Wait at most `BATCH_GRACE_SECONDS` for the end of the batch. If a broker does not answer, Spark's Kafka source waits
    several minutes for offsets and cannot be interrupted. So `query.stop` returns after
    `spark.sql.streaming.stopTimeout`. The thread of the source continues, but does not start a new batch.
    """
    deadline = time.monotonic() + BATCH_GRACE_SECONDS
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.02)
    try:
        query.stop()
    except Py4JJavaError as unfinished:
        if "TimeoutException" not in str(unfinished):
            raise
