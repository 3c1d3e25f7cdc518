"""The group: its state, members and generation, and whether the list of groups shows a rebalance in progress."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from streaming.signals.signal import CLUSTER, OF_A_CLUSTER, OF_A_GROUP, Signal

GROUP_STATE: Final = Signal(
    name="rebalance_monitor_group_state",
    unit="boolean",
    labels=(*OF_A_GROUP, "group_type", "protocol_type", "protocol", "protocol_source", "state"),
    label_values=MappingProxyType({"group_type": ("classic", "consumer", "share", "streams")}),
    help="1 for the present type, strategy and state of the group. The labels use Kafka's names. The state is Unknown"
    " if records of the group are missing, or if an open transaction blocks the group's records. The label"
    " `protocol_source` is `records` if records name the strategy, and `broker` if only the group coordinator"
    " reported the strategy. This label is empty if the strategy is unknown.",
    unknown="The group does not exist. Each existing group has exactly one series. No record contains the state"
    " PreparingRebalance, the state CompletingRebalance or the state of a streams group. The monitor takes these"
    " states from the last listing of groups.",
    example='count by (cluster, state) (rebalance_monitor_group_state{group_type="classic"})',
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
    help="Last recorded generation (classic group) or group epoch (any other group).",
    unknown="The group is a classic group and `source.kind` is `admin-api`, or an open transaction blocks the group's"
    " records.",
    example="changes(rebalance_monitor_group_generation[10m]) > 3",
)
GROUP_REBALANCING_SECONDS: Final = Signal(
    name="rebalance_monitor_group_rebalancing_seconds",
    unit="seconds",
    help="Time since a listing of groups first showed the rebalance in progress. Listings before the group's last"
    " record do not count. The rebalance has lasted at least this long.",
    unknown="The last listing does not show the group in a rebalance, or there is no listing.",
    example="rebalance_monitor_group_rebalancing_seconds > 300",
)
GROUP_LISTING_AGE_SECONDS: Final = Signal(
    name="rebalance_monitor_group_listing_age_seconds",
    unit="seconds",
    labels=OF_A_CLUSTER,
    granularity=CLUSTER,
    help="Age of the last listing of groups. The states of groups in a rebalance come from this listing.",
    unknown="There is no listing yet.",
    example="rebalance_monitor_group_listing_age_seconds > 60",
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
