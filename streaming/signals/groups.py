"""The group: these metrics show the state, members and generation of each group, and rebalances in progress."""

from __future__ import annotations

from typing import Final

from streaming.signals.signal import CLUSTER, OF_A_CLUSTER, OF_A_GROUP, PARTITION, Signal

GROUP_INFO: Final = Signal(
    name="rebalance_monitor_group_info",
    unit="boolean",
    labels=(
        *OF_A_GROUP,
        "group_type",
        "protocol_type",
        "protocol",
        "protocol_source",
        "state",
        "coordinator",
        "team",
        "max_severity",
        "ignore_alerts",
    ),
    label_values={
        "group_type": ("classic", "consumer", "share", "streams"),
        "max_severity": ("critical", "warning", "info"),
        "ignore_alerts": ("true", "false"),
    },
    help="The labels describe the type, strategy, state, coordinator and settings of the group. The value is always 1."
    " The labels `group_type`, `protocol_type`, `protocol` and `state` use Kafka's names. The label `state` is Unknown"
    " if records of the group are missing, or if an open transaction blocks the group's partition of"
    " `__consumer_offsets`. The states PreparingRebalance and CompletingRebalance, and the states of streams groups,"
    " come from the last ListGroups response. The label `protocol` is the name of the strategy. The label"
    " `protocol_source` is `records` if a record contains the name of the strategy. The label `protocol_source` is"
    " `broker` if only the group coordinator reported the name of the strategy. If the strategy is unknown, the labels"
    " `protocol` and `protocol_source` are empty. The label `coordinator` is the id of the broker that coordinates the"
    " group. The labels `team`, `max_severity` and `ignore_alerts` come from the entries `[[groups]]` in the settings.",
    unknown="The group does not exist. Each existing group has exactly one series.",
    example='count by (cluster, state) (rebalance_monitor_group_info{group_type="classic"})',
)
GROUP_LIMIT: Final = Signal(
    name="rebalance_monitor_group_limit",
    unit="seconds",
    labels=(*OF_A_GROUP, "limit"),
    label_values={"limit": ("max_lag_seconds", "critical_lag_seconds", "max_commit_gap_seconds")},
    help="Limit for the lag or the commit gap of the group, in seconds. The label `limit` names the limit. The limits"
    " come from the entries `[[groups]]` in the settings. A warning fires if the lag in seconds is above"
    " `max_lag_seconds`. A critical alert fires if the lag in seconds is above `critical_lag_seconds`. A warning also"
    " fires if a commit gap and the lag in seconds are both above `max_commit_gap_seconds`. A commit gap is the time"
    " from the last commit before a rebalance to the first commit after the rebalance.",
    unknown="The group does not exist. Each existing group has one series for each limit.",
    example="rebalance_monitor_group_lag_seconds > on (cluster, group)"
    ' rebalance_monitor_group_limit{limit="max_lag_seconds"}',
)
GROUP_MEMBERS: Final = Signal(
    name="rebalance_monitor_group_members",
    unit="members",
    help="Number of members in the group's last known generation.",
    unknown="In `__consumer_offsets`, records of some members are missing, or an open transaction blocks"
    " the group's partition.",
    example="rebalance_monitor_group_members == 0 and rebalance_monitor_group_lag > 0",
)
GROUP_GENERATION: Final = Signal(
    name="rebalance_monitor_group_generation",
    unit="generations",
    granularity=PARTITION,
    help="Last known generation of a classic group, or last known group epoch of any other group.",
    unknown="The group is a classic group and `source.kind` is `admin-api`. The series is also absent if an open"
    " transaction blocks the group's partition of `__consumer_offsets`.",
    example="changes(rebalance_monitor_group_generation[10m]) > 3",
)
GROUP_REBALANCE_START_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_group_rebalance_start_timestamp_seconds",
    unit="seconds",
    help="Time when the monitor first saw the current rebalance, in seconds since 1970. The value is the time of the"
    " first ListGroups response that shows the rebalance. The rebalance itself started before this time.",
    unknown="The last complete ListGroups response, or a newer response or record of the group, shows no rebalance. The"
    " series is also absent if the monitor could not list the groups.",
    example="time() - rebalance_monitor_group_rebalance_start_timestamp_seconds > 300",
)
GROUP_LISTING_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_group_listing_timestamp_seconds",
    unit="seconds",
    labels=OF_A_CLUSTER,
    granularity=CLUSTER,
    help="Time when the monitor last listed the groups (ListGroups), in seconds since 1970. The ListGroups response"
    " shows which groups are rebalancing.",
    unknown="The monitor has not listed the groups yet.",
    example="time() - rebalance_monitor_group_listing_timestamp_seconds > 60",
)
GROUP_LISTING_GAPS: Final = Signal(
    name="rebalance_monitor_group_listing_gaps",
    unit="gaps",
    labels=(*OF_A_CLUSTER, "reason"),
    granularity=CLUSTER,
    help="Number of gaps in the last listing of the groups, by reason. Each broker whose ListGroups response is missing"
    " or incomplete counts as one gap. A missing permission DESCRIBE on the cluster also counts as one gap. While there"
    " is a gap, the listing can be incomplete, so the monitor does not treat any group as deleted.",
    unknown="The last listing of the groups has no gap, or the monitor has not listed the groups yet.",
    example="sum by (cluster, reason) (rebalance_monitor_group_listing_gaps) > 0",
)
