"""The two sources of the query: the records of `__consumer_offsets`, and the feedback files of the driver."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark code
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
"""The schema of state rows. All columns are nullable, although their values are never null.

The columns of a file source are always nullable. The state store does not accept a key if its nullability changed since
the last start.
"""


def offsets_topic_records(
    session: SparkSession,
    kafka: KafkaSettings,
    source: SourceSettings,
    partitions: Sequence[int],
    more_options: Mapping[str, str],
) -> DataFrame:
    """Return the key, the value and the position of every record, in log order, without aborted transactions."""
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        # `subscribe` would add a consumer group to the watched topic at every start.
        "assign": json.dumps({OFFSETS_TOPIC: sorted(partitions)}),
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(source.max_records_per_batch),
        "kafka.isolation.level": "read_committed",
        # Compaction removes records, and this must not end the query. The monitor counts missing offsets itself.
        "failOnDataLoss": "false",
        # At the end of the log, a fetch waits this time for more records. The last batch takes 1.1 s instead of 12.3 s.
        "kafka.fetch.max.wait.ms": "10",
        # Each partition has a consumer. Until the next batch, the consumer keeps its last fetch and its last poll. With
        # 8 MiB and 10,000 records, the consumers of 50 partitions kept 380 MB. The smaller sizes need no more CPU time.
        "kafka.max.partition.fetch.bytes": str(2 << 20),
        # With Kafka's default of 500, the polls take about 5 of 40 CPU seconds for 2 million records.
        "kafka.max.poll.records": "4000",
        **more_options,
    }
    records = session.readStream.format("kafka").options(**options).load()
    return records.select(
        "key",
        "value",
        F.col("partition").alias("offsets_topic_partition"),
        F.col("offset").alias("offsets_topic_offset"),
        F.unix_millis("timestamp").alias("timestamp_ms"),
    )


def state_rows_file(rows: Iterable[StateRow]) -> bytes:
    """Encode state rows as a file for `feedback_rows`. Each row is one line of JSON."""
    lines = (
        json.dumps({"state_kind": state_kind, "state_key": state_key, "payload": base64.b64encode(payload).decode()})
        for state_kind, state_key, payload in rows
    )
    return "".join(f"{line}\n" for line in lines).encode()


def feedback_rows(session: SparkSession, folder: str) -> DataFrame:
    """Read the driver's feedback files: external facts and results of polls.

    Spark deletes a file after the commit of the batch that read the file.
    """
    reader = session.readStream.schema(STATE_ROWS).option("cleanSource", "delete").option("maxFilesPerTrigger", "500")
    # The driver sends a lost fact again. So a lost or damaged file must not stop every batch.
    reader = reader.options(mode="DROPMALFORMED", ignoreMissingFiles="true", ignoreCorruptFiles="true")
    # A payload is one JSON string. In the first poll of a large cluster, it can exceed the default limit of 20 million.
    return reader.option("maxStringLen", str(2**31 - 1)).json(folder)
