"""The group: its state, members and generation, and the listing of groups that tells what records do not."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from streaming.signals.signal import CLUSTER, OF_A_CLUSTER, OF_A_GROUP, Signal

GROUP_STATE: Final = Signal(
    name="rebalance_monitor_group_state",
    unit="boolean",
    labels=(*OF_A_GROUP, "group_type", "protocol_type", "protocol", "state"),
    label_values=MappingProxyType({"group_type": ("classic", "consumer", "share", "streams")}),
    help="1 for the group's type, strategy and state, in Kafka's words; Unknown where an open transaction hides the"
    " group or records are missing.",
    unknown="Every group there is has exactly one. PreparingRebalance, CompletingRebalance and a streams group's state"
    " are in no record: they come from the last listing of groups.",
    example='count by (cluster, state) (rebalance_monitor_group_state{group_type="classic"})',
)
GROUP_MEMBERS: Final = Signal(
    name="rebalance_monitor_group_members",
    unit="members",
    help="Members of the group at its last recorded generation.",
    unknown="Some of the members' records are missing, or an open transaction hides what was recorded last.",
    example="rebalance_monitor_group_members == 0 and rebalance_monitor_group_lag > 0",
)
GROUP_GENERATION: Final = Signal(
    name="rebalance_monitor_group_generation",
    unit="generations",
    help="Last recorded generation, or group epoch.",
    unknown="Coordinators that are asked (admin-api) name none; or an open transaction hides the group.",
    example="changes(rebalance_monitor_group_generation[10m]) > 3",
)
GROUP_REBALANCING_SECONDS: Final = Signal(
    name="rebalance_monitor_group_rebalancing_seconds",
    unit="seconds",
    help="How long listings have shown the group in the middle of a rebalance, since its last record; at least.",
    unknown="The last listing does not show the group in the middle of a rebalance, or there is no listing.",
    example="rebalance_monitor_group_rebalancing_seconds > 300",
)
GROUP_LISTING_AGE_SECONDS: Final = Signal(
    name="rebalance_monitor_group_listing_age_seconds",
    unit="seconds",
    labels=OF_A_CLUSTER,
    granularity=CLUSTER,
    help="Age of the listing of groups that states in the middle of a rebalance are taken from.",
    unknown="There was no listing yet.",
    example="rebalance_monitor_group_listing_age_seconds > 60",
)
GROUP_LISTING_GAPS: Final = Signal(
    name="rebalance_monitor_group_listing_gaps",
    unit="brokers",
    labels=(*OF_A_CLUSTER, "reason"),
    granularity=CLUSTER,
    help="Brokers that did not list their groups, by reason: no group is taken for gone meanwhile.",
    unknown="All brokers answered, or there was no listing yet.",
    example="sum by (cluster, reason) (rebalance_monitor_group_listing_gaps) > 0",
)
