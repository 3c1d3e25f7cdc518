"""Defines what all tables use: the table type, columns of records and samples, types of partitions."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

TIME = pa.timestamp("us", tz="UTC")
TOPIC_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())]))
NAMED_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table: its name, a description of one row, and its columns. The metadata of a column contains its comment.

    Each table exists once and is a key of dictionaries. A hash of all its columns would be slow.
    """

    name: str
    row: str
    schema: pa.Schema


def column(name: str, kind: pa.DataType, comment: str) -> pa.Field:
    """Make a column with a comment. `docs/TABLES.md` shows the comment."""
    return pa.field(name, kind, metadata={"comment": comment})


CLUSTER = column("cluster", pa.string(), "name of the Kafka cluster in the settings of the monitor")
RECORD = (
    CLUSTER,
    column("date", pa.date32(), "UTC date of record_time"),
    column(
        "offsets_topic_partition",
        pa.int32(),
        "number of the partition of __consumer_offsets. The number is -1 if source.kind is admin-api",
    ),
    column(
        "offsets_topic_offset",
        pa.int64(),
        "offset of the record in this partition. If source.kind is admin-api, this is a sequence number",
    ),
    column(
        "record_time",
        TIME,
        "the coordinator's timestamp of the record. If the state of the group is Gone, this is the time of the"
        " listing of groups. If source.kind is admin-api, this is the time of the poll",
    ),
)
GROUP = column("group_id", pa.string(), "id of the consumer group")
SAMPLED = (
    CLUSTER,
    column("date", pa.date32(), "UTC date of sampled_time"),
    column(
        "sampled_time",
        TIME,
        "time at which the monitor requested the end offsets. The monitor read the commits before this time",
    ),
)
SAMPLED_PARTITION = (
    *SAMPLED,
    GROUP,
    column("topic", pa.string(), "name of the topic"),
    column("partition", pa.int32(), "number of the partition in the topic"),
)
GENERATION = column(
    "generation_id",
    pa.int32(),
    "generation of a classic group, or epoch of any other group. Null for a classic group if source.kind is admin-api",
)
NOT_KNOWN = column(
    "not_known", pa.list_(pa.string()), "information that was missing when the monitor evaluated the assignment"
)
