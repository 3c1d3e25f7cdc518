"""Fairness: these metrics compare the actual assignment of each group with the expected assignment.

The metrics also show how evenly the members share the work, and which assignments other strategies would compute.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from streaming.signals.signal import OF_A_GROUP, PARTITION, Signal

_MEMBERS_UNKNOWN = (
    "Some records of the group are missing, the group has no members, or an open transaction blocks the group's"
    " records."
)
_UNFAIR_ONLY = (
    "No valid assignment is fairer than the current assignment. The series is also absent if the result is unknown."
    " The result is unknown if the group has more than 20,000 partitions, or if a partition has no owner or several"
    " owners. The result is also unknown if the partition count of a topic is uncertain, or if the strategy failed."
)

DRIFT_PARTITIONS: Final = Signal(
    name="rebalance_monitor_drift_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    help="Number of partitions that are assigned against a rule of the group's strategy. If the label `strategy` is not"
    " the group's own strategy, the value is the number of partitions that this strategy would assign to a different"
    " member. By default, only the group's own strategy has a series. This series exists only if the value is not 0.",
    unknown="No assignment of the group was evaluated yet, or the partition count of a topic is unknown. The series"
    " is also absent if the actual assignment differs from the expected assignment, but the difference does not prove"
    " an error. If the value for the group's own strategy is 0, the series exists only for groups that are exported"
    " with all details. The verdict `match` in `rebalance_monitor_assignment_verdict` also means that the value is 0.",
    example="rebalance_monitor_drift_partitions > 0"
    ' and on (cluster, group, strategy) rebalance_monitor_assignment_verdict{verdict="drift"}',
)
ASSIGNMENT_VERDICT: Final = Signal(
    name="rebalance_monitor_assignment_verdict",
    unit="boolean",
    labels=(*OF_A_GROUP, "strategy", "verdict"),
    label_values=MappingProxyType(
        {
            "verdict": (
                "match",
                "drift",
                "equivalent",
                "withheld",
                "differs_from_java",
                "rebalancing",
                "unknown",
                "not_evaluated",
            )
        }
    ),
    help="1 for the current verdict on the group's assignment. The verdict is the result of comparing the assignment"
    " with the group's own strategy. All other verdicts have no series.",
    unknown="The group has no members, or the group does not distribute the partitions of topics among its members.",
    example='rebalance_monitor_assignment_verdict{verdict="drift"} == 1',
)
EXCESS_PARTITIONS: Final = Signal(
    name="rebalance_monitor_excess_partitions",
    unit="partitions",
    help="Number of partitions of the busiest member, minus the number that the busiest member would have in the"
    " fairest valid assignment.",
    unknown=f"{_MEMBERS_UNKNOWN} The series is also absent if the partition count of a topic is uncertain, or if the"
    " members have too many different subscriptions.",
    example="topk(10, rebalance_monitor_excess_partitions > 0)",
)
IMBALANCE_SCORE: Final = Signal(
    name="rebalance_monitor_imbalance_score",
    unit="score",
    labels=(*OF_A_GROUP, "measure", "scope"),
    label_values=MappingProxyType(
        {"measure": ("partitions", "lag", "throughput"), "scope": ("member", "host")},
    ),
    granularity=PARTITION,
    help="Fairness score from 0 to 100. The score is 100 if the work is shared as evenly as possible. The score is 0"
    " if one member or client host has all the work, although a different assignment could avoid this.",
    unknown=f"{_MEMBERS_UNKNOWN} For lag and throughput, the series is also absent if the monitor has not measured the"
    " current assignment yet. Another possible reason is that the lag or throughput of a partition is unknown.",
    example='bottomk(10, rebalance_monitor_imbalance_score{measure="partitions", scope="member"} < 100)',
)
WORK_IMBALANCE_RATIO: Final = Signal(
    name="rebalance_monitor_work_imbalance_ratio",
    unit="ratio",
    labels=(*OF_A_GROUP, "measure", "scope"),
    label_values=MappingProxyType({"measure": ("lag", "throughput"), "scope": ("member", "host")}),
    granularity=PARTITION,
    help="Work of the busiest member, divided by the mean work of all members. If the label `measure` is `lag`, work is"
    " the lag in records. If it is `throughput`, work is the throughput in records per second. If the label `scope` is"
    " `host`, the value compares client hosts instead of members.",
    unknown="The monitor has not measured the current assignment yet. The series is also absent if the lag or"
    " throughput of a partition is unknown, or if the total lag or throughput of the group is 0.",
    example='rebalance_monitor_work_imbalance_ratio{measure="throughput", scope="member"} > 2',
)
TOPIC_SKEW: Final = Signal(
    name="rebalance_monitor_topic_skew",
    unit="partitions",
    labels=(*OF_A_GROUP, "remedy"),
    help="Number of surplus partitions that exist because some members hold one more partition than the others in"
    " several topics. Each topic alone is shared evenly, but all topics together are not. The range strategy causes"
    " topic skew. The label `remedy` names the strategy that removes the skew. The label is empty if no such strategy"
    " is known.",
    unknown="The group has no topic skew, or the topic skew is unknown.",
    example='rebalance_monitor_topic_skew{remedy!=""} > 0',
)
WHAT_IF_EXCESS_PARTITIONS: Final = Signal(
    name="rebalance_monitor_what_if_excess_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    granularity=PARTITION,
    help="Number of excess partitions that the group would have with this strategy. The series exists only if a"
    " fairer valid assignment exists.",
    unknown=_UNFAIR_ONLY,
    example='min by (cluster, group) (rebalance_monitor_what_if_excess_partitions{strategy=~"sticky|uniform"})',
)
WHAT_IF_MOVED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_what_if_moved_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    granularity=PARTITION,
    help="Number of partitions that would move if the group changed to this strategy. The series exists only if a"
    " fairer valid assignment exists.",
    unknown=_UNFAIR_ONLY,
    example="rebalance_monitor_what_if_moved_partitions"
    " and on (cluster, group, strategy) rebalance_monitor_what_if_excess_partitions == 0",
)
IDLE_MEMBERS: Final = Signal(
    name="rebalance_monitor_idle_members",
    unit="members",
    granularity=PARTITION,
    help="Number of members without partitions.",
    unknown=_MEMBERS_UNKNOWN,
    example="sum by (cluster) (rebalance_monitor_idle_members)",
)
AVOIDABLE_IDLE_MEMBERS: Final = Signal(
    name="rebalance_monitor_avoidable_idle_members",
    unit="members",
    granularity=PARTITION,
    help="Number of members that have no partitions, although a different valid assignment could give them some"
    " partitions.",
    unknown=f"{_MEMBERS_UNKNOWN} The series is also absent if the partition count of a topic is uncertain, or if the"
    " members have too many different subscriptions.",
    example="rebalance_monitor_avoidable_idle_members > 0",
)
MEMBER_PARTITIONS_MAX: Final = Signal(
    name="rebalance_monitor_member_partitions_max",
    unit="partitions",
    granularity=PARTITION,
    help="Number of partitions of the member that holds the most partitions.",
    unknown=_MEMBERS_UNKNOWN,
    example="rebalance_monitor_member_partitions_max and on (cluster, group) rebalance_monitor_excess_partitions > 0",
)
BUSIEST_MEMBER: Final = Signal(
    name="rebalance_monitor_busiest_member",
    unit="partitions",
    labels=(*OF_A_GROUP, "client_id", "client_host", "group_instance_id"),
    help="Number of partitions of the busiest member. The series exists only for groups with excess partitions. The"
    " labels identify the member. If several members hold the largest number of partitions, the series shows the first"
    " of these members by member id. When the busiest member changes, a new series replaces the old one. At any time, a"
    " group has at most one of these series.",
    unknown="The group has no excess partitions, or the number of its excess partitions is unknown.",
    example="topk(10, rebalance_monitor_busiest_member)",
)
UNOWNED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_unowned_partitions",
    unit="partitions",
    help="Number of partitions without an owner. The value counts only existing topics to which members subscribe."
    " Partitions that never had an owner are included. Partitions that a cooperative rebalance will assign in its next"
    " round are not included.",
    unknown="Every partition has an owner, or the value is unknown. The value is unknown if a subscribed topic was"
    " not sampled yet, or if the assignment of a member is unknown. The value is also unknown if the group is"
    " rebalancing, has no members, or does not distribute partitions among members. Another possible reason is an"
    " open transaction that blocks the group's records.",
    example="rebalance_monitor_unowned_partitions > 0",
)
UNOWNED_RECORDS: Final = Signal(
    name="rebalance_monitor_unowned_records",
    unit="records",
    help="Number of records that wait in partitions without an owner. If the group never committed an offset of a"
    " partition, the value counts all records of this partition. Otherwise, the value counts only the lag of this"
    " partition.",
    unknown="Every partition has an owner. The series is also absent if an offset of a partition without an owner is"
    " unknown.",
    example="rebalance_monitor_unowned_records > 0",
)
UNEVEN_WORK_RECORDS_PER_SECOND: Final = Signal(
    name="rebalance_monitor_uneven_work_records_per_second",
    unit="records per second",
    help="Rate at which producers write to the partitions of the busiest member, minus the rate for the busiest member"
    " in the fairest assignment. The series exists only if the value is at least 10 records per second, and at least"
    " half of the rate in the fairest assignment.",
    unknown="The work is even, a hot partition makes it uneven, or the rate of a partition is unknown.",
    example="topk(10, rebalance_monitor_uneven_work_records_per_second)",
)
ASSIGNMENT_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_assignment_timestamp_seconds",
    unit="seconds",
    help="Time of the record that contains the evaluated assignment, in seconds since 1970. The series exists only for"
    " groups with drift or with excess partitions. The metrics of fairness and drift describe this assignment.",
    unknown="The group has no drift and no excess partitions, or the monitor does not know whether the group has"
    " drift or excess partitions.",
    example="time() - rebalance_monitor_assignment_timestamp_seconds"
    " and on (cluster, group) rebalance_monitor_excess_partitions > 0",
)
