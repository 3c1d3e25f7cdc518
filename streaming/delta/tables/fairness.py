"""Tables of how fairly a group's work is shared, and of what each strategy would make of it."""

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
    column("date", pa.date32(), "UTC date of sampled_time; where that is null, of record_time"),
    *RECORD[2:],
    column(
        "sampled_time",
        TIME,
        "when the lag or the throughput was sampled that is shared by this record's assignment; null for partitions,"
        " which the record itself shares",
    ),
)

ASSIGNMENT_IMBALANCE = Table(
    "assignment_imbalance",
    "how one generation shares one kind of work among members, client hosts or one topic's subscribers. Partitions: a"
    " row a judged record. Lag and throughput: a row a sample, written when the score is another by ten points or more,"
    " or known where it was not, or the other way round",
    pa.schema(
        [
            *_MEASURED,
            GROUP,
            GENERATION,
            column("measure", pa.string(), "partitions; lag, in records; throughput, in records per second"),
            column("scope", pa.string(), "among whom: member, host (client host), topic (its subscribers)"),
            column("topic", pa.string(), "the topic; null unless scope is topic"),
            column("sharers", pa.int32(), "how many members or hosts; null where unknown, as all numbers below"),
            column("total", pa.float64(), "all the work, in the unit of measure"),
            column("largest", pa.float64(), "most that one of them has, in the unit of measure"),
            column("smallest", pa.float64(), "least that one of them has, in the unit of measure"),
            column("busiest", pa.string(), "who has most, the first by name of several; null where there is no work"),
            column("idle", pa.int32(), "those without a partition; null unless measure is partitions"),
            column("idle_in_any_assignment", pa.int32(), "of these, those whom no valid assignment could employ"),
            column("max_to_mean_ratio", pa.float64(), "largest over the mean, 1 is even; null where total is 0"),
            column("coefficient_of_variation", pa.float64(), "standard deviation over the mean, 0 is even"),
            column("gini", pa.float64(), "Gini coefficient, 0 is even, (sharers - 1) / sharers all on one"),
            column(
                "score",
                pa.float64(),
                "100: as fair as any valid assignment can be; 0: all on one who need not have it; null: score_reason",
            ),
            column(
                "score_reason",
                pa.string(),
                "why there is no score: metadata_missing, metadata_changed, law_broken, partitions_shared,"
                " partitions_unassigned, subscriptions_too_many, member_subscription, topic_names,"
                " kafka_streams; empty otherwise",
            ),
            column(
                "excess",
                pa.float64(),
                "what the busiest has beyond the busiest of the fairest valid assignment, in the unit of measure: a gap"
                " nothing can close is no excess",
            ),
            column(
                "unknown_reason",
                pa.string(),
                "why there are no numbers: lag_unknown, throughput_unknown, host_unknown; empty otherwise",
            ),
            column("unknown_partitions", pa.int32(), "partitions whose work is not known; 0 where all is"),
            column(
                "topic_skew",
                _SKEW,
                "each topic is shared evenly, and the same members get the one more of several: who (ten at most), of"
                " how many topics, and partitions too many in all. Null where there is none, and unless measure is"
                " partitions and scope member. What removes it: what_if.removes_topic_skew",
            ),
            NOT_KNOWN,
        ]
    ),
)

WHAT_IF = Table(
    "what_if",
    "what one strategy would make of one judged generation, as it is or with a member more or fewer. Of several"
    " generations judged in one batch the last; above 500 partitions as it is only, above 20,000 not at all",
    pa.schema(
        [
            *RECORD,
            GROUP,
            GENERATION,
            column("change", pa.string(), "as it is; 1 member more; 1 member fewer (the one with most partitions)"),
            column(
                "strategy", pa.string(), "built-in or the user's own; (today): what members have, in the same numbers"
            ),
            column("is_group_strategy", pa.bool_(), "whether it is the group's own"),
            column("failure", pa.string(), "why a user's strategy gave no answer and has no numbers; else empty"),
            column("failure_detail", pa.string(), "what it did; empty otherwise"),
            column("members", pa.int32(), "members after the change"),
            column("partitions", pa.int32(), "partitions to be shared"),
            column("score", pa.float64(), "100: as fair as any valid assignment; null where that is not known"),
            column(
                "excess_partitions",
                pa.int32(),
                "partitions of the busiest member beyond the smallest maximum any valid assignment reaches",
            ),
            column("idle_members", pa.int32(), "members without a partition"),
            column("moved_partitions", pa.int32(), "partitions that another member would have than today"),
            column("unavoidable_moves", pa.int32(), "of these, those that move under every strategy: their owner left"),
            column("unassigned_partitions", pa.int32(), "partitions nobody would have"),
            column(
                "widest_topic_spread",
                pa.int32(),
                "of all topics the widest difference between the subscriber with most and the one with least of it",
            ),
            column("widest_spread_topic", pa.string(), "the topic of that; null where the spread is 0"),
            column("rounds", pa.int32(), "rebalances until it is reached (a cooperative strategy takes two); 0: today"),
            column(
                "removes_topic_skew",
                pa.bool_(),
                "whether it is what removes the topic skew, moving fewest partitions; null where there is no skew",
            ),
        ]
    ),
)
