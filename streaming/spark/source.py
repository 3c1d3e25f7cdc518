"""`__consumer_offsets` as a stream of records, and the driver's own facts as a second one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from streaming.combine.combiner import StateRow
from streaming.config.settings import KafkaSettings, SourceSettings
from streaming.events import OFFSETS_TOPIC

STATE_ROWS = StructType(
    [
        StructField("state_kind", StringType()),
        StructField("state_key", StringType()),
        StructField("payload", BinaryType()),
    ]
)
"""All nullable although none ever is: a file source makes its columns so, and a batch in which one of the two sources
has nothing new takes the other's word. The state store refuses a key whose nullability changed since the last start.
"""


def offsets_topic_records(
    session: SparkSession,
    kafka: KafkaSettings,
    source: SourceSettings,
    partitions: Sequence[int],
    more_options: Mapping[str, str],
) -> DataFrame:
    """Key, value and position of every record, in log order per partition; aborted transactions left out."""
    options = {**_options(kafka, source, partitions), **more_options}
    records = session.readStream.format("kafka").options(**options).load()
    return records.select(
        "key",
        "value",
        F.col("partition").alias("offsets_topic_partition"),
        F.col("offset").alias("offsets_topic_offset"),
        F.unix_millis("timestamp").alias("timestamp_ms"),
    )


def _options(kafka: KafkaSettings, source: SourceSettings, partitions: Sequence[int]) -> Mapping[str, str]:
    return {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        # `subscribe` would leave a consumer group behind at every start, in the very topic we watch.
        "assign": json.dumps({OFFSETS_TOPIC: sorted(partitions)}),
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(source.max_records_per_batch),
        "kafka.isolation.level": "read_committed",
        # Segments of a compacted topic come and go; a query must not die of it. Missing offsets are counted instead.
        "failOnDataLoss": "false",
        # At the end of the log a fetch waits this long for more to come: 12.3 s against 1.1 s for the last batch.
        "kafka.fetch.max.wait.ms": "10",
        "kafka.max.partition.fetch.bytes": str(8 << 20),
        # Kafka's 500 make a fetch of 8 MiB more than a hundred polls: some 5 of 40 CPU seconds over 2 M records.
        "kafka.max.poll.records": "10000",
    }


def state_rows_file(rows: Iterable[StateRow]) -> bytes:
    """The content of a file for `feedback_rows`: one JSON line a row."""
    lines = (
        json.dumps({"state_kind": state_kind, "state_key": state_key, "payload": base64.b64encode(payload).decode()})
        for state_kind, state_key, payload in rows
    )
    return "".join(f"{line}\n" for line in lines).encode()


def feedback_rows(session: SparkSession, folder: str) -> DataFrame:
    """Facts the driver hands back to groups, and polls; files vanish once their batch is committed."""
    reader = session.readStream.schema(STATE_ROWS).option("cleanSource", "delete").option("maxFilesPerTrigger", "500")
    # A fact that is lost is found missing and sent again. A file that is lost or damaged must not stop every batch.
    reader = reader.options(mode="DROPMALFORMED", ignoreMissingFiles="true", ignoreCorruptFiles="true")
    # A payload is one JSON string: commits of a large cluster's first poll are beyond the 20 million letters of old.
    return reader.option("maxStringLen", str(2**31 - 1)).json(folder)
