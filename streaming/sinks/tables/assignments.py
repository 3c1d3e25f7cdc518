"""Tables of verdicts on assignments."""

from __future__ import annotations

import pyarrow as pa

from streaming.sinks.tables.columns import (
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
                "match; drift: a law is broken, or the leader's own program answers otherwise; equivalent: another"
                " answer, as good; withheld: a cooperative first round; differs_from_java: lawful, and the leader is"
                " not shown to be Java; rebalancing: the coordinator is making the epoch's assignment; unknown;"
                " not_evaluated. Of other strategies same or differs",
            ),
            column("reason", pa.string(), "why it is unknown or not evaluated; empty otherwise"),
            column("drift_partitions", pa.int32(), "partitions that are elsewhere than expected; null where unknown"),
            column("misplaced", pa.list_(_MISPLACED), "those partitions, where the verdict is drift"),
            column("laws", pa.list_(pa.string()), "the laws that are broken, where the verdict is drift"),
            column("assigned_by", pa.string(), "java, librdkafka, kafka-python, broker (KIP-848) or unknown"),
            column("evidence", pa.list_(pa.string()), "what that is told from"),
            NOT_KNOWN,
            column("metadata_sampled_time", TIME, "age of the oldest topic metadata the verdict rests on"),
        ]
    ),
)
