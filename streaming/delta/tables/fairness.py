"""Defines the tables `assignment_imbalance` and `what_if`.

`assignment_imbalance` shows how evenly a group shares its work. `what_if` describes the assignments that other
strategies would compute.
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
        "time when the monitor sampled lag or throughput. Null if measure is partitions",
    ),
)

ASSIGNMENT_IMBALANCE = Table(
    "assignment_imbalance",
    "how the work of one generation is distributed among its members, among its client hosts, or among the subscribers"
    " of one topic. If measure is partitions, each evaluated record has one row for each distribution. If measure is"
    " lag or throughput, a sample has a row only if the score changed by at least ten points, or if the score became"
    " known or unknown",
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
                "number of members or client hosts that the row compares. If this number is unknown, it is null, and"
                " all numbers in the following columns are null, too",
            ),
            column("total", pa.float64(), "total work of all participants. The unit depends on the column measure"),
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
                "member or host with the most work. If several have equally much work, this is the first in"
                " alphabetical order. Null if there is no work",
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
                "column largest, divided by the mean work. 1 if the work is shared evenly. Null if total is 0",
            ),
            column(
                "coefficient_of_variation",
                pa.float64(),
                "standard deviation of the work, divided by the mean work. 0 if the work is shared evenly. Null if"
                " total is 0",
            ),
            column(
                "gini",
                pa.float64(),
                "Gini coefficient of the work. 0 if the work is shared evenly. (participants - 1) / participants if one"
                " member or host has all the work. Null if total is 0",
            ),
            column(
                "score",
                pa.float64(),
                "fairness score from 0 to 100. 100 if no valid assignment shares the work more evenly. 0 if one member"
                " or host has all the work, and a different valid assignment could share it. Null if unknown. The"
                " column score_reason contains the reason",
            ),
            column(
                "score_reason",
                pa.string(),
                "reason why the score is null: metadata_missing, metadata_changed, law_broken, partitions_shared,"
                " partitions_unassigned, subscriptions_too_many, member_subscription, topic_names, kafka_streams. Empty"
                " if the score is known",
            ),
            column(
                "excess",
                pa.float64(),
                "largest amount of work of one member or host in this assignment, minus the largest amount in the"
                " fairest valid assignment. 0 if both amounts are equal. The unit depends on the column measure",
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
                "topic skew: each topic alone is shared evenly, but the same members hold the extra partition of"
                " several topics. members: at most ten of these members. topics: number of topics of which these"
                " members hold the extra partition. surplus_partitions: number of partitions that the busiest members"
                " have above the fairest valid assignment. Null if there is no skew, if measure is not partitions, or"
                " if scope is not member. The column removes_topic_skew of the table what_if marks the strategy that"
                " removes the skew",
            ),
            NOT_KNOWN,
        ]
    ),
)

WHAT_IF = Table(
    "what_if",
    "the assignment that one strategy would compute for the members of one generation, for one additional member, or"
    " for one member fewer. If one batch evaluates several generations of a group, only the last generation has rows. A"
    " group with more than 500 partitions has rows only for its present members. A group with more than 20,000"
    " partitions has no rows",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column(
                "change",
                pa.string(),
                "change of the group that the row assumes: as it is (no change), 1 member more, or 1 member fewer"
                " (without the member that has the most partitions)",
            ),
            column(
                "strategy",
                pa.string(),
                "name of the strategy, which is a built-in strategy or your own strategy. (today) means the current"
                " assignment",
            ),
            column("is_group_strategy", pa.bool_(), "true if the strategy of this row is the group's own strategy"),
            column("failure", pa.string(), "reason why your own strategy has no result. Otherwise empty"),
            column("failure_detail", pa.string(), "details of the failure. Otherwise empty"),
            column("members", pa.int32(), "number of members after the change"),
            column("partitions", pa.int32(), "number of partitions that the strategy has to assign"),
            column(
                "score",
                pa.float64(),
                "fairness score from 0 to 100. 100 if no valid assignment shares the partitions more evenly. Null if"
                " unknown",
            ),
            column(
                "excess_partitions",
                pa.int32(),
                "number of partitions of the busiest member, minus the number of partitions of the busiest member in"
                " the fairest valid assignment. Null if unknown",
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
                "number of moved partitions whose owner leaves in this change. They move under every strategy",
            ),
            column("unassigned_partitions", pa.int32(), "number of partitions without an owner"),
            column(
                "widest_topic_spread",
                pa.int32(),
                "largest spread of a topic. The spread of a topic is the largest number of the topic's partitions that"
                " one subscriber holds, minus the smallest number that one subscriber holds",
            ),
            column(
                "widest_spread_topic", pa.string(), "topic with the largest spread. Null if the largest spread is 0"
            ),
            column(
                "rounds",
                pa.int32(),
                "number of rebalances that the group needs to reach the assignment. A cooperative strategy needs two"
                " rebalances. 0 if strategy is (today)",
            ),
            column(
                "removes_topic_skew",
                pa.bool_(),
                "true if this strategy removes the topic skew, and no other strategy that removes it moves fewer"
                " partitions. Null if there is no skew",
            ),
        ]
    ),
)
