"""The schema of every Delta table. The README's reference is printed from here: `describe_tables`.

All tables are partitioned by cluster and date. Rows that stem from a record are keyed by its position (cluster,
kafka_partition, kafka_offset): a record read twice is one row. `group_lag` is keyed by the moment of its sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

SCHEMA_VERSION = 2
PARTITIONED_BY = ("cluster", "date")

_TIME = pa.timestamp("us", tz="UTC")
_TOPIC_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("topic_id", pa.string()), ("partition", pa.int32())]))
_MEMBER = pa.struct(
    [
        ("member_id", pa.string()),
        ("group_instance_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("rack_id", pa.string()),
        ("subscription", pa.list_(pa.string())),
        ("subscribed_regex", pa.string()),
        ("member_epoch", pa.int32()),
        ("owned", _TOPIC_PARTITIONS),
        ("assignment", _TOPIC_PARTITIONS),
        ("target", _TOPIC_PARTITIONS),
        ("pending_revocation", _TOPIC_PARTITIONS),
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
_NAMED_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))
_MEMBER_CHANGE = pa.struct(
    [
        ("member_id", pa.string()),
        ("previous_member_id", pa.string()),
        ("group_instance_id", pa.string()),
        ("client_id", pa.string()),
        ("client_host", pa.string()),
        ("changes", pa.list_(pa.string())),
        ("revoked", _NAMED_PARTITIONS),
        ("assigned", _NAMED_PARTITIONS),
    ]
)
_BY_CAUSE = pa.list_(pa.struct([("cause", pa.string()), ("rebalances", pa.int64())]))
_BY_NEED = pa.list_(pa.struct([("necessary", pa.string()), ("partitions", pa.int64())]))


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
    _column("kafka_partition", pa.int32(), "partition of __consumer_offsets; -1: its coordinator was asked"),
    _column("kafka_offset", pa.int64(), "offset of the record in it; of an answer its number"),
    _column(
        "record_time",
        _TIME,
        "the coordinator's time on the record; of a group that is Gone, of the listing; of an answer, of the poll",
    ),
)
_GROUP = _column("group_id", pa.string(), "consumer group")
_SAMPLED_PARTITION = (
    _CLUSTER,
    _column("date", pa.date32(), "UTC date of sampled_time"),
    _column("sampled_time", _TIME, "when end offsets were asked for, after the commits were read"),
    _GROUP,
    _column("topic", pa.string(), "topic"),
    _column("partition", pa.int32(), "partition"),
)
_GENERATION = _column(
    "generation_id", pa.int32(), "generation (classic) or epoch; null for classic groups with source.kind admin-api"
)
_NOT_KNOWN = _column("not_known", pa.list_(pa.string()), "what the verdict had to do without")

GROUP_GENERATIONS = Table(
    "group_generations",
    "one record after which a group is another: a synced generation, a static member's rejoin, an epoch, an assignment"
    " epoch, the end of a reconciliation, a transition to Empty, a tombstone; or the end of a group of which no record"
    " tells (state Gone, at the position of its last record)",
    pa.schema(
        [
            *_RECORD,
            _GROUP,
            _column("group_type", pa.string(), "classic, consumer (KIP-848), share or streams"),
            _column(
                "state",
                pa.string(),
                "Stable, Empty, Assigning, Reconciling, Dead; Gone: the brokers list it no more and no record says so;"
                " Unknown: records are missing, or a streams group has members",
            ),
            _GENERATION,
            _column("assignment_epoch", pa.int32(), "epoch the targets were computed for; null for classic groups"),
            _column("protocol_type", pa.string(), "consumer, connect, ... as the members gave it"),
            _column("protocol", pa.string(), "the strategy the coordinator chose"),
            _column("leader", pa.string(), "member id of the group leader"),
            _column(
                "members",
                pa.list_(_MEMBER),
                "sorted by member id. owned: claimed when joining (classic); assignment: what it may consume; target:"
                " what it shall have; pending_revocation: told to give up; null: no record told. topic_id only where"
                " nobody can tell the topic's name",
            ),
            _column(
                "not_known",
                pa.list_(pa.string()),
                "what the records read so far leave open: group_epoch, member_metadata, current_assignment,"
                " target_assignment, resolved_regex; with source.kind admin-api also what coordinators do not tell",
            ),
            _column("rebalances_total", pa.int64(), "rebalances since the group was first seen"),
            _column(
                "rebalances_failed_total",
                pa.int64(),
                "those of them proven to have been joined and never synced; null where none can be proven",
            ),
            _column("empty_transitions_total", pa.int64(), "times the last member left"),
            _column("incarnations", pa.int32(), "how often the group was created anew, the first time included"),
        ]
    ),
)

REBALANCES = Table(
    "rebalances",
    "one generation or epoch of a group, held against the one before; a KIP-848 group's once its targets are made",
    pa.schema(
        [
            *_RECORD,
            _GROUP,
            _GENERATION,
            _column(
                "kind",
                pa.string(),
                "rebalance; static_rejoin: a static member under a new member id, no rebalance; became_empty;"
                " first_seen: nothing is known of before; created: anew; upgraded to KIP-848, downgraded from it;"
                " deleted: its tombstone (where the next row is upgraded or downgraded, the group lived on)",
            ),
            _column(
                "primary_cause",
                pa.string(),
                "the first of causes; null where unknown, and for what is no rebalance",
            ),
            _column(
                "causes",
                pa.list_(pa.string()),
                "what the records prove, by precedence: strategy_changed, member_gone (left, timed out and fenced look"
                " alike), member_joined, subscription_changed, metadata_changed, cooperative_followup, unexplained;"
                " null: records are missing",
            ),
            _column("members", pa.int32(), "members after it"),
            _column("protocol", pa.string(), "the strategy after it"),
            _column("previous_protocol", pa.string(), "the strategy before it"),
            _column(
                "changes",
                pa.list_(_MEMBER_CHANGE),
                "members that joined, are gone, rejoined (static, new member id), resubscribed, or have other"
                " partitions than before; revoked and assigned are net, a topic nobody can name is given by its id",
            ),
            _column(
                "moved_partitions",
                pa.int32(),
                "partitions that went from one owner to another; of a cooperative pair of rounds told by the second;"
                " null: unknown, or told by a round to come",
            ),
            _column(
                "fewest_moves",
                pa.int32(),
                "partitions that had to move for an assignment as balanced; null where a partition has no owner or two",
            ),
            _column("fewest_is_exact", pa.bool_(), "false: fewest_moves is a lower bound"),
            _column("withheld_partitions", pa.int32(), "partitions a member has to give up first (KIP-429, round one)"),
            _column("unowned", _NAMED_PARTITIONS, "partitions assigned to nobody, those withheld included"),
            _column(
                "unowned_before_partitions", pa.int32(), "those of them that nobody had after the row before either"
            ),
            _column("claimed_twice", _NAMED_PARTITIONS, "partitions two members claimed to own when they joined"),
            _column("eager_claimers", pa.int32(), "members that claimed partitions under an eager strategy"),
            _column("subscriptions", pa.int32(), "different subscriptions among the members"),
            _column(
                "sync_time_ms",
                pa.int64(),
                "milliseconds from the end of the join to the leader's assignment; null where the record does not tell",
            ),
            _column("skipped_generations", pa.int64(), "generations since the row before that no record carries"),
            _column("not_known", pa.list_(pa.string()), "records that are missing: group_epoch, member_metadata, ..."),
            _column(
                "conditions",
                pa.list_(pa.string()),
                "what the last rebalances show together, as of the record: rebalance_storm, rolling_restart,"
                " flapping_member, ... as in the metric rebalance_monitor_group_condition",
            ),
            _column("rebalances_by_cause_total", _BY_CAUSE, "rebalances read since the group was first seen, by cause"),
            _column(
                "moved_partitions_total",
                _BY_NEED,
                "partitions moved since then: necessary true, false, or unknown",
            ),
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
                "verdict",
                pa.string(),
                "match; drift: a law is broken, or the leader's own program answers otherwise; equivalent: another"
                " answer, as good; withheld: a cooperative first round; differs_from_java: lawful, and the leader is"
                " not shown to be Java; unknown; not_evaluated. Of other strategies same or differs",
            ),
            _column("reason", pa.string(), "why it is unknown or not evaluated; empty otherwise"),
            _column("drift_partitions", pa.int32(), "partitions that are elsewhere than expected; null where unknown"),
            _column("misplaced", pa.list_(_MISPLACED), "those partitions, where the verdict is drift"),
            _column("laws", pa.list_(pa.string()), "the laws that are broken, where the verdict is drift"),
            _column("assigned_by", pa.string(), "java, librdkafka, kafka-python, broker (KIP-848) or unknown"),
            _column("evidence", pa.list_(pa.string()), "what that is told from"),
            _NOT_KNOWN,
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
            _NOT_KNOWN,
        ]
    ),
)

GROUP_LAG = Table(
    "group_lag",
    "one committed partition of one group at one sample; written when something changed since the last",
    pa.schema(
        [
            *_SAMPLED_PARTITION,
            _column("committed_offset", pa.int64(), "next offset the group will read"),
            _column("commit_time", _TIME, "the coordinator's time on that commit"),
            _column("end_offset", pa.int64(), "end of the partition; null where it could not be sampled"),
            _column("log_start_offset", pa.int64(), "start of the partition; null where it could not be sampled"),
            _column("lag", pa.int64(), "end_offset - committed_offset; null where unknown"),
            _column(
                "unknown_reason",
                pa.string(),
                "why lag is unknown: held_back, topic_deleted, partition_deleted, no_end_offset, end_before_commit",
            ),
            _column("lag_seconds", pa.float64(), "how long ago the next record to be read was written, in seconds"),
            _column("lag_seconds_kind", pa.string(), "exact, at_least (older than all samples kept) or unknown"),
            _column("within_seconds", pa.float64(), "how far off lag_seconds can be, in seconds; null unless exact"),
        ]
    ),
)

PARTITION_STATUS = Table(
    "partition_status",
    "the status of one committed partition of one group as of one sample; written when it changed",
    pa.schema(
        [
            *_SAMPLED_PARTITION,
            _column("status", pa.string(), "OK, WARN, STOP, STALL or REWIND, by the last ten commits; null if unknown"),
            _column("status_rule", pa.int8(), "number of the rule that said so (streaming/judgement/status.py)"),
            _column("completeness", pa.float64(), "share of the ten commits that are known, 0 to 1"),
            _column("committed_offset", pa.int64(), "next offset the group will read"),
            _column("lag", pa.int64(), "records the group has yet to commit; null where unknown"),
            _column("records_lost", pa.int64(), "offsets that retention took before the group committed them"),
            _column("lost_since_time", _TIME, "since when; null where nothing is lost"),
            _column("lost_since_kind", pa.string(), "exact, or at_least: it was lost before the oldest sample kept"),
            _column("seconds_until_lost", pa.float64(), "time until retention takes more, at its present rate"),
            _column("seconds_until_lost_kind", pa.string(), "estimate or at_least"),
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

TABLES = (
    GROUP_GENERATIONS,
    REBALANCES,
    ASSIGNMENT_DRIFT,
    ASSIGNMENT_IMBALANCE,
    GROUP_LAG,
    PARTITION_STATUS,
    QUARANTINE,
)


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
