"""The group: its state, members and generation, and whether the list of groups shows a rebalance in progress."""

from __future__ import annotations

from types import MappingProxyType
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
    label_values=MappingProxyType(
        {
            "group_type": ("classic", "consumer", "share", "streams"),
            "max_severity": ("critical", "warning", "info"),
            "ignore_alerts": ("true", "false"),
        }
    ),
    help="Always 1. The labels describe the group. `group_type`, `protocol_type`, `protocol` and `state` use Kafka's"
    " names. The state is Unknown if records of the group are missing, or if an open transaction blocks the group's"
    " records. `protocol_source` is `records` if records name the strategy, and `broker` if only the group coordinator"
    " reported the strategy. It is empty if the strategy is unknown. `coordinator` is the id of the broker that"
    " coordinates the group. `team`, `max_severity` and `ignore_alerts` come from the entries `[[groups]]` in the"
    " settings.",
    unknown="The group does not exist. Each existing group has exactly one series. No record contains the state"
    " PreparingRebalance, the state CompletingRebalance or the state of a streams group. The monitor takes these"
    " states from the last listing of groups.",
    example='count by (cluster, state) (rebalance_monitor_group_info{group_type="classic"})',
)
GROUP_LIMIT: Final = Signal(
    name="rebalance_monitor_group_limit",
    unit="seconds",
    labels=(*OF_A_GROUP, "limit"),
    label_values=MappingProxyType({"limit": ("max_lag_seconds", "critical_lag_seconds", "max_commit_gap_seconds")}),
    help="Limits of the group in seconds. The entries `[[groups]]` in the settings set them. Alerts compare the group"
    " with them. `max_lag_seconds` is the lag above which a warning fires. `critical_lag_seconds` is the lag above"
    " which a critical alert fires. `max_commit_gap_seconds` is the longest acceptable time without commits around a"
    " rebalance.",
    unknown="The group does not exist. Each existing group has all limits.",
    example="rebalance_monitor_group_lag_seconds > on (cluster, group)"
    ' rebalance_monitor_group_limit{limit="max_lag_seconds"}',
)
GROUP_MEMBERS: Final = Signal(
    name="rebalance_monitor_group_members",
    unit="members",
    help="Number of members in the group's last recorded generation.",
    unknown="Records of some members are missing, or an open transaction blocks the group's last record.",
    example="rebalance_monitor_group_members == 0 and rebalance_monitor_group_lag > 0",
)
GROUP_GENERATION: Final = Signal(
    name="rebalance_monitor_group_generation",
    unit="generations",
    granularity=PARTITION,
    help="Last recorded generation (classic group) or group epoch (any other group).",
    unknown="The group is a classic group and `source.kind` is `admin-api`, or an open transaction blocks the group's"
    " records.",
    example="changes(rebalance_monitor_group_generation[10m]) > 3",
)
GROUP_REBALANCE_START_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_group_rebalance_start_timestamp_seconds",
    unit="seconds",
    help="Time when a listing of groups first showed the rebalance in progress, in seconds since 1970. Listings before"
    " the group's last record do not count. The rebalance started at this time or earlier.",
    unknown="The last listing does not show the group in a rebalance, or there is no listing.",
    example="time() - rebalance_monitor_group_rebalance_start_timestamp_seconds > 300",
)
GROUP_LISTING_TIMESTAMP_SECONDS: Final = Signal(
    name="rebalance_monitor_group_listing_timestamp_seconds",
    unit="seconds",
    labels=OF_A_CLUSTER,
    granularity=CLUSTER,
    help="Time of the last listing of groups, in seconds since 1970. The states of groups in a rebalance come from this"
    " listing.",
    unknown="There is no listing yet.",
    example="time() - rebalance_monitor_group_listing_timestamp_seconds > 60",
)
GROUP_LISTING_GAPS: Final = Signal(
    name="rebalance_monitor_group_listing_gaps",
    unit="brokers",
    labels=(*OF_A_CLUSTER, "reason"),
    granularity=CLUSTER,
    help="Number of brokers whose listing of groups is missing or incomplete, by reason. While this number is not 0,"
    " the monitor does not treat any group as deleted.",
    unknown="All listings are complete, or there is no listing yet.",
    example="sum by (cluster, reason) (rebalance_monitor_group_listing_gaps) > 0",
)
