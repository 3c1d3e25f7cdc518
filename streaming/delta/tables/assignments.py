"""Tables of verdicts on assignments."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import (
    GENERATION,
    GROUP,
    NOT_KNOWN,
    RECORD,
    TIME,
    Table,
    column,
)

_MISPLACED = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("actual_members", pa.list_(pa.string())),
        ("expected_member", pa.string()),
    ]
)

_DRIFT_PARTITIONS = (
    "partitions whose owner breaks a rule of the strategy (of another strategy: that it would place elsewhere);"
    " null where unknown"
)
_ASSIGNED_BY = (
    "java, librdkafka, kafka-python, aiokafka, kafkajs, sarama, franz-go, kafka-go, faust, broker (KIP-848) or unknown"
)

ASSIGNMENT_DRIFT = Table(
    "assignment_drift",
    "one generation against one strategy's expected assignment",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column("strategy", pa.string(), "strategy the expectation was made by"),
            column("is_group_strategy", pa.bool_(), "whether it is the group's own"),
            column(
                "verdict",
                pa.string(),
                "match; drift: a law is broken, or the leader's own library answers otherwise; equivalent: another"
                " answer, as even; withheld: a cooperative first round; differs_from_java: lawful, and not what Java"
                " gives; rebalancing: the coordinator is making the epoch's assignment; unknown; not_evaluated. Of"
                " other strategies same or differs",
            ),
            column("reason", pa.string(), "why it is unknown or not evaluated; empty otherwise"),
            column("drift_partitions", pa.int32(), _DRIFT_PARTITIONS),
            column("misplaced", pa.list_(_MISPLACED), "those partitions, where the verdict is drift"),
            column("laws", pa.list_(pa.string()), "the laws that are broken, where the verdict is drift"),
            column("assigned_by", pa.string(), _ASSIGNED_BY),
            column("evidence", pa.list_(pa.string()), "what the leader wrote, from which that follows"),
            NOT_KNOWN,
            column("metadata_sampled_time", TIME, "age of the oldest topic metadata the verdict rests on"),
        ]
    ),
)
