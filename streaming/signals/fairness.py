"""Fairness: what members hold against what they should, how evenly work is shared, and what could be made of it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from streaming.signals.signal import OF_A_GROUP, Signal

_NOT_TOLD = "Some of the group's records are missing, it has no members, or an open transaction hides it."
_UNFAIR_ONLY = (
    "The group is as fair as can be, so there is nothing to gain; or the outcome is not known: it is too large, a"
    " topic's size is in doubt, or the strategy failed."
)

DRIFT_PARTITIONS: Final = Signal(
    name="rebalance_monitor_drift_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    help="Partitions whose owner breaks a rule of the group's strategy; of other strategies, partitions that the "
    "strategy would place elsewhere. No series where that is unknown.",
    unknown="Nothing is judged yet, a topic's size is not known, or the difference proves nothing wrong.",
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
    help="1 for the verdict on the group's own strategy.",
    unknown="The group divides no partitions of topics, or has no members.",
    example='rebalance_monitor_assignment_verdict{verdict="drift"} == 1',
)
EXCESS_PARTITIONS: Final = Signal(
    name="rebalance_monitor_excess_partitions",
    unit="partitions",
    help="Partitions of the busiest member beyond the smallest maximum any valid assignment reaches: a gap nothing can"
    " close is no excess.",
    unknown=f"{_NOT_TOLD} Or a topic's size is in doubt, or too many subscriptions differ.",
    example="topk(10, rebalance_monitor_excess_partitions > 0)",
)
IMBALANCE_SCORE: Final = Signal(
    name="rebalance_monitor_imbalance_score",
    unit="score",
    labels=(*OF_A_GROUP, "measure", "scope"),
    label_values=MappingProxyType(
        {"measure": ("partitions", "lag", "throughput"), "scope": ("member", "host")},
    ),
    help="How fairly work is shared: 100 is as fair as any valid assignment, 0 all with one who need not have it.",
    unknown=f"{_NOT_TOLD} Lag and throughput: not measured yet of the assignment that stands, or not known of every"
    " partition.",
    example='bottomk(10, rebalance_monitor_imbalance_score{measure="partitions", scope="member"} < 100)',
)
WORK_IMBALANCE_RATIO: Final = Signal(
    name="rebalance_monitor_work_imbalance_ratio",
    unit="ratio",
    labels=(*OF_A_GROUP, "measure", "scope"),
    label_values=MappingProxyType({"measure": ("lag", "throughput"), "scope": ("member", "host")}),
    help="Most lag (records) or throughput (records per second) of one member or client host over the mean.",
    unknown="Not measured yet of the assignment that stands, not known of every partition, or there is none of it.",
    example='rebalance_monitor_work_imbalance_ratio{measure="throughput", scope="member"} > 2',
)
TOPIC_SKEW: Final = Signal(
    name="rebalance_monitor_topic_skew",
    unit="partitions",
    labels=(*OF_A_GROUP, "remedy"),
    help="Partitions that the same members have too many although each topic is shared evenly, as range does; remedy:"
    " the strategy that removes that, empty where none is known.",
    unknown="There is no such skew, or it is not known.",
    example='rebalance_monitor_topic_skew{remedy!=""} > 0',
)
WHAT_IF_EXCESS_PARTITIONS: Final = Signal(
    name="rebalance_monitor_what_if_excess_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    help="Excess partitions if the group had this strategy; of groups that are not as fair as can be.",
    unknown=_UNFAIR_ONLY,
    example='min by (cluster, group) (rebalance_monitor_what_if_excess_partitions{strategy=~"sticky|uniform"})',
)
WHAT_IF_MOVED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_what_if_moved_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    help="Partitions that would move if the group had this strategy; of groups that are not as fair as can be.",
    unknown=_UNFAIR_ONLY,
    example="rebalance_monitor_what_if_moved_partitions"
    " and on (cluster, group, strategy) rebalance_monitor_what_if_excess_partitions == 0",
)
IDLE_MEMBERS: Final = Signal(
    name="rebalance_monitor_idle_members",
    unit="members",
    help="Members that hold no partition.",
    unknown=_NOT_TOLD,
    example="sum by (cluster) (rebalance_monitor_idle_members)",
)
AVOIDABLE_IDLE_MEMBERS: Final = Signal(
    name="rebalance_monitor_avoidable_idle_members",
    unit="members",
    help="Members that hold no partition, beyond those no valid assignment could employ.",
    unknown=f"{_NOT_TOLD} Or a topic's size is in doubt.",
    example="rebalance_monitor_avoidable_idle_members > 0",
)
IMBALANCE_RATIO: Final = Signal(
    name="rebalance_monitor_imbalance_ratio",
    unit="ratio",
    help="Most partitions held by a member over the mean.",
    unknown=f"{_NOT_TOLD} Or nothing is assigned.",
    example="rebalance_monitor_imbalance_ratio > 1.5 and rebalance_monitor_excess_partitions > 0",
)
MEMBER_PARTITIONS_MAX: Final = Signal(
    name="rebalance_monitor_member_partitions_max",
    unit="partitions",
    help="Most partitions held by a member.",
    unknown=_NOT_TOLD,
    example="rebalance_monitor_member_partitions_max - rebalance_monitor_member_partitions_min",
)
MEMBER_PARTITIONS_MIN: Final = Signal(
    name="rebalance_monitor_member_partitions_min",
    unit="partitions",
    help="Fewest partitions held by a member.",
    unknown=_NOT_TOLD,
    example="rebalance_monitor_member_partitions_min == 0",
)
BUSIEST_MEMBER: Final = Signal(
    name="rebalance_monitor_busiest_member",
    unit="partitions",
    labels=(*OF_A_GROUP, "client_id", "client_host", "group_instance_id"),
    help="Partitions of the member that holds most, in groups with excess partitions, and who that is; of several the"
    " first. Another one is another series: one a group at any time.",
    unknown="The group is as fair as can be, or it is not known whether it is.",
    example="topk(10, rebalance_monitor_busiest_member)",
)
UNOWNED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_unowned_partitions",
    unit="partitions",
    help="Partitions of subscribed, existing topics that no member owns, whether a member owned them before or not,"
    " without those that a cooperative round withholds for the next one.",
    unknown="A subscribed topic was not sampled yet, a member's assignment is unknown, the group has no members or does"
    " not divide partitions, or an open transaction hides it.",
    example="rebalance_monitor_unowned_partitions > 0",
)
UNOWNED_RECORDS: Final = Signal(
    name="rebalance_monitor_unowned_records",
    unit="records",
    help="Records that wait in partitions without an owner: the lag of those that the group committed, all records of"
    " the others.",
    unknown="No partition is without an owner, or an offset of one is unknown.",
    example="rebalance_monitor_unowned_records > 0",
)
ASSIGNMENT_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_assignment_timestamp_seconds",
    unit="seconds",
    help="When the assignment was recorded that fairness and drift are told of, in seconds since 1970.",
    unknown="Nothing is judged yet, or an open transaction hides the group.",
    example="time() - rebalance_monitor_assignment_timestamp_seconds"
    " and on (cluster, group) rebalance_monitor_excess_partitions > 0",
)
