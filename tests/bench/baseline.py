"""The baseline of the benchmark: Spark's Kafka source with the monitor's options, which only counts rows.

It measures the cost of reading the log with Spark. `python -m tests.bench.baseline` takes the monitor's settings from
the environment and reads until it is stopped. Checkpoint, batch size, trigger and session are those of the monitor. It
has no Python step, no state and no sinks.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from streaming.config.load import Settings, load_settings
from streaming.spark.checkpoint_files import QUERY
from streaming.spark.session import spark_session
from streaming.spark.source import offsets_topic_records
from tests.bench.fill import offsets_topic_ends


def _count(batch: DataFrame, _batch_id: int) -> None:
    batch.count()


def start_baseline(session: SparkSession, settings: Settings, partitions: Sequence[int]) -> StreamingQuery:
    """Start the query with the same number of reading tasks as the monitor."""
    records = offsets_topic_records(session, settings.kafka, settings.source, partitions, more_options={})
    writer = records.coalesce(settings.spark.combine_tasks).writeStream.foreachBatch(_count)
    checkpoint = f"{settings.paths.checkpoint}/{QUERY}"
    trigger = f"{settings.source.trigger_seconds} seconds"
    return writer.option("checkpointLocation", checkpoint).trigger(processingTime=trigger).start()


def main() -> None:
    """Read until stopped."""
    settings = load_settings(None)
    partitions = sorted(offsets_topic_ends(settings.kafka.bootstrap_servers))
    with spark_session(settings.spark) as session:
        start_baseline(session, settings, partitions).awaitTermination()


if __name__ == "__main__":
    main()
