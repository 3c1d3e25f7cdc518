"""Defines the table of verdicts on assignments."""

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
    "partitions whose owner breaks a rule of the strategy; for other strategies: partitions that the strategy would"
    " assign to a different member; null if unknown"
)
_ASSIGNED_BY = (
    "library that computed the assignment: java, librdkafka, kafka-python, aiokafka, kafkajs, sarama, franz-go,"
    " kafka-go, faust, broker (KIP-848) or unknown"
)

ASSIGNMENT_DRIFT = Table(
    "assignment_drift",
    "one generation, compared with the expected assignment of one strategy",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column("strategy", pa.string(), "strategy that computed the expected assignment"),
            column("is_group_strategy", pa.bool_(), "true if this is the group's own strategy"),
            column(
                "verdict",
                pa.string(),
                "for the group's own strategy: match; drift: a rule of the strategy is broken, or the leader's own"
                " library computes a different assignment; equivalent: different, but equally even; withheld: the"
                " first round of a cooperative rebalance; differs_from_java: no rule is broken, but Java computes a"
                " different assignment; rebalancing: the coordinator is computing the assignment of the epoch;"
                " unknown; not_evaluated. For other strategies: same, differs, unknown or not_evaluated",
            ),
            column(
                "reason",
                pa.string(),
                "reason for the verdict, if the verdict is unknown, not_evaluated or differs_from_java, or if it is"
                " drift and the strategy is not evaluated; otherwise empty",
            ),
            column("drift_partitions", pa.int32(), _DRIFT_PARTITIONS),
            column(
                "misplaced",
                pa.list_(_MISPLACED),
                "the drift partitions with actual and expected owners, if the verdict is drift",
            ),
            column("violations", pa.list_(pa.string()), "the broken rules, if the verdict is drift"),
            column("assigned_by", pa.string(), _ASSIGNED_BY),
            column("evidence", pa.list_(pa.string()), "data written by the leader that shows assigned_by"),
            NOT_KNOWN,
            column("metadata_sampled_time", TIME, "sample time of the oldest topic metadata used for the verdict"),
        ]
    ),
)
