"""Defines the type of a table, and the columns and column types that several tables share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

TIME = pa.timestamp("us", tz="UTC")
TOPIC_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())]))
NAMED_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table: its name, a description of one row, and its columns.

    The hash of a table is the identity of the object, because a hash of the schema would be slow.
    """

    name: str
    row: str
    schema: pa.Schema


def column(name: str, kind: pa.DataType, comment: str) -> pa.Field:
    """Return a column whose metadata contains the comment. `docs/TABLES.md` shows the comment."""
    return pa.field(name, kind, metadata={"comment": comment})


def _columns_of(kind: pa.DataType) -> Callable[[str, str], pa.Field]:
    return lambda name, comment: column(name, kind, comment)


text, texts = _columns_of(pa.string()), _columns_of(pa.list_(pa.string()))
int32, int64, float64 = _columns_of(pa.int32()), _columns_of(pa.int64()), _columns_of(pa.float64())
boolean, time = _columns_of(pa.bool_()), _columns_of(TIME)
"""Each of these functions returns a column of one type, from its name and its comment."""

CLUSTER = text("cluster", "name of the Kafka cluster, as in the monitor's settings")
RECORD = (
    CLUSTER,
    column("date", pa.date32(), "UTC date of `record_time`"),
    int32(
        "offsets_topic_partition",
        "number of the `__consumer_offsets` partition that contains the record. The value is -1 if `source.kind` is"
        " `admin-api`",
    ),
    int64(
        "offsets_topic_offset",
        "offset of the record in this partition. If `source.kind` is `admin-api`, the value is a sequence number",
    ),
    time(
        "record_time",
        "timestamp of the record, on the coordinator's clock. If the state of the group is `Gone`, or if `source.kind`"
        " is `admin-api`, the value is the time when the monitor polled the brokers",
    ),
)
GROUP = text("group_id", "id of the consumer group")
SAMPLED = (
    CLUSTER,
    column("date", pa.date32(), "UTC date of `sampled_time`"),
    time(
        "sampled_time",
        "time of the sample: the time when the monitor requested the end offsets. The sample contains only commits"
        " that the monitor had read before `sampled_time`",
    ),
)
SAMPLED_PARTITION = (*SAMPLED, GROUP, text("topic", "name of the topic"), int32("partition", "partition number"))
GENERATION = int32(
    "generation_id",
    "generation of a classic group, or epoch of any other group. Null for a classic group if `source.kind` is"
    " `admin-api`",
)
NOT_KNOWN = texts("not_known", "names of the values that the monitor did not know when it evaluated the assignment")
