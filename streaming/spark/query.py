"""The plan, from the topic to the driver."""

from __future__ import annotations

import time
from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from streaming.combine.own_partitions import OwnPartitions
from streaming.spark.source import STATE_ROWS
from streaming.spark.steps import CombineFunction, StateFunction

STORED_STATE = StructType([StructField("version", IntegerType()), StructField("encoded", BinaryType())])
"""The state's schema as the checkpoint freezes it. What the bytes mean is the version's affair, so it never changes."""

BATCH_GRACE_SECONDS = 10.0

BatchFunction = Callable[[DataFrame, int], None]


def state_rows_of(records: DataFrame, combine_tasks: int, own_partitions: OwnPartitions) -> DataFrame:
    """Records as lane rows. Few wide tasks: a Python step over 50 narrow ones costs three times the CPU."""
    return records.coalesce(combine_tasks).mapInArrow(CombineFunction(own_partitions), STATE_ROWS)


def start_query(  # noqa: PLR0913 - all of a query
    *,
    state_rows: DataFrame,
    cluster: str,
    state_function: StateFunction,
    on_batch: BatchFunction,
    checkpoint: str,
    trigger_seconds: float,
) -> StreamingQuery:
    """Start the one query. Every batch reaches `on_batch` as lane rows, after the state step."""
    keyed = state_rows.select(F.lit(cluster).alias("cluster"), *STATE_ROWS.names)
    advanced = keyed.groupBy("cluster", "state_kind", "state_key").applyInPandasWithState(
        state_function, STATE_ROWS, STORED_STATE, "append", GroupStateTimeout.NoTimeout
    )
    writer = advanced.writeStream.outputMode("append").option("checkpointLocation", checkpoint)
    return writer.foreachBatch(on_batch).trigger(processingTime=f"{trigger_seconds} seconds").start()


def await_query(query: StreamingQuery, is_over: Callable[[], bool]) -> None:
    """Wait until it ends by itself, or stop it as soon as `is_over`. Raises what ended it."""
    while not is_over():
        if query.awaitTermination(1):
            return
    stop_query(query)


def stop_query(query: StreamingQuery) -> None:
    """Stop it between two batches, if that is soon: stopped in its middle, a batch is only run again.

    Spark's Kafka source asks for offsets where nothing can interrupt it, for minutes if the broker is gone. It is left
    behind then (`spark.sql.streaming.stopTimeout`) and ends with Spark: whatever it does, it does no batch any more.
    """
    deadline = time.monotonic() + BATCH_GRACE_SECONDS
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.02)
    try:
        query.stop()
    except Py4JJavaError as unfinished:
        if "TimeoutException" not in str(unfinished):
            raise
