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
    "for the group's own strategy: partitions whose owner breaks a rule of the strategy; for other strategies:"
    " partitions that the strategy would assign to a different member; null if unknown"
)
_ASSIGNED_BY = (
    "library that computed the assignment: java, librdkafka, kafka-python, aiokafka, kafkajs, sarama, franz-go,"
    " kafka-go, faust, broker (KIP-848) or unknown"
)

ASSIGNMENT_DRIFT = Table(
    "assignment_drift",
    "one generation and the comparison of its assignment with the expected assignment of one strategy",
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
                " library computes a different assignment; equivalent: the assignment differs from the expected one,"
                " but shares the partitions equally evenly; withheld: a cooperative rebalance assigns partitions in"
                " its next round; differs_from_java: no rule is broken, but Java computes a different assignment;"
                " rebalancing: the coordinator is computing the assignment of the epoch; unknown; not_evaluated. For"
                " other strategies: same, differs, unknown or not_evaluated",
            ),
            column(
                "reason",
                pa.string(),
                "reason for the verdict, if the verdict is unknown, not_evaluated or differs_from_java, or if the"
                " verdict is drift and the strategy is not evaluated; otherwise empty",
            ),
            column("drift_partitions", pa.int32(), _DRIFT_PARTITIONS),
            column(
                "misplaced",
                pa.list_(_MISPLACED),
                "if the verdict is drift: the drift partitions with their actual and expected owners",
            ),
            column("violations", pa.list_(pa.string()), "if the verdict is drift: the broken rules"),
            column("assigned_by", pa.string(), _ASSIGNED_BY),
            column(
                "evidence", pa.list_(pa.string()), "data that the leader wrote; assigned_by is derived from these data"
            ),
            NOT_KNOWN,
            column(
                "metadata_sampled_time", TIME, "time at which the oldest topic metadata for this verdict was sampled"
            ),
        ]
    ),
)
