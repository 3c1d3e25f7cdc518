"""Rebalances: these metrics show the rebalances, moved partitions, commit gaps and conditions of each group."""

from __future__ import annotations

from typing import Final

from streaming.signals.signal import COUNTER, HISTOGRAM, OF_A_GROUP, PARTITION, Signal

REBALANCES: Final = Signal(
    name="rebalance_monitor_rebalances_total",
    kind=COUNTER,
    unit="rebalances",
    help="Number of rebalances since the monitor first saw the group. In a classic group, each new generation counts as"
    " one rebalance, except a generation in which the group becomes Empty. In any other group, each assignment that the"
    " coordinator computes counts as one rebalance.",
    unknown="The group does not exist, or it only commits offsets (`assign()` in the Java client). The series also"
    " exists if the value is 0.",
    example="topk(10, sum by (cluster, group) (increase(rebalance_monitor_rebalances_total[1h])))",
)
REBALANCES_FAILED: Final = Signal(
    name="rebalance_monitor_rebalances_failed_total",
    kind=COUNTER,
    unit="rebalances",
    granularity=PARTITION,
    help="Number of failed rebalances. In a failed rebalance, the new generation never gets an assignment. The monitor"
    " counts only failures that it can detect from the records in __consumer_offsets.",
    unknown="The group is a classic group and `source.kind` is `admin-api`.",
    example="increase(rebalance_monitor_rebalances_failed_total[1h]) > 0",
)
EMPTY_TRANSITIONS: Final = Signal(
    name="rebalance_monitor_empty_transitions_total",
    kind=COUNTER,
    unit="transitions",
    granularity=PARTITION,
    help="Number of times that the group became Empty.",
    unknown="The group does not exist, or it only commits offsets (`assign()` in the Java client). The series also"
    " exists if the value is 0.",
    example="increase(rebalance_monitor_empty_transitions_total[15m]) > 0 and rebalance_monitor_group_members == 0",
)
REBALANCES_BY_CAUSE: Final = Signal(
    name="rebalance_monitor_rebalances_by_cause_total",
    kind=COUNTER,
    unit="rebalances",
    labels=(*OF_A_GROUP, "cause"),
    label_values={
        "cause": (
            "strategy_changed",
            "member_gone",
            "member_joined",
            "subscription_changed",
            "metadata_changed",
            "cooperative_followup",
            "unexplained",
            "unknown",
        )
    },
    granularity=PARTITION,
    help="Number of rebalances since the monitor first saw the group, by main cause. The value counts only"
    " generations with a record in __consumer_offsets.",
    unknown="The monitor has not seen a rebalance with this cause in the group.",
    example='sum by (cause) (increase(rebalance_monitor_rebalances_by_cause_total{group="payments"}[1d]))',
)
MOVED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_moved_partitions_total",
    kind=COUNTER,
    unit="partitions",
    labels=(*OF_A_GROUP, "necessary"),
    label_values={"necessary": ("true", "false", "unknown")},
    granularity=PARTITION,
    help="Number of partitions that moved to a different owner. If the label `necessary` is `false`, a valid assignment"
    " without this move exists, and is at least as fair as the actual assignment. If the label `necessary` is"
    " `unknown`, the monitor does not know whether the move was necessary.",
    unknown="The group has no moves with this value of the label `necessary`.",
    example='topk(10, increase(rebalance_monitor_moved_partitions_total{necessary="false"}[1d]))',
)
COMMIT_GAP_SECONDS: Final = Signal(
    name="rebalance_monitor_commit_gap_seconds",
    kind=HISTOGRAM,
    unit="seconds",
    granularity=PARTITION,
    help="Time from the group's last commit before a rebalance to the group's first commit after the rebalance, in"
    " seconds. The histogram contains only commit gaps of known length. If the checkpoint is rebuilt or the group is"
    " deleted, the histogram starts again at 0.",
    unknown="The group has no commit gap, or the length of every commit gap is unknown. The table `commit_gaps` shows"
    " why the length of a commit gap is unknown.",
    example="histogram_quantile(0.9, sum by (cluster, group, le)"
    " (rate(rebalance_monitor_commit_gap_seconds_bucket[1d])))",
)
_CONDITIONS: Final = {
    "condition": (
        "rolling_restart",
        "rebalance_storm",
        "flapping_member",
        "endless_cooperative_rejoin",
        "eager_and_cooperative_mixed",
        "duplicate_claims",
        "subscription_mismatch",
        "unowned_partitions",
        "stuck_rebalance",
        "silent_group",
        "silent_static_member",
        "stuck_reconciliation",
        "long_commit_gap",
        "subscribed_topic_missing",
    )
}

GROUP_CONDITION: Final = Signal(
    name="rebalance_monitor_group_condition",
    unit="boolean",
    labels=(*OF_A_GROUP, "condition"),
    label_values=_CONDITIONS,
    help="The value is 1 for each condition that was active at the last sample. A condition is a lasting problem of"
    " the group, for example a rebalance storm. The command `rebalance-monitor history GROUP` shows the"
    " affected members and the start time.",
    unknown="The condition is not active, or the monitor does not know whether the condition is active.",
    example='rebalance_monitor_group_condition{condition="rebalance_storm"}'
    ' unless on (cluster, group) rebalance_monitor_group_condition{condition="rolling_restart"}',
)
GROUP_CONDITION_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_group_condition_timestamp_seconds",
    unit="seconds",
    labels=(*OF_A_GROUP, "condition"),
    label_values=_CONDITIONS,
    help="Start time of each active condition, in seconds since 1970. A restart of the monitor does not change the"
    " start time.",
    unknown="The condition is not active, or the monitor does not know whether the condition is active.",
    example="time() - rebalance_monitor_group_condition_timestamp_seconds > 3600",
)
