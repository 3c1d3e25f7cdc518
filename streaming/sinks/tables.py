"""The schema of every Delta table. The README's reference is printed from here: `describe_tables`.

All tables are partitioned by cluster and date. Rows that stem from a record are keyed by its position (cluster,
kafka_partition, kafka_offset): a record read twice is one row. `group_lag` is keyed by the moment of its sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

SCHEMA_VERSION = 1
PARTITIONED_BY = ("cluster", "date")

_TIME = pa.timestamp("us", tz="UTC")
_TOPIC_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))
_MEMBER = pa.struct(
    [
        ("member_id", pa.string()),
        ("group_instance_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("subscription", pa.list_(pa.string())),
        ("assignment", _TOPIC_PARTITIONS),
    ]
)
_MISPLACED = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("actual_members", pa.list_(pa.string())),
        ("expected_member", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name, what one row is, and its columns; each column's comment is in its field's metadata."""

    name: str
    row: str
    schema: pa.Schema


def _column(name: str, kind: pa.DataType, comment: str) -> pa.Field:
    return pa.field(name, kind, metadata={"comment": comment})


_CLUSTER = _column("cluster", pa.string(), "name of the Kafka cluster, from the configuration")
_RECORD = (
    _CLUSTER,
    _column("date", pa.date32(), "UTC date of record_time"),
    _column("kafka_partition", pa.int32(), "partition of __consumer_offsets"),
    _column("kafka_offset", pa.int64(), "offset of the record in it"),
    _column("record_time", _TIME, "the coordinator's time on the record"),
)
_GROUP = _column("group_id", pa.string(), "consumer group")
_GENERATION = _column("generation_id", pa.int32(), "generation (classic) or epoch")

GROUP_GENERATIONS = Table(
    "group_generations",
    "one membership record: a synced generation, a static member's rejoin, a transition to Empty, a tombstone",
    pa.schema(
        [
            *_RECORD,
            _GROUP,
            _column("group_type", pa.string(), "classic, consumer (KIP-848), share or streams"),
            _column("state", pa.string(), "Stable, Empty, Dead, or Seen where membership is not read yet"),
            _GENERATION,
            _column("protocol_type", pa.string(), "consumer, connect, ... as the members gave it"),
            _column("protocol", pa.string(), "the strategy the coordinator chose"),
            _column("leader", pa.string(), "member id of the group leader"),
            _column("members", pa.list_(_MEMBER), "members with subscription and assignment, sorted by member id"),
            _column("rebalances_total", pa.int64(), "rebalances since the group was first seen"),
            _column("rebalances_failed_total", pa.int64(), "those of them proven to have been joined and never synced"),
            _column("empty_transitions_total", pa.int64(), "times the last member left"),
            _column("incarnations", pa.int32(), "how often the group was created anew, the first time included"),
        ]
    ),
)

ASSIGNMENT_DRIFT = Table(
    "assignment_drift",
    "one generation against one strategy's expected assignment",
    pa.schema(
        [
            *_RECORD,
            _GROUP,
            _GENERATION,
            _column("strategy", pa.string(), "strategy the expectation was made by"),
            _column("is_group_strategy", pa.bool_(), "whether it is the group's own"),
            _column(
                "verdict", pa.string(), "match, drift, unknown or not_evaluated; of other strategies same or differs"
            ),
            _column("reason", pa.string(), "why it is unknown or not evaluated; empty otherwise"),
            _column("drift_partitions", pa.int32(), "partitions that are elsewhere than expected; null where unknown"),
            _column("misplaced", pa.list_(_MISPLACED), "those partitions, for the group's own strategy"),
            _column("metadata_sampled_time", _TIME, "age of the oldest topic metadata the verdict rests on"),
        ]
    ),
)

ASSIGNMENT_IMBALANCE = Table(
    "assignment_imbalance",
    "how evenly one generation shares its partitions, in total or within one topic",
    pa.schema(
        [
            *_RECORD,
            _GROUP,
            _GENERATION,
            _column("topic", pa.string(), "the topic; null for the group's total"),
            _column("members", pa.int32(), "members that could hold partitions (of the topic: its subscribers)"),
            _column("assigned_partitions", pa.int32(), "partitions assigned"),
            _column("max_partitions", pa.int32(), "most partitions held by one member"),
            _column("min_partitions", pa.int32(), "fewest partitions held by one member"),
            _column("idle_members", pa.int32(), "members that hold none"),
            _column("max_to_mean_ratio", pa.float64(), "most held over the mean; null where nothing is assigned"),
        ]
    ),
)

GROUP_LAG = Table(
    "group_lag",
    "one committed partition of one group at one sample; written when something changed since the last",
    pa.schema(
        [
            _CLUSTER,
            _column("date", pa.date32(), "UTC date of sampled_time"),
            _column("sampled_time", _TIME, "when end offsets were asked for, after the commits were read"),
            _GROUP,
            _column("topic", pa.string(), "topic"),
            _column("partition", pa.int32(), "partition"),
            _column("committed_offset", pa.int64(), "next offset the group will read"),
            _column("commit_time", _TIME, "the coordinator's time on that commit"),
            _column("end_offset", pa.int64(), "end of the partition; null where it could not be sampled"),
            _column("log_start_offset", pa.int64(), "start of the partition; null where it could not be sampled"),
            _column("lag", pa.int64(), "end_offset - committed_offset; null where unknown"),
        ]
    ),
)

QUARANTINE = Table(
    "quarantine",
    "one record that could not be decoded, whole",
    pa.schema(
        [
            *_RECORD,
            _column("key", pa.binary(), "the record's key, as it is"),
            _column("value", pa.binary(), "the record's value, as it is"),
            _column("reason", pa.string(), "what was wrong, the same word as in the metric's label"),
            _column("field", pa.string(), "the field at which reading ended"),
        ]
    ),
)

TABLES = (GROUP_GENERATIONS, ASSIGNMENT_DRIFT, ASSIGNMENT_IMBALANCE, GROUP_LAG, QUARANTINE)


def describe_tables() -> Iterator[str]:
    """The tables as Markdown, for the README."""
    for table in TABLES:
        yield f"### `{table.name}`\n\nOne row: {table.row}.\n\n| column | type | what it holds |\n|---|---|---|"
        for field in table.schema:
            comment = (field.metadata or {}).get(b"comment", b"").decode()
            yield f"| `{field.name}` | {_type_name(field.type)} | {comment} |"
        yield ""


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array of {_type_name(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "struct (" + ", ".join(field.name for field in kind) + ")"
    return {"timestamp[us, tz=UTC]": "timestamp", "date32[day]": "date"}.get(str(kind), str(kind))
