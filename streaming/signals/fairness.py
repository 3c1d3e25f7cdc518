"""Fairness: these metrics show whether the assignment of each group follows the group's strategy and is fair."""

from __future__ import annotations

from typing import Final

from streaming.signals.signal import OF_A_GROUP, PARTITION, Signal

_MEMBERS_UNKNOWN = (
    "In `__consumer_offsets`, records of the group are missing, or an open transaction blocks the group's partition."
    " The series is also absent if the group has no members."
)
_NOT_COMPARABLE = (
    "The series is also absent if a partition has no owner or several owners. The series is also absent if the"
    " partition count of a topic is unknown, or if the leader possibly used a partition count that differs from the"
    " current count. The series is also absent for Kafka Streams, Faust and Goka, because they assign partitions with"
    " the same number of several topics together."
)
_TOO_MANY_SUBSCRIPTIONS = "The series is also absent if the members have too many different subscriptions."
_UNFAIR_ONLY = (
    "No valid assignment is fairer than the current assignment. The series is also absent if the group has more than"
    f" 20,000 partitions, or if the strategy cannot compute a valid assignment. {_NOT_COMPARABLE}"
)

DRIFT_PARTITIONS: Final = Signal(
    name="rebalance_monitor_drift_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    help="Number of partitions whose owner breaks a rule of the group's strategy. For a strategy that the group does"
    " not use, the value is the number of partitions that would have an owner other than the current owner with this"
    " strategy. By default, series for unused strategies and series with the value 0 exist only for the groups with the"
    " worst problems.",
    unknown="The value is 0 or unknown. If the verdict in `rebalance_monitor_assignment_verdict` is `match`,"
    " `equivalent` or `withheld`, the value is 0. For other verdicts, the value is unknown.",
    example="rebalance_monitor_drift_partitions > 0"
    ' and on (cluster, group, strategy) rebalance_monitor_assignment_verdict{verdict="drift"}',
)
ASSIGNMENT_VERDICT: Final = Signal(
    name="rebalance_monitor_assignment_verdict",
    unit="boolean",
    labels=(*OF_A_GROUP, "strategy", "verdict"),
    label_values={
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
    },
    help="The value is 1 for the current verdict on the group's assignment. The label `verdict` shows whether the"
    " assignment follows the group's strategy. Other verdicts have no series.",
    unknown="The group has no members, or the group does not assign topic partitions to members.",
    example='rebalance_monitor_assignment_verdict{verdict="drift"} == 1',
)
EXCESS_PARTITIONS: Final = Signal(
    name="rebalance_monitor_excess_partitions",
    unit="partitions",
    help="Number of excess partitions of the member with the most partitions. Example: this member has 6 partitions. In"
    " the fairest valid assignment, no member has more than 4 partitions, so the value is 2.",
    unknown=f"{_MEMBERS_UNKNOWN} {_NOT_COMPARABLE} {_TOO_MANY_SUBSCRIPTIONS}",
    example="topk(10, rebalance_monitor_excess_partitions > 0)",
)
IMBALANCE_SCORE: Final = Signal(
    name="rebalance_monitor_imbalance_score",
    unit="score",
    labels=(*OF_A_GROUP, "measure", "scope"),
    label_values={"measure": ("partitions", "lag", "throughput"), "scope": ("member", "host")},
    granularity=PARTITION,
    help="Fairness score from 0 to 100. The score is 100 if no valid assignment shares the work more evenly. The score"
    " is 0 if one member or one client host does all the work, and a fairer assignment exists.",
    unknown=f"{_MEMBERS_UNKNOWN} {_NOT_COMPARABLE} Series with the measure `partitions` are also absent if the members"
    " have too many different subscriptions. Series with the measure `lag` or `throughput` are also absent until the"
    " monitor has measured the lag and the throughput for the current assignment. These series are also absent if the"
    " lag or the throughput of a partition is unknown.",
    example='bottomk(10, rebalance_monitor_imbalance_score{measure="partitions", scope="member"} < 100)',
)
WORK_IMBALANCE_RATIO: Final = Signal(
    name="rebalance_monitor_work_imbalance_ratio",
    unit="ratio",
    labels=(*OF_A_GROUP, "measure", "scope"),
    label_values={"measure": ("lag", "throughput"), "scope": ("member", "host")},
    granularity=PARTITION,
    help="Work of the busiest member, divided by the mean work of all members. If the label `measure` is `lag`, work is"
    " the lag in records. If `measure` is `throughput`, work is the throughput in records per second. If the label"
    " `scope` is `host`, the value compares client hosts instead of members.",
    unknown="The monitor has not measured the lag and the throughput for the current assignment yet. The series is also"
    " absent if the work of a partition is unknown, or if the total work of the group is 0.",
    example='rebalance_monitor_work_imbalance_ratio{measure="throughput", scope="member"} > 2',
)
TOPIC_SKEW: Final = Signal(
    name="rebalance_monitor_topic_skew",
    unit="partitions",
    labels=(*OF_A_GROUP, "remedy"),
    help="Number of surplus partitions in an assignment with topic skew. Topic skew means that the same members have an"
    " extra partition in each of several topics. In the fairest valid assignment, other members own the surplus"
    " partitions. The strategy `range` can cause topic skew. The label `remedy` names a strategy that removes the topic"
    " skew. The group's client library or coordinator has this strategy. If no known strategy removes the topic skew,"
    " the label `remedy` is empty.",
    unknown="The assignment has no topic skew, or the topic skew is unknown.",
    example='rebalance_monitor_topic_skew{remedy!=""} > 0',
)
WHAT_IF_EXCESS_PARTITIONS: Final = Signal(
    name="rebalance_monitor_what_if_excess_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    granularity=PARTITION,
    help="Number of excess partitions that the group would have with the strategy in the label `strategy`. The group's"
    " client library may not have this strategy. For the definition of excess partitions, see"
    " `rebalance_monitor_excess_partitions`.",
    unknown=_UNFAIR_ONLY,
    example='min by (cluster, group) (rebalance_monitor_what_if_excess_partitions{strategy=~"sticky|uniform"})',
)
WHAT_IF_MOVED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_what_if_moved_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "strategy"),
    granularity=PARTITION,
    help="Number of partitions that would move to a different owner if the group used the strategy in the label"
    " `strategy`.",
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
    help="Number of members that have no partitions, but would have partitions in a different valid assignment.",
    unknown=f"{_MEMBERS_UNKNOWN} {_NOT_COMPARABLE} {_TOO_MANY_SUBSCRIPTIONS}",
    example="rebalance_monitor_avoidable_idle_members > 0",
)
MEMBER_PARTITIONS_MAX: Final = Signal(
    name="rebalance_monitor_member_partitions_max",
    unit="partitions",
    granularity=PARTITION,
    help="Number of partitions of the member with the most partitions.",
    unknown=_MEMBERS_UNKNOWN,
    example="rebalance_monitor_member_partitions_max and on (cluster, group) rebalance_monitor_excess_partitions > 0",
)
BUSIEST_MEMBER: Final = Signal(
    name="rebalance_monitor_busiest_member",
    unit="partitions",
    labels=(*OF_A_GROUP, "client_id", "client_host", "group_instance_id"),
    help="Number of partitions of the busiest member. The busiest member is the member with the most partitions. If"
    " several members have the same largest number of partitions, the busiest member is the member with the"
    " alphabetically first member id. The labels identify the busiest member. A group has at most one series at any"
    " time.",
    unknown="The number of excess partitions is 0 or unknown.",
    example="topk(10, rebalance_monitor_busiest_member)",
)
UNOWNED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_unowned_partitions",
    unit="partitions",
    help="Number of partitions without an owner, in existing topics to which members subscribe. The value includes"
    " partitions that never had an owner. A partition that the next round of a cooperative rebalance will assign"
    " counts only after `evaluation.stuck_after_seconds`.",
    unknown="Every partition has an owner, or the value is unknown. The value is unknown if a subscribed topic was not"
    " sampled yet, or if the assignment of a member is unknown. The value is also unknown if the group is rebalancing,"
    " has no members, or does not assign topic partitions. The value is also unknown if an open transaction blocks the"
    " group's partition of `__consumer_offsets`.",
    example="rebalance_monitor_unowned_partitions > 0",
)
UNOWNED_RECORDS: Final = Signal(
    name="rebalance_monitor_unowned_records",
    unit="records",
    help="Number of unread records in partitions without an owner. If a partition has a committed offset, its number of"
    " unread records is its lag. If a partition has no committed offset, all its records are unread.",
    unknown="Every partition has an owner, or `rebalance_monitor_unowned_partitions` is unknown. The series is also"
    " absent if the number of unread records is unknown for a partition without an owner.",
    example="rebalance_monitor_unowned_records > 0",
)
UNEVEN_WORK_RECORDS_PER_SECOND: Final = Signal(
    name="rebalance_monitor_uneven_work_records_per_second",
    unit="records per second",
    help="Excess work of the member with the most work, in records per second. The work of a member is the total"
    " produce rate of its partitions. Example: the member with the most work receives 70 records per second. In the"
    " fairest assignment, no member receives more than 40 records per second, so the value is 30. The series exists"
    " only if the value is at least 10 records per second. The value must also be at least half of the largest work of"
    " a member in the fairest assignment (in the example, at least 20).",
    unknown="The members share the work evenly, or a hot partition prevents a fairer assignment. The series is also"
    " absent if the produce rate of a partition is unknown.",
    example="topk(10, rebalance_monitor_uneven_work_records_per_second)",
)
ASSIGNMENT_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_assignment_timestamp_seconds",
    unit="seconds",
    help="Start time of the current assignment, in seconds since 1970. The value is the timestamp of the record"
    " that contains the assignment.",
    unknown="The monitor has found no excess partitions and no drift in the group.",
    example="time() - rebalance_monitor_assignment_timestamp_seconds"
    " and on (cluster, group) rebalance_monitor_excess_partitions > 0",
)
