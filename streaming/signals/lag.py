"""Lag: in records and seconds, what it says of the group, and what retention takes. All as of the last sample."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from streaming.signals.signal import OF_A_GROUP, Signal

_NO_PARTITION_SAYS = "Of none of the group's partitions it is known."

GROUP_LAG: Final = Signal(
    name="rebalance_monitor_group_lag",
    unit="records",
    help="Records the group has yet to commit.",
    unknown="The lag of one of the group's partitions is not known: a sum without it would be too small. See"
    " `rebalance_monitor_lag_unknown_partitions`.",
    example="topk(10, rebalance_monitor_group_lag)",
)
GROUP_LAG_SECONDS: Final = Signal(
    name="rebalance_monitor_group_lag_seconds",
    unit="seconds",
    help="How long ago the next record was written that the group has to read; of its partitions the most.",
    unknown=_NO_PARTITION_SAYS,
    example="rebalance_monitor_group_lag_seconds > 600",
)
GROUP_LAG_SECONDS_IS_BOUND: Final = Signal(
    name="rebalance_monitor_group_lag_seconds_is_bound",
    unit="boolean",
    help="1 where that is a lower bound: the record is older than every sample kept.",
    unknown="The lag in seconds itself is not known.",
    example="rebalance_monitor_group_lag_seconds and on (cluster, group)"
    " rebalance_monitor_group_lag_seconds_is_bound == 1",
)
LAG_UNKNOWN_PARTITIONS: Final = Signal(
    name="rebalance_monitor_lag_unknown_partitions",
    unit="partitions",
    labels=(*OF_A_GROUP, "reason"),
    label_values=MappingProxyType(
        {
            "reason": (
                "held_back",
                "topic_deleted",
                "partition_deleted",
                "no_end_offset",
                "end_before_commit",
                "maybe_only_markers",
            )
        }
    ),
    help="Partitions of the group whose lag is not known, by reason.",
    unknown="There is none: the lag of all partitions is known.",
    example='sum by (cluster, group) (rebalance_monitor_lag_unknown_partitions{reason!="topic_deleted"})',
)
GROUP_BLOCKED_PARTITIONS: Final = Signal(
    name="rebalance_monitor_group_blocked_partitions",
    unit="partitions",
    help="Partitions in which the group has read everything before an open transaction.",
    unknown="There is none.",
    example="rebalance_monitor_group_blocked_partitions > 0",
)
GROUP_STATUS: Final = Signal(
    name="rebalance_monitor_group_status",
    unit="boolean",
    labels=(*OF_A_GROUP, "status"),
    label_values=MappingProxyType({"status": ("OK", "WARN", "STOP", "STALL", "REWIND")}),
    help="1 for the worst status of the group's partitions.",
    unknown=_NO_PARTITION_SAYS,
    example='rebalance_monitor_group_status{status=~"STOP|STALL|REWIND"}',
)
GROUP_STATUS_COMPLETENESS: Final = Signal(
    name="rebalance_monitor_group_status_completeness",
    unit="share",
    help="Share of the group's partitions whose status rests on ten commits.",
    unknown=_NO_PARTITION_SAYS,
    example="avg by (cluster) (rebalance_monitor_group_status_completeness)",
)
GROUP_RECORDS_LOST: Final = Signal(
    name="rebalance_monitor_group_records_lost",
    unit="records",
    help="Offsets that retention took before the group committed them.",
    unknown=_NO_PARTITION_SAYS,
    example="rebalance_monitor_group_records_lost > 0",
)
GROUP_SECONDS_UNTIL_LOST: Final = Signal(
    name="rebalance_monitor_group_seconds_until_lost",
    unit="seconds",
    help="Time until retention takes records the group has not committed, at its present rate.",
    unknown="No log start moves towards the group's commits, or that is not known.",
    example="rebalance_monitor_group_seconds_until_lost < 3600",
)
