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
    help="1 for the group's type, strategy and state, as Kafka names them. The state is Unknown if an open transaction"
    " blocks the group's records or records are missing. `protocol_source` is `records` if records name the strategy."
    " It is `broker` if only the group coordinator reported it, and empty if the strategy is unknown.",
    unknown="The group does not exist. Each existing group has exactly one series. No record contains"
    " PreparingRebalance, CompletingRebalance or the state of a streams group. These states come from the last"
    " listing of groups.",
    example='count by (cluster, state) (rebalance_monitor_group_state{group_type="classic"})',
)
GROUP_MEMBERS: Final = Signal(
    name="rebalance_monitor_group_members",
    unit="members",
    help="Members of the group at its last recorded generation.",
    unknown="Some records of the members are missing, or an open transaction blocks the last record.",
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
    help="Time since the first listing that showed the group in a rebalance, after its last record. The rebalance"
    " takes at least this long.",
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
    help="Brokers with a missing or incomplete listing of groups, by reason. While a listing has a gap, the monitor"
    " treats no group as deleted.",
    unknown="All listings are complete, or there is no listing yet.",
    example="sum by (cluster, reason) (rebalance_monitor_group_listing_gaps) > 0",
)
