"""Defines the tables of imbalance and what-if.

`assignment_imbalance` shows how evenly a group shares its work. `what_if` shows the assignments that strategies would
compute.
"""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import (
    CLUSTER,
    GENERATION,
    GROUP,
    NOT_KNOWN,
    RECORD,
    TIME,
    Table,
    column,
)

_SKEW = pa.struct([("members", pa.list_(pa.string())), ("topics", pa.int32()), ("surplus_partitions", pa.int32())])

_MEASURED = (
    CLUSTER,
    column(
        "date", pa.date32(), "UTC date of sampled_time. If sampled_time is null, this is the UTC date of record_time"
    ),
    *RECORD[2:],
    column(
        "sampled_time",
        TIME,
        "time at which the monitor sampled lag or throughput. Null if measure is partitions, because the record"
        " itself contains the partitions",
    ),
)

ASSIGNMENT_IMBALANCE = Table(
    "assignment_imbalance",
    "the work of one generation, and how this work is distributed. The row shows the distribution among members,"
    " among client hosts, or among the subscribers of one topic. If measure is partitions, each evaluated record has"
    " one row for each distribution. If measure is lag or throughput, a sample has a row only in two cases: the score"
    " changed by at least ten points, or it changed between known and unknown",
    pa.schema(
        [
            *_MEASURED,
            GROUP,
            GENERATION,
            column(
                "measure",
                pa.string(),
                "kind of work: partitions, lag (in records) or throughput (in records per second)",
            ),
            column(
                "scope",
                pa.string(),
                "what the row compares: member (all members), host (all client hosts) or topic (the subscribers of"
                " one topic)",
            ),
            column("topic", pa.string(), "name of the topic if scope is topic. Otherwise null"),
            column(
                "participants",
                pa.int32(),
                "number of members or client hosts that the row compares. If this number is unknown, this column and"
                " all following numeric columns are null",
            ),
            column("total", pa.float64(), "total work. The unit depends on the column measure"),
            column(
                "largest",
                pa.float64(),
                "largest amount of work of one member or host. The unit depends on the column measure",
            ),
            column(
                "smallest",
                pa.float64(),
                "smallest amount of work of one member or host. The unit depends on the column measure",
            ),
            column(
                "busiest",
                pa.string(),
                "the member or host with the most work. If several members or hosts have the most work, this is the"
                " first of them in alphabetical order. Null if there is no work",
            ),
            column(
                "idle", pa.int32(), "number of members or hosts without a partition. Null if measure is not partitions"
            ),
            column(
                "idle_in_any_assignment",
                pa.int32(),
                "smallest number of idle members or hosts that a valid assignment can have. Null if unknown, or if"
                " measure is not partitions",
            ),
            column(
                "max_to_mean_ratio",
                pa.float64(),
                "the column largest, divided by the mean work. The value is 1 if the work is shared evenly. Null if"
                " total is 0",
            ),
            column(
                "coefficient_of_variation",
                pa.float64(),
                "standard deviation of the work, divided by the mean work. The value is 0 if the work is shared"
                " evenly. Null if total is 0",
            ),
            column(
                "gini",
                pa.float64(),
                "Gini coefficient of the work. The value is 0 if the work is shared evenly. The value is"
                " (participants - 1) / participants if one member or host has all the work. Null if total is 0",
            ),
            column(
                "score",
                pa.float64(),
                "fairness score from 0 to 100. The score is 100 if the work is shared as evenly as possible. The"
                " score is 0 if one member or host has all the work, although a different assignment could avoid"
                " this. The score is null if it is unknown. In this case, score_reason contains the reason",
            ),
            column(
                "score_reason",
                pa.string(),
                "reason why the score is null: metadata_missing, metadata_changed, law_broken, partitions_shared,"
                " partitions_unassigned, subscriptions_too_many, member_subscription, topic_names, kafka_streams."
                " Empty if there is a score",
            ),
            column(
                "excess",
                pa.float64(),
                "largest amount of work of one member or host in this assignment, minus the largest amount in the"
                " fairest valid assignment. The value is 0 if the largest amount is the same in both assignments. The"
                " unit depends on the column measure",
            ),
            column(
                "unknown_reason",
                pa.string(),
                "reason why the row has no numbers: lag_unknown, throughput_unknown, host_unknown, member_assignment."
                " Otherwise empty",
            ),
            column("unknown_partitions", pa.int32(), "number of partitions with unknown work"),
            column(
                "topic_skew",
                _SKEW,
                "topic skew: some members hold the extra partition of several topics, although each topic alone is"
                " shared evenly. members: at most ten of these members. topics: the number of these topics."
                " surplus_partitions: the total number of surplus partitions. Null if there is no skew, if measure is"
                " not partitions, or if scope is not member. The column what_if.removes_topic_skew shows the strategy"
                " that removes the skew",
            ),
            NOT_KNOWN,
        ]
    ),
)

WHAT_IF = Table(
    "what_if",
    "the assignment that one strategy would compute for one evaluated generation. The row assumes that the group has"
    " no change, one additional member, or one member fewer. If one batch evaluates several generations of a group,"
    " only the last of these generations has rows. A group with more than 500 partitions has only rows without a"
    " change. A group with more than 20,000 partitions has no rows",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column(
                "change",
                pa.string(),
                "change of the group that the row assumes: as it is (no change), 1 member more, or 1 member fewer (the"
                " member with the most partitions leaves)",
            ),
            column(
                "strategy",
                pa.string(),
                "name of a built-in strategy or of your own strategy. If the name is (today), the row describes the"
                " current assignment",
            ),
            column("is_group_strategy", pa.bool_(), "true if the strategy of this row is the group's own strategy"),
            column("failure", pa.string(), "reason why your own strategy has no result. Otherwise empty"),
            column("failure_detail", pa.string(), "details of the failure. Otherwise empty"),
            column("members", pa.int32(), "number of members after the change"),
            column("partitions", pa.int32(), "number of partitions that the strategy has to assign"),
            column(
                "score",
                pa.float64(),
                "fairness score from 0 to 100. The score is 100 if the partitions are shared as evenly as possible."
                " Null if unknown",
            ),
            column(
                "excess_partitions",
                pa.int32(),
                "partitions of the busiest member, minus the partitions of the busiest member in the fairest valid"
                " assignment. Null if unknown",
            ),
            column("idle_members", pa.int32(), "number of members without partitions"),
            column(
                "moved_partitions",
                pa.int32(),
                "number of partitions that would move from their present owner to a different member",
            ),
            column(
                "unavoidable_moves",
                pa.int32(),
                "number of moved partitions that would move under every strategy, because their owner left",
            ),
            column("unassigned_partitions", pa.int32(), "number of partitions without an owner"),
            column(
                "widest_topic_spread",
                pa.int32(),
                "largest spread of all topics. The spread of a topic compares the subscribers of the topic. It is the"
                " largest number of partitions that one subscriber holds, minus the smallest number",
            ),
            column(
                "widest_spread_topic", pa.string(), "the topic with the largest spread. Null if the largest spread is 0"
            ),
            column(
                "rounds",
                pa.int32(),
                "number of rebalances that the group needs to reach the assignment. A cooperative strategy needs two"
                " rebalances. The number is 0 if the column strategy contains (today)",
            ),
            column(
                "removes_topic_skew",
                pa.bool_(),
                "true if the strategy removes the topic skew with the smallest number of moved partitions. Null if"
                " there is no skew",
            ),
        ]
    ),
)
