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
    column("date", pa.date32(), "UTC date of sampled_time, or of record_time if sampled_time is null"),
    *RECORD[2:],
    column(
        "sampled_time",
        TIME,
        "time of the sample of lag or throughput. Null if measure is partitions",
    ),
)

ASSIGNMENT_IMBALANCE = Table(
    "assignment_imbalance",
    "how evenly the work of one generation is distributed. The column scope shows who shares the work: all members,"
    " all client hosts, or the subscribers of one topic. If measure is partitions, the monitor writes rows for each"
    " evaluated generation. If measure is lag or throughput, the monitor writes a row when the score has changed by"
    " at least ten points or has become known or unknown",
    pa.schema(
        [
            *_MEASURED,
            GROUP,
            GENERATION,
            column(
                "measure",
                pa.string(),
                "measured work: partitions, lag (in records) or throughput (in records per second)",
            ),
            column(
                "scope",
                pa.string(),
                "participants that the row compares. The value `member` means all members, `host` means all client"
                " hosts, and `topic` means the subscribers of one topic",
            ),
            column("topic", pa.string(), "name of the topic if scope is topic. Otherwise null"),
            column(
                "participants",
                pa.int32(),
                "number of members or client hosts that the row compares. Null if unknown. If participants is null,"
                " all other numbers of the row are also null",
            ),
            column("total", pa.float64(), "total work of all participants. The unit depends on the column measure"),
            column(
                "largest",
                pa.float64(),
                "work of the member or host that has the most work. The unit depends on the column measure",
            ),
            column(
                "smallest",
                pa.float64(),
                "work of the member or host that has the least work. The unit depends on the column measure",
            ),
            column(
                "busiest",
                pa.string(),
                "member or host with the most work. If several members or hosts have the most work, the column"
                " contains the first name in alphabetical order. Null if there is no work",
            ),
            column(
                "idle", pa.int32(), "number of members or hosts without a partition. Null if measure is not partitions"
            ),
            column(
                "idle_in_any_assignment",
                pa.int32(),
                "number of members or hosts that are idle even in the fairest assignment. For example, one member"
                " must be idle if three"
                " members consume two partitions. Null if unknown, or if measure is not partitions",
            ),
            column(
                "max_to_mean_ratio",
                pa.float64(),
                "column largest, divided by the mean work. The value is 1 if the work is shared evenly. Null if total"
                " is 0",
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
                "Gini coefficient (a measure of inequality) of the work. The value is 0 if the work is shared"
                " evenly. The value is near 1 if one of many members or hosts has all the work. Null if total is 0",
            ),
            column(
                "score",
                pa.float64(),
                "fairness score from 0 to 100. The score is 100 if no valid assignment shares the work more evenly."
                " The score is 0 if one member or host has all the work, although a valid assignment would share the"
                " work. Null if unknown (see score_reason)",
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
                "work that the busiest member or host has too much, compared with the fairest valid assignment. The"
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
                "topic skew of the group. If a topic cannot be divided equally, some members get one extra"
                " partition. Topic skew means that the same members have the extra partitions of several topics. The"
                " field `members` contains at most ten members with extra partitions. The field `topics` is the"
                " number of topics with the skew. The field `surplus_partitions` is the partition count of the busiest"
                " members, minus the partition count of as many members in the fairest valid assignment. Null if there"
                " is no skew, if measure is not partitions, or if scope is not member. The column removes_topic_skew"
                " of the table what_if marks the strategy that removes the skew",
            ),
            NOT_KNOWN,
        ]
    ),
)

WHAT_IF = Table(
    "what_if",
    "the assignment that one strategy would compute for one generation. The column change shows the assumed number"
    " of members: the present number, one member more, or one member fewer. If one micro-batch contains several"
    " generations of a group, the monitor writes rows only for the last generation. If a group has more than 500"
    " partitions, the table has only rows for the present number of members. A group with more than 20,000 partitions"
    " has no rows",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column(
                "change",
                pa.string(),
                "change of the group that the row assumes. The values are `as it is` (no change), `1 member more` and"
                " `1 member fewer`. With `1 member fewer`, the member with the most partitions leaves",
            ),
            column(
                "strategy",
                pa.string(),
                "name of a built-in strategy or of your own strategy. The value `(today)` means that the row describes"
                " the current assignment",
            ),
            column("is_group_strategy", pa.bool_(), "true if the strategy of this row is the group's own strategy"),
            column("failure", pa.string(), "reason why your own strategy has no result. Otherwise empty"),
            column("failure_detail", pa.string(), "details of the failure. Otherwise empty"),
            column("members", pa.int32(), "number of members after the change"),
            column("partitions", pa.int32(), "number of partitions that the strategy has to assign"),
            column(
                "score",
                pa.float64(),
                "fairness score from 0 to 100. The score is 100 if no valid assignment shares the partitions more"
                " evenly. Null if unknown",
            ),
            column(
                "excess_partitions",
                pa.int32(),
                "number of partitions that the busiest member would have too many, compared with the fairest valid"
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
                "number of moved partitions of the member that leaves. Partitions of a member that leaves must move"
                " with every strategy",
            ),
            column("unassigned_partitions", pa.int32(), "number of partitions without an owner"),
            column(
                "widest_topic_spread",
                pa.int32(),
                "largest spread of a topic. The spread of a topic is the difference between the partition counts of"
                " its busiest and its least busy subscriber",
            ),
            column(
                "widest_spread_topic", pa.string(), "topic with the largest topic_spread. Null if all spreads are 0"
            ),
            column(
                "rounds",
                pa.int32(),
                "number of rebalances until the group has the assignment. A cooperative strategy needs two rebalances."
                " The value is 0 if strategy is `(today)`",
            ),
            column(
                "removes_topic_skew",
                pa.bool_(),
                "true if this strategy moves the fewest partitions of all strategies that remove the topic skew. Null"
                " if there is no skew",
            ),
        ]
    ),
)
