"""Defines the table of verdicts on assignments."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import (
    GENERATION,
    GROUP,
    NOT_KNOWN,
    RECORD,
    Table,
    boolean,
    column,
    int32,
    text,
    texts,
    time,
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
    "number of partitions whose owner breaks a rule of the group's own strategy. If `is_group_strategy` is false, the"
    " value is the number of partitions that would have an owner other than the present one if the group used the"
    " strategy of this row. Null if unknown"
)
_ASSIGNED_BY = (
    "library that computed the assignment: `java`, `librdkafka`, `kafka-python`, `aiokafka`, `kafkajs`, `sarama`,"
    " `franz-go`, `kafka-go`, `faust`, `broker` (KIP-848, also directly after a change back to the"
    " classic protocol) or `unknown`. Null if there was no complete assignment to compare"
)

ASSIGNMENT_DRIFT = Table(
    "assignment_drift",
    "the comparison of two assignments of one generation: the actual assignment, and the assignment that one strategy"
    " computes",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            text("strategy", "strategy that computed the expected assignment"),
            boolean("is_group_strategy", "true if the strategy of this row is the group's own strategy"),
            text(
                "verdict",
                "result of the comparison. `match` means that every partition has the expected owner. `drift` means"
                " that the assignment breaks a rule of the strategy or differs from the assignment that the leader's"
                " library computes. `equivalent` means that the strategy allows both the actual and the expected"
                " assignment. `withheld` means that some partitions get an owner only in the next round of a"
                " cooperative rebalance. `differs_from_java` means that the assignment breaks no rule, but that the"
                " Java client would compute a different assignment. `rebalancing` means that the generation or epoch"
                " has no assignment yet. `unknown` means that an input of the comparison is missing, or that `reason`"
                " is `too_many_records`. `not_evaluated` means that the monitor does not implement the strategy, that"
                " your own strategy failed, or that the coordinator computed the assignment before the group changed"
                " back to the classic protocol. If `is_group_strategy` is false, the verdict is `same`, `differs`,"
                " `unknown` or `not_evaluated`",
            ),
            text(
                "reason",
                "reason for the verdict `unknown`, `not_evaluated` or `differs_from_java`. `too_many_records` means"
                " that one micro-batch contained more than 50 records of the group, for example after the monitor was"
                " stopped. The monitor compares only the last 50 assignments. Each older assignment has only a row for"
                " the group's own strategy. For the verdict `drift`, the value shows why the monitor checked only the"
                " rules that all strategies share. If the monitor checked all rules of the strategy, the value is"
                " empty. For the remaining verdicts, for example `match`, the value is always empty",
            ),
            int32("drift_partitions", _DRIFT_PARTITIONS),
            column(
                "misplaced",
                pa.list_(_MISPLACED),
                "partitions whose owner breaks a rule, with the actual owners and the expected owner of each"
                " partition. The expected owner is null if no member should own the partition, or if the previous"
                " owner must first revoke the partition. Empty if the verdict is not `drift`",
            ),
            texts("violations", "names of the rules that the assignment breaks. Empty if the verdict is not `drift`"),
            text("assigned_by", _ASSIGNED_BY),
            texts(
                "evidence",
                "data from which the monitor determined `assigned_by`, for example the form of the assignments or the"
                " leader's client id",
            ),
            NOT_KNOWN,
            time(
                "metadata_sampled_time",
                "time when the monitor sampled the topic metadata for the verdict. If the topics were sampled at"
                " different times, the value is the earliest of these times",
            ),
        ]
    ),
)
