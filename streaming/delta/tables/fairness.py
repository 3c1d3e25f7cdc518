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
    column("date", pa.date32(), "UTC date of sampled_time, or of record_time if sampled_time is null"),
    *RECORD[2:],
    column(
        "sampled_time",
        TIME,
        "time at which lag or throughput was sampled; null if measure is partitions, because the record contains them",
    ),
)

ASSIGNMENT_IMBALANCE = Table(
    "assignment_imbalance",
    "the work of one generation and its distribution among members, client hosts or the subscribers of one topic. For"
    " partitions, each evaluated record has one row. For lag and throughput, a sample has a row only if the score"
    " changed by ten points or more, became known or became unknown",
    pa.schema(
        [
            *_MEASURED,
            GROUP,
            GENERATION,
            column("measure", pa.string(), "partitions, lag (in records) or throughput (in records per second)"),
            column(
                "scope",
                pa.string(),
                "member: compares members; host: compares client hosts; topic: compares the subscribers of one topic",
            ),
            column("topic", pa.string(), "the topic; null if scope is not topic"),
            column(
                "participants",
                pa.int32(),
                "number of members or hosts; if this number is unknown, this column and all numeric columns below are"
                " null",
            ),
            column("total", pa.float64(), "total work, in the unit of measure"),
            column("largest", pa.float64(), "most work of one member or host, in the unit of measure"),
            column("smallest", pa.float64(), "least work of one member or host, in the unit of measure"),
            column(
                "busiest",
                pa.string(),
                "the member or host with the most work; if several have the most work, the first of them by name;"
                " null if there is no work",
            ),
            column("idle", pa.int32(), "members or hosts without a partition; null if measure is not partitions"),
            column(
                "idle_in_any_assignment",
                pa.int32(),
                "smallest possible number of idle members or hosts in a valid assignment; null if unknown, or if"
                " measure is not partitions",
            ),
            column(
                "max_to_mean_ratio",
                pa.float64(),
                "largest divided by the mean; 1 if the work is shared evenly; null if total is 0",
            ),
            column(
                "coefficient_of_variation",
                pa.float64(),
                "standard deviation divided by the mean; 0 if the work is shared evenly; null if total is 0",
            ),
            column(
                "gini",
                pa.float64(),
                "Gini coefficient of the work: 0 if the work is shared evenly; (participants - 1) / participants if"
                " one member or host has all the work; null if total is 0",
            ),
            column(
                "score",
                pa.float64(),
                "100: no valid assignment is fairer; 0: one member or host has all the work, although a different"
                " assignment could avoid this; null: unknown, see score_reason",
            ),
            column(
                "score_reason",
                pa.string(),
                "reason why there is no score: metadata_missing, metadata_changed, law_broken, partitions_shared,"
                " partitions_unassigned, subscriptions_too_many, member_subscription, topic_names, kafka_streams;"
                " otherwise empty",
            ),
            column(
                "excess",
                pa.float64(),
                "work of the busiest member or host beyond the fairest possible maximum, in the unit of measure; 0 if"
                " no valid assignment has a smaller maximum",
            ),
            column(
                "unknown_reason",
                pa.string(),
                "reason why there are no numbers: lag_unknown, throughput_unknown, host_unknown, member_assignment;"
                " otherwise empty",
            ),
            column("unknown_partitions", pa.int32(), "number of partitions whose work is unknown"),
            column(
                "topic_skew",
                _SKEW,
                "members: at most ten of the members that hold the extra partition of several topics although each"
                " topic is shared evenly; topics: the number of these topics; surplus_partitions: the total number of"
                " surplus partitions. Null if there is no skew, if measure is not partitions, or if scope is not"
                " member. For the strategy that removes the skew, see what_if.removes_topic_skew",
            ),
            NOT_KNOWN,
        ]
    ),
)

WHAT_IF = Table(
    "what_if",
    "the assignment that one strategy would compute for one evaluated generation without a change, with one member"
    " more, or with one member fewer. If one batch evaluates several generations of a group, only the last one has"
    " rows. For a group with more than 500 partitions, all rows are without a change. For a group with more than"
    " 20,000 partitions, there are no rows",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column(
                "change",
                pa.string(),
                "as it is (no change), 1 member more, or 1 member fewer (the member with the most partitions is"
                " removed)",
            ),
            column(
                "strategy",
                pa.string(),
                "a built-in strategy or your own; (today): the current assignment, with the same numbers",
            ),
            column("is_group_strategy", pa.bool_(), "true if this is the group's own strategy"),
            column("failure", pa.string(), "reason why your own strategy has no result; otherwise empty"),
            column("failure_detail", pa.string(), "details of the failure; otherwise empty"),
            column("members", pa.int32(), "members after the change"),
            column("partitions", pa.int32(), "partitions to assign"),
            column("score", pa.float64(), "100: no valid assignment is fairer; null if unknown"),
            column(
                "excess_partitions",
                pa.int32(),
                "partitions of the busiest member beyond the fairest possible maximum; null if unknown",
            ),
            column("idle_members", pa.int32(), "members without partitions"),
            column(
                "moved_partitions",
                pa.int32(),
                "partitions that would move from their present owner to a different member",
            ),
            column(
                "unavoidable_moves",
                pa.int32(),
                "moved partitions that would move under every strategy, because their owner left",
            ),
            column("unassigned_partitions", pa.int32(), "partitions without an owner"),
            column(
                "widest_topic_spread",
                pa.int32(),
                "spread of the topic with the largest spread; the spread is the most partitions that one subscriber"
                " of the topic holds minus the fewest",
            ),
            column("widest_spread_topic", pa.string(), "the topic with the largest spread; null if this spread is 0"),
            column(
                "rounds",
                pa.int32(),
                "rebalances needed to reach the assignment (a cooperative strategy needs two); 0 for (today)",
            ),
            column(
                "removes_topic_skew",
                pa.bool_(),
                "true for the strategy that removes the topic skew with the fewest moved partitions; null if there is"
                " no skew",
            ),
        ]
    ),
)
