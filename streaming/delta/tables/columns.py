"""What all tables share: their form, the columns of a record and of a sample, partitions as values."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

TIME = pa.timestamp("us", tz="UTC")
TOPIC_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())]))
NAMED_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name, what one row is, and its columns; each column's comment is in its field's metadata."""

    name: str
    row: str
    schema: pa.Schema


def column(name: str, kind: pa.DataType, comment: str) -> pa.Field:
    """Make a column with its comment, which the reference is printed from."""
    return pa.field(name, kind, metadata={"comment": comment})


CLUSTER = column("cluster", pa.string(), "name of the Kafka cluster, from the configuration")
RECORD = (
    CLUSTER,
    column("date", pa.date32(), "UTC date of record_time"),
    column("kafka_partition", pa.int32(), "partition of __consumer_offsets; -1: its coordinator was asked"),
    column("kafka_offset", pa.int64(), "offset of the record in it; of an answer its number"),
    column(
        "record_time",
        TIME,
        "the coordinator's time on the record; of a group that is Gone, of the listing; of an answer, of the poll",
    ),
)
GROUP = column("group_id", pa.string(), "consumer group")
SAMPLED = (
    CLUSTER,
    column("date", pa.date32(), "UTC date of sampled_time"),
    column("sampled_time", TIME, "when end offsets were asked for, after the commits were read"),
)
SAMPLED_PARTITION = (
    *SAMPLED,
    GROUP,
    column("topic", pa.string(), "topic"),
    column("partition", pa.int32(), "partition"),
)
GENERATION = column(
    "generation_id", pa.int32(), "generation (classic) or epoch; null for classic groups with source.kind admin-api"
)
NOT_KNOWN = column("not_known", pa.list_(pa.string()), "what the verdict had to do without")
