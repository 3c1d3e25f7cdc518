"""Fairness: the actual and the expected assignment, how evenly work is shared, and the results of other strategies."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from streaming.signals.signal import OF_A_GROUP, PARTITION, Signal

_MEMBERS_UNKNOWN = (
    "Some records of the group are missing, the group has no members, or an open transaction blocks the group's"
    " records."
)
_UNFAIR_ONLY = (
    "No valid assignment is fairer, or the result is unknown. Possible reasons for an unknown result: the group has"
    " more than 20,000 partitions, a partition has no owner or several owners, the partition count of a topic is"
    " uncertain, or the strategy failed."
)

DRIFT_PARTITIONS: Final = Signal(
    name="rebalance_monitor_drift_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    help="Partitions whose owner breaks a rule of the group's strategy. For other strategies, the value counts"
    " partitions that the strategy would assign to a different member. By default, only the group's own strategy has a"
    " series, and only if the value is not 0.",
    unknown="No assignment was evaluated yet, the partition count of a topic is unknown, or the actual and the expected"
    " assignment differ in a way that does not prove an error. For the group's own strategy, the value 0 has a series"
    " only in full detail. The verdict `match` in `rebalance_monitor_assignment_verdict` also means 0.",
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
    help="1 for the verdict that results from comparing the assignment with the group's own strategy.",
    unknown="The group has no members, or its members do not share the partitions of topics.",
    example='rebalance_monitor_assignment_verdict{verdict="drift"} == 1',
)
EXCESS_PARTITIONS: Final = Signal(
    name="rebalance_monitor_excess_partitions",
    unit="partitions",
    help="Partitions of the busiest member beyond the fairest possible maximum. 0 if no valid assignment has a smaller"
    " maximum.",
    unknown=f"{_MEMBERS_UNKNOWN} The value is also unknown if the partition count of a topic is uncertain, or if the"
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
    help="Fairness score from 0 to 100. 100 means that no valid assignment shares the work more evenly. 0 means that"
    " one member or client host has all the work, although a different assignment could avoid this.",
    unknown=f"{_MEMBERS_UNKNOWN} For lag and throughput, the value is also unknown if the current assignment was not"
    " measured yet, or if the lag or throughput of a partition is unknown.",
    example='bottomk(10, rebalance_monitor_imbalance_score{measure="partitions", scope="member"} < 100)',
)
WORK_IMBALANCE_RATIO: Final = Signal(
    name="rebalance_monitor_work_imbalance_ratio",
    unit="ratio",
    labels=(*OF_A_GROUP, "measure", "scope"),
    label_values=MappingProxyType({"measure": ("lag", "throughput"), "scope": ("member", "host")}),
    granularity=PARTITION,
    help="Lag or throughput of the busiest member or client host, divided by the mean of all members or hosts. Lag is"
    " in records. Throughput is in records per second.",
    unknown="The current assignment was not measured yet, the lag or throughput of a partition is unknown, or the total"
    " lag or throughput is 0.",
    example='rebalance_monitor_work_imbalance_ratio{measure="throughput", scope="member"} > 2',
)
TOPIC_SKEW: Final = Signal(
    name="rebalance_monitor_topic_skew",
    unit="partitions",
    labels=(*OF_A_GROUP, "remedy"),
    help="Surplus partitions of members that hold the extra partition of several topics, although each topic is shared"
    " evenly. The range strategy causes topic skew. The label `remedy` names the strategy that removes the skew."
    " The label is empty if no such strategy is known.",
    unknown="The group has no topic skew, or the topic skew is unknown.",
    example='rebalance_monitor_topic_skew{remedy!=""} > 0',
)
WHAT_IF_EXCESS_PARTITIONS: Final = Signal(
    name="rebalance_monitor_what_if_excess_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    granularity=PARTITION,
    help="Number of excess partitions that the group would have with this strategy. The series exists only if the"
    " group's assignment can be fairer.",
    unknown=_UNFAIR_ONLY,
    example='min by (cluster, group) (rebalance_monitor_what_if_excess_partitions{strategy=~"sticky|uniform"})',
)
WHAT_IF_MOVED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_what_if_moved_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    granularity=PARTITION,
    help="Partitions that would move if the group changed to this strategy. The series exists only if the group's"
    " assignment can be fairer.",
    unknown=_UNFAIR_ONLY,
    example="rebalance_monitor_what_if_moved_partitions"
    " and on (cluster, group, strategy) rebalance_monitor_what_if_excess_partitions == 0",
)
IDLE_MEMBERS: Final = Signal(
    name="rebalance_monitor_idle_members",
    unit="members",
    granularity=PARTITION,
    help="Members without partitions.",
    unknown=_MEMBERS_UNKNOWN,
    example="sum by (cluster) (rebalance_monitor_idle_members)",
)
AVOIDABLE_IDLE_MEMBERS: Final = Signal(
    name="rebalance_monitor_avoidable_idle_members",
    unit="members",
    granularity=PARTITION,
    help="Members that have no partitions, although a different valid assignment could give them some.",
    unknown=f"{_MEMBERS_UNKNOWN} The value is also unknown if the partition count of a topic is uncertain, or if the"
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
    " labels identify the member. If several members hold equally many partitions, the series shows the one whose"
    " member id comes first in the alphabet. When the busiest member changes, a new series replaces the old one."
    " At any time, a group has at most one of these series.",
    unknown="No valid assignment is fairer, or the fairest possible maximum is unknown.",
    example="topk(10, rebalance_monitor_busiest_member)",
)
UNOWNED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_unowned_partitions",
    unit="partitions",
    help="Partitions without an owner, in existing topics to which members subscribe. Partitions that never had an"
    " owner count too. Partitions that a cooperative rebalance will assign in its next round do not count.",
    unknown="Every partition has an owner, a subscribed topic was not sampled yet, or a member's assignment is unknown."
    " The value is also unknown if"
    " the group is rebalancing, has no members, or does not share partitions. It is also unknown if an open"
    " transaction blocks the group's records.",
    example="rebalance_monitor_unowned_partitions > 0",
)
UNOWNED_RECORDS: Final = Signal(
    name="rebalance_monitor_unowned_records",
    unit="records",
    help="Records that wait in partitions without an owner. If the group never committed an offset of a partition, all"
    " records of the partition count. Otherwise only the lag of the partition counts.",
    unknown="Every partition has an owner, or the offset of a partition without an owner is unknown.",
    example="rebalance_monitor_unowned_records > 0",
)
ASSIGNMENT_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_assignment_timestamp_seconds",
    unit="seconds",
    help="Time of the record that contains the evaluated assignment, in seconds since 1970. The series exists only for"
    " groups with drift or with excess partitions. The metrics of fairness and drift describe this assignment.",
    unknown="The group has no drift and no excess partitions, or both are unknown.",
    example="time() - rebalance_monitor_assignment_timestamp_seconds"
    " and on (cluster, group) rebalance_monitor_excess_partitions > 0",
)
