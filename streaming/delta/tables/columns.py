"""Defines the type of a table, and the columns and column types that several tables share."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

TIME = pa.timestamp("us", tz="UTC")
TOPIC_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())]))
NAMED_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table: its name, a description of one row, and its columns.

    Tables are used as keys of dictionaries. Equality and hash use the identity, because a hash of all columns is slow.
    """

    name: str
    row: str
    schema: pa.Schema


def column(name: str, kind: pa.DataType, comment: str) -> pa.Field:
    """Return a column whose metadata contains the comment. `docs/TABLES.md` shows the comment."""
    return pa.field(name, kind, metadata={"comment": comment})


CLUSTER = column("cluster", pa.string(), "name of the Kafka cluster, as in the monitor's settings")
RECORD = (
    CLUSTER,
    column("date", pa.date32(), "UTC date of `record_time`"),
    column(
        "offsets_topic_partition",
        pa.int32(),
        "number of the `__consumer_offsets` partition that contains the record. The value is -1 if `source.kind` is"
        " `admin-api`",
    ),
    column(
        "offsets_topic_offset",
        pa.int64(),
        "offset of the record in this partition. If `source.kind` is `admin-api`, the value is a sequence number",
    ),
    column(
        "record_time",
        TIME,
        "timestamp of the record, on the coordinator's clock. If the state of the group is `Gone`, or if `source.kind`"
        " is `admin-api`, the value is the time when the monitor polled the brokers",
    ),
)
GROUP = column("group_id", pa.string(), "id of the consumer group")
SAMPLED = (
    CLUSTER,
    column("date", pa.date32(), "UTC date of `sampled_time`"),
    column(
        "sampled_time",
        TIME,
        "time of the sample: the time when the monitor requested the end offsets. The sample contains only commits"
        " that the monitor had read before `sampled_time`",
    ),
)
SAMPLED_PARTITION = (
    *SAMPLED,
    GROUP,
    column("topic", pa.string(), "name of the topic"),
    column("partition", pa.int32(), "partition number"),
)
GENERATION = column(
    "generation_id",
    pa.int32(),
    "generation of a classic group, or epoch of any other group. Null for a classic group if `source.kind` is"
    " `admin-api`",
)
NOT_KNOWN = column(
    "not_known",
    pa.list_(pa.string()),
    "names of the values that the monitor did not know when it evaluated the assignment",
)
