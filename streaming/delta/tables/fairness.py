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
    Table,
    boolean,
    column,
    float64,
    int32,
    text,
    time,
)

_SKEW = pa.struct([("members", pa.list_(pa.string())), ("topics", pa.int32()), ("surplus_partitions", pa.int32())])

_MEASURED = (
    CLUSTER,
    column("date", pa.date32(), "UTC date of `sampled_time`, or of `record_time` if `sampled_time` is null"),
    *RECORD[2:],
    time("sampled_time", "time when the monitor sampled the lag or the throughput. Null if `measure` is `partitions`"),
)

ASSIGNMENT_IMBALANCE = Table(
    "assignment_imbalance",
    "how evenly the work of one generation is distributed. The column `scope` shows who shares the work: all members,"
    " all client hosts, or the subscribers of one topic. If `measure` is `partitions`, the monitor writes rows for"
    " each evaluated generation. Exception: a generation whose `reason` in `assignment_drift` is `too_many_records`"
    " has no rows. If `measure` is `lag` or `throughput`, the monitor writes the first row of an assignment when it"
    " measures the lag or the throughput for the first time. Later, the monitor writes a new row if the score changed"
    " by at least ten points since the last row. It also writes a new row if `score_reason` or `unknown_reason`"
    " changed",
    pa.schema(
        [
            *_MEASURED,
            GROUP,
            GENERATION,
            text("measure", "measured work: `partitions`, `lag` (in records) or `throughput` (in records per second)"),
            text(
                "scope",
                "kind of the participants in this row. `member` means all members. `host` means all client hosts."
                " `topic` means the subscribers of one topic",
            ),
            text("topic", "name of the topic if `scope` is `topic`. Otherwise null"),
            int32(
                "participants",
                "number of members or client hosts that the row compares. Null if unknown. If `participants` is null,"
                " all measured values of the row are also null",
            ),
            float64("total", "total work of all participants. The unit depends on `measure`"),
            float64("largest", "work of the member or host that has the most work. The unit depends on `measure`"),
            float64("smallest", "work of the member or host that has the least work. The unit depends on `measure`"),
            text(
                "busiest",
                "member or host with the most work. If several members or hosts have the most work, the value is the"
                " first name in alphabetical order. Null if there is no work",
            ),
            int32("idle", "number of members or hosts without a partition. Null if `measure` is not `partitions`"),
            int32(
                "idle_in_any_assignment",
                "number of members or hosts that are idle even in the fairest assignment. For example, the value is 1"
                " if a group has three members but only two partitions. Null if unknown, or if `measure` is not"
                " `partitions`",
            ),
            float64(
                "max_to_mean_ratio",
                "`largest` divided by the mean work. The value is 1 if the work is shared evenly. Null if `total` is 0",
            ),
            float64(
                "coefficient_of_variation",
                "standard deviation of the work, divided by the mean work. The value is 0 if the work is shared"
                " evenly. Null if `total` is 0",
            ),
            float64(
                "gini",
                "Gini coefficient (a measure of inequality) of the work. The value is 0 if the work is shared evenly."
                " The value is near 1 if one of many members or hosts has all the work. Null if `total` is 0",
            ),
            float64(
                "score",
                "fairness score from 0 to 100. The score is 100 if no valid assignment shares the work more evenly."
                " The score is 0 if one member or host has all the work, although a fairer valid assignment exists."
                " Null if unknown (see `score_reason` and `unknown_reason`)",
            ),
            text(
                "score_reason",
                "reason why the score is null: `metadata_missing`, `metadata_changed`, `law_broken`,"
                " `partitions_shared`, `partitions_unassigned`, `subscriptions_too_many`, `member_subscription`,"
                " `resolved_regex`, `topic_names`, `kafka_streams`, `copartitioned` (Faust and Goka). Empty if the"
                " score is known, or if `unknown_reason` contains the reason",
            ),
            float64(
                "excess",
                "excess work of the busiest member or host. For example, the value is 20 if its work is 100, but no"
                " member or host has more than 80 in the fairest valid assignment. The unit depends on `measure`",
            ),
            text(
                "unknown_reason",
                "reason why the row has no measured values: `lag_unknown`, `throughput_unknown`, `host_unknown`,"
                " `member_assignment`, `target_assignment`. Otherwise empty",
            ),
            int32("unknown_partitions", "number of partitions with unknown work"),
            column(
                "topic_skew",
                _SKEW,
                "topic skew of the group. If a topic cannot be divided equally, some members get one extra partition."
                " Topic skew means that the same members have the extra partitions of several topics. The field"
                " `members` contains the members with the most extra partitions (at most ten members). All these"
                " members have an extra partition in the same number of topics. The field `topics` is the number of"
                " these topics. The field `surplus_partitions` is the number of partitions that the busiest members"
                " own together, minus the number that the busiest members would own together in the fairest valid"
                " assignment. Null if there is no skew, if `measure` is not `partitions`, or if `scope` is not"
                " `member`. To find the strategy that removes the skew, use the column `removes_topic_skew` of the"
                " table `what_if`",
            ),
            NOT_KNOWN,
        ]
    ),
)

WHAT_IF = Table(
    "what_if",
    "the assignment that one strategy would compute for one generation. The column `change` shows the assumed number of"
    " members: the current number, one member more, or one member fewer. If one micro-batch contains several"
    " generations of a group, the monitor writes rows only for the last generation. For a group with more than 500"
    " partitions, `change` is always `as it is`. A group with more than 20,000 partitions has no rows",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            text(
                "change",
                "assumed change of the group. The values are `as it is` (no change), `1 member more` and `1 member"
                " fewer`. A row with `1 member fewer` assumes that the member with the most partitions leaves",
            ),
            text(
                "strategy",
                "name of a built-in strategy or of your own strategy. The monitor computes a built-in strategy as the"
                " group's client library does. If the library does not have the strategy, or if the monitor does not"
                " know its algorithm, the monitor computes the strategy as Java clients or the group coordinator do."
                " The value `(today)` means that the row describes the current assignment",
            ),
            boolean("is_group_strategy", "true if the strategy of this row is the group's own strategy"),
            text("failure", "reason why your own strategy has no result. Otherwise empty"),
            text("failure_detail", "details of the failure. Otherwise empty"),
            int32("members", "number of members after the change"),
            int32("partitions", "number of partitions that the strategy has to assign"),
            float64(
                "score",
                "fairness score from 0 to 100. The score is 100 if no valid assignment shares the partitions more"
                " evenly. Null if unknown",
            ),
            int32(
                "excess_partitions",
                "number of excess partitions of the busiest member. For example, the value is 2 if this member has 6"
                " partitions, but no member has more than 4 in the fairest valid assignment. Null if unknown",
            ),
            int32("idle_members", "number of members without partitions"),
            int32(
                "moved_partitions",
                "number of partitions that would have a different owner than in the current assignment",
            ),
            int32(
                "unavoidable_moves",
                "number of partitions that every strategy must move, for example the partitions of the member that"
                " leaves",
            ),
            int32("unassigned_partitions", "number of partitions without an owner"),
            int32(
                "widest_topic_spread",
                "largest spread of all topics. The spread of a topic is the largest number of its partitions that one"
                " subscriber owns, minus the smallest number. For example, the spread is 2 if one subscriber owns"
                " three partitions of the topic, and each other subscriber owns one",
            ),
            text(
                "widest_spread_topic",
                "topic with the largest spread (see `widest_topic_spread`). Null if the largest spread is 0",
            ),
            int32(
                "rounds",
                "number of rebalances that the group needs to reach this assignment. A cooperative strategy needs two"
                " rebalances. The value is 0 if `strategy` is `(today)`",
            ),
            boolean(
                "removes_topic_skew",
                "true for the strategy that removes the topic skew with the fewest partition moves. Only a strategy"
                " that the group's client library or coordinator has can be true. A strategy removes the topic skew if"
                " its score is 100. Null if there is no skew",
            ),
        ]
    ),
)
