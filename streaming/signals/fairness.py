"""Fairness: the actual and the expected assignment, how evenly work is shared, and the results of other strategies."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from streaming.signals.signal import OF_A_GROUP, Signal

_MEMBERS_UNKNOWN = (
    "Some records of the group are missing, it has no members, or an open transaction blocks its records."
)
_UNFAIR_ONLY = (
    "No valid assignment is fairer, or the result is unknown. Possible reasons: the group has more than 20,000"
    " partitions, a partition has no owner or several owners, the partition count of a topic is in doubt, or the"
    " strategy failed."
)

DRIFT_PARTITIONS: Final = Signal(
    name="rebalance_monitor_drift_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    help="Partitions whose owner breaks a rule of the group's strategy. For other strategies: partitions that the"
    " strategy would assign to a different member.",
    unknown="No assignment was evaluated yet, the partition count of a topic is unknown, or the difference does not"
    " prove an error.",
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
    help="1 for the verdict on the assignment by the group's own strategy.",
    unknown="The group has no members, or its members do not divide topic partitions.",
    example='rebalance_monitor_assignment_verdict{verdict="drift"} == 1',
)
EXCESS_PARTITIONS: Final = Signal(
    name="rebalance_monitor_excess_partitions",
    unit="partitions",
    help="Partitions of the busiest member beyond the fairest possible maximum. 0 if no valid assignment has a smaller"
    " maximum.",
    unknown=f"{_MEMBERS_UNKNOWN} Also unknown if the partition count of a topic is in doubt, or if too many"
    " subscriptions differ.",
    example="topk(10, rebalance_monitor_excess_partitions > 0)",
)
IMBALANCE_SCORE: Final = Signal(
    name="rebalance_monitor_imbalance_score",
    unit="score",
    labels=(*OF_A_GROUP, "measure", "scope"),
    label_values=MappingProxyType(
        {"measure": ("partitions", "lag", "throughput"), "scope": ("member", "host")},
    ),
    help="Fairness score, 0 to 100. 100: no valid assignment shares the work more evenly. 0: one member or client host"
    " has all the work, and a different assignment could avoid this.",
    unknown=f"{_MEMBERS_UNKNOWN} For lag and throughput: the current assignment was not measured yet, or the lag or"
    " throughput of a partition is unknown.",
    example='bottomk(10, rebalance_monitor_imbalance_score{measure="partitions", scope="member"} < 100)',
)
WORK_IMBALANCE_RATIO: Final = Signal(
    name="rebalance_monitor_work_imbalance_ratio",
    unit="ratio",
    labels=(*OF_A_GROUP, "measure", "scope"),
    label_values=MappingProxyType({"measure": ("lag", "throughput"), "scope": ("member", "host")}),
    help="Largest lag (records) or throughput (records per second) of one member or client host, divided by the mean.",
    unknown="The current assignment was not measured yet, the lag or throughput of a partition is unknown, or the"
    " total is 0.",
    example='rebalance_monitor_work_imbalance_ratio{measure="throughput", scope="member"} > 2',
)
TOPIC_SKEW: Final = Signal(
    name="rebalance_monitor_topic_skew",
    unit="partitions",
    labels=(*OF_A_GROUP, "remedy"),
    help="Surplus partitions of members that hold the extra partition of several topics, although each topic is shared"
    " evenly. The range strategy causes this. Label remedy: the strategy that removes the skew, empty if none is"
    " known.",
    unknown="The group has no topic skew, or the topic skew is unknown.",
    example='rebalance_monitor_topic_skew{remedy!=""} > 0',
)
WHAT_IF_EXCESS_PARTITIONS: Final = Signal(
    name="rebalance_monitor_what_if_excess_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    help="Excess partitions if the group used this strategy. Only for groups whose assignment can be fairer.",
    unknown=_UNFAIR_ONLY,
    example='min by (cluster, group) (rebalance_monitor_what_if_excess_partitions{strategy=~"sticky|uniform"})',
)
WHAT_IF_MOVED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_what_if_moved_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    help="Partitions that would move if the group used this strategy. Only for groups whose assignment can be fairer.",
    unknown=_UNFAIR_ONLY,
    example="rebalance_monitor_what_if_moved_partitions"
    " and on (cluster, group, strategy) rebalance_monitor_what_if_excess_partitions == 0",
)
IDLE_MEMBERS: Final = Signal(
    name="rebalance_monitor_idle_members",
    unit="members",
    help="Members without partitions.",
    unknown=_MEMBERS_UNKNOWN,
    example="sum by (cluster) (rebalance_monitor_idle_members)",
)
AVOIDABLE_IDLE_MEMBERS: Final = Signal(
    name="rebalance_monitor_avoidable_idle_members",
    unit="members",
    help="Members without partitions that a different valid assignment could give partitions to.",
    unknown=f"{_MEMBERS_UNKNOWN} Also unknown if the partition count of a topic is in doubt, or if too many"
    " subscriptions differ.",
    example="rebalance_monitor_avoidable_idle_members > 0",
)
IMBALANCE_RATIO: Final = Signal(
    name="rebalance_monitor_imbalance_ratio",
    unit="ratio",
    help="Partitions of the busiest member divided by the mean.",
    unknown=f"{_MEMBERS_UNKNOWN} Also absent if no partition is assigned.",
    example="rebalance_monitor_imbalance_ratio > 1.5 and rebalance_monitor_excess_partitions > 0",
)
MEMBER_PARTITIONS_MAX: Final = Signal(
    name="rebalance_monitor_member_partitions_max",
    unit="partitions",
    help="Most partitions held by one member.",
    unknown=_MEMBERS_UNKNOWN,
    example="rebalance_monitor_member_partitions_max - rebalance_monitor_member_partitions_min",
)
MEMBER_PARTITIONS_MIN: Final = Signal(
    name="rebalance_monitor_member_partitions_min",
    unit="partitions",
    help="Fewest partitions held by one member.",
    unknown=_MEMBERS_UNKNOWN,
    example="rebalance_monitor_member_partitions_min == 0",
)
BUSIEST_MEMBER: Final = Signal(
    name="rebalance_monitor_busiest_member",
    unit="partitions",
    labels=(*OF_A_GROUP, "client_id", "client_host", "group_instance_id"),
    help="Partitions of the busiest member, in groups with excess partitions. The labels identify the member. If"
    " several members hold equally many partitions, the series shows the first by member id. When the busiest member"
    " changes, a new series replaces the old one. There is at most one per group.",
    unknown="No valid assignment is fairer, or the fairest possible maximum is unknown.",
    example="topk(10, rebalance_monitor_busiest_member)",
)
UNOWNED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_unowned_partitions",
    unit="partitions",
    help="Partitions of subscribed, existing topics that no member owns. It does not matter whether a member owned"
    " them before. Partitions that a cooperative rebalance withholds for its next round are not counted.",
    unknown="A subscribed topic was not sampled yet, or a member's assignment is unknown. Or the group is rebalancing,"
    " has no members, or does not divide partitions. Or an open transaction blocks the group's records.",
    example="rebalance_monitor_unowned_partitions > 0",
)
UNOWNED_RECORDS: Final = Signal(
    name="rebalance_monitor_unowned_records",
    unit="records",
    help="Records that wait in partitions without an owner. If the group committed an offset of the partition, the"
    " lag of the partition counts. If not, all records of the partition count.",
    unknown="Every partition has an owner, or the offset of a partition without an owner is unknown.",
    example="rebalance_monitor_unowned_records > 0",
)
ASSIGNMENT_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_assignment_timestamp_seconds",
    unit="seconds",
    help="Time of the record with the assignment that fairness and drift describe, in seconds since 1970.",
    unknown="No assignment was evaluated yet, or an open transaction blocks the group's records.",
    example="time() - rebalance_monitor_assignment_timestamp_seconds"
    " and on (cluster, group) rebalance_monitor_excess_partitions > 0",
)
