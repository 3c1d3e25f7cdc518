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
    "number of partitions whose owner breaks a rule of the group's own strategy. In rows for"
    " other strategies: number of partitions that the strategy of the row would assign to a different member. Null if"
    " unknown"
)
_ASSIGNED_BY = (
    "library that computed the assignment: java, librdkafka, kafka-python, aiokafka, kafkajs, sarama, franz-go,"
    " kafka-go, faust, broker (KIP-848) or unknown"
)

ASSIGNMENT_DRIFT = Table(
    "assignment_drift",
    "the comparison of one generation's assignment with the assignment that one strategy expects",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column("strategy", pa.string(), "strategy that computed the expected assignment"),
            column("is_group_strategy", pa.bool_(), "true if the strategy of this row is the group's own strategy"),
            column(
                "verdict",
                pa.string(),
                "result of the comparison. Rows for the group's own strategy have one of these values. match: the"
                " assignment is as expected. drift: a rule of the strategy is broken, or the leader's own library"
                " computes a different assignment. equivalent: the assignment is not the expected assignment, but it"
                " is equally even. withheld: the next round of a cooperative rebalance assigns more partitions."
                " differs_from_java: no rule is broken, but Java computes a different assignment. rebalancing: the"
                " coordinator is still computing the assignment of the epoch. unknown. not_evaluated. Rows for other"
                " strategies have one of these values: same, differs, unknown, not_evaluated",
            ),
            column(
                "reason",
                pa.string(),
                "reason for the verdict unknown, not_evaluated or differs_from_java. If the verdict is drift and the"
                " strategy is not evaluated, the column also contains the reason. Otherwise empty",
            ),
            column("drift_partitions", pa.int32(), _DRIFT_PARTITIONS),
            column(
                "misplaced",
                pa.list_(_MISPLACED),
                "the drift partitions with their actual owners and expected owners, if the verdict is drift",
            ),
            column("violations", pa.list_(pa.string()), "the broken rules, if the verdict is drift"),
            column("assigned_by", pa.string(), _ASSIGNED_BY),
            column(
                "evidence",
                pa.list_(pa.string()),
                "data that the group leader wrote. The monitor derives assigned_by from these data",
            ),
            NOT_KNOWN,
            column(
                "metadata_sampled_time",
                TIME,
                "sampling time of the topic metadata that the verdict uses. If these metadata have several sampling"
                " times, this is the oldest time",
            ),
        ]
    ),
)
