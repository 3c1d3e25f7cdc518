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
    column("date", pa.date32(), "UTC date of sampled_time; if that is null, of record_time"),
    *RECORD[2:],
    column(
        "sampled_time",
        TIME,
        "sample time of the lag or throughput; null for partitions, which come from the record itself",
    ),
)

ASSIGNMENT_IMBALANCE = Table(
    "assignment_imbalance",
    "the work of one generation and its distribution among members, client hosts or the subscribers of one topic."
    " Partitions: one row per evaluated record. Lag and throughput: one row per sample, written if the score changed by"
    " ten points or more, or became known or unknown",
    pa.schema(
        [
            *_MEASURED,
            GROUP,
            GENERATION,
            column("measure", pa.string(), "partitions; lag, in records; throughput, in records per second"),
            column(
                "scope",
                pa.string(),
                "member: compares members; host: compares client hosts; topic: compares the subscribers of one topic",
            ),
            column("topic", pa.string(), "the topic; null unless scope is topic"),
            column(
                "participants",
                pa.int32(),
                "number of members or hosts; if it is unknown, this column and all numbers below are null",
            ),
            column("total", pa.float64(), "total work, in the unit of measure"),
            column("largest", pa.float64(), "most work of one member or host, in the unit of measure"),
            column("smallest", pa.float64(), "least work of one member or host, in the unit of measure"),
            column(
                "busiest",
                pa.string(),
                "the member or host with the most work, the first by name if there are several; null if there is no"
                " work",
            ),
            column("idle", pa.int32(), "members or hosts without a partition; null unless measure is partitions"),
            column(
                "idle_in_any_assignment",
                pa.int32(),
                "smallest possible number of idle members or hosts in a valid assignment; null if unknown, and unless"
                " measure is partitions",
            ),
            column("max_to_mean_ratio", pa.float64(), "largest divided by the mean, 1 is even; null if total is 0"),
            column(
                "coefficient_of_variation",
                pa.float64(),
                "standard deviation divided by the mean, 0 is even; null if total is 0",
            ),
            column(
                "gini",
                pa.float64(),
                "Gini coefficient: 0 is even; (participants - 1) / participants if one member or host has all the work;"
                " null if total is 0",
            ),
            column(
                "score",
                pa.float64(),
                "100: no valid assignment is fairer; 0: one member or host has all the work, and a different assignment"
                " could avoid this; null: see score_reason",
            ),
            column(
                "score_reason",
                pa.string(),
                "why there is no score: metadata_missing, metadata_changed, law_broken, partitions_shared,"
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
                "why there are no numbers: lag_unknown, throughput_unknown, host_unknown, member_assignment;"
                " otherwise empty",
            ),
            column("unknown_partitions", pa.int32(), "partitions whose work is unknown; 0 if none"),
            column(
                "topic_skew",
                _SKEW,
                "members: members that hold the extra partition of several topics although each topic is shared evenly"
                " (at most ten); topics: the number of these topics; surplus_partitions: surplus partitions in total."
                " Null if there is no skew, and unless measure is partitions and scope is member. For the strategy"
                " that removes the skew, see what_if.removes_topic_skew",
            ),
            NOT_KNOWN,
        ]
    ),
)

WHAT_IF = Table(
    "what_if",
    "the assignment that one strategy would compute for one evaluated generation: as it is, with one member more, or"
    " with one member fewer. If one batch evaluates several generations of a group, only the last one has rows. For"
    " more than 500 partitions, there are only rows for the group as it is. For more than 20,000 partitions, there"
    " are no rows",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column(
                "change",
                pa.string(),
                "as it is; 1 member more; 1 member fewer (without the member that has the most partitions)",
            ),
            column(
                "strategy",
                pa.string(),
                "a built-in strategy or your own; (today): the current assignment, with the same numbers",
            ),
            column("is_group_strategy", pa.bool_(), "true if this is the group's own strategy"),
            column("failure", pa.string(), "why your own strategy has no result and no numbers; otherwise empty"),
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
            column("moved_partitions", pa.int32(), "partitions that would move to a different member than today"),
            column(
                "unavoidable_moves",
                pa.int32(),
                "moved partitions that would move under every strategy, because their owner left",
            ),
            column("unassigned_partitions", pa.int32(), "partitions without an owner"),
            column(
                "widest_topic_spread",
                pa.int32(),
                "most partitions of a topic at one subscriber minus fewest at one subscriber; the largest value of all"
                " topics",
            ),
            column("widest_spread_topic", pa.string(), "the topic with this difference; null if the difference is 0"),
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
