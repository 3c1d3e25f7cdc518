"""Topics and partitions: lag below a group's own sums. Shown down to the granularity that is set."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from streaming.signals.signal import OF_A_GROUP, PARTITION, TOPIC, Signal

_OF_A_TOPIC = (*OF_A_GROUP, "topic")
_OF_A_PARTITION = (*_OF_A_TOPIC, "partition")
_SEE_REASONS = "`rebalance_monitor_lag_unknown_partitions` says why."

TOPIC_LAG: Final = Signal(
    name="rebalance_monitor_topic_lag",
    unit="records",
    labels=_OF_A_TOPIC,
    granularity=TOPIC,
    help="Records of the topic that the group has yet to commit.",
    unknown=f"The lag of a partition of the topic is not known: a sum without it would be too small. {_SEE_REASONS}",
    example="topk(10, rebalance_monitor_topic_lag)",
)
PARTITION_LAG: Final = Signal(
    name="rebalance_monitor_partition_lag",
    unit="records",
    labels=_OF_A_PARTITION,
    granularity=PARTITION,
    help="Records of the partition that the group has yet to commit.",
    unknown=f"The end offset is not known, or is before the committed one. {_SEE_REASONS}",
    example="max by (cluster, group, topic) (rebalance_monitor_partition_lag)"
    " > 10 * avg by (cluster, group, topic) (rebalance_monitor_partition_lag)",
)
PARTITION_LAG_SECONDS: Final = Signal(
    name="rebalance_monitor_partition_lag_seconds",
    unit="seconds",
    labels=_OF_A_PARTITION,
    granularity=PARTITION,
    help="How long ago the next record was written that the group has to read of the partition.",
    unknown="The lag is not known, or no sample of the partition is.",
    example="rebalance_monitor_partition_lag_seconds > 600",
)
PARTITION_LAG_SECONDS_IS_BOUND: Final = Signal(
    name="rebalance_monitor_partition_lag_seconds_is_bound",
    unit="boolean",
    labels=_OF_A_PARTITION,
    granularity=PARTITION,
    help="1 where that is a lower bound: the record is older than every sample kept.",
    unknown="It is no bound, or not known at all.",
    example="rebalance_monitor_partition_lag_seconds and on (cluster, group, topic, partition)"
    " rebalance_monitor_partition_lag_seconds_is_bound",
)
PARTITION_STATUS: Final = Signal(
    name="rebalance_monitor_partition_status",
    unit="boolean",
    labels=(*_OF_A_PARTITION, "status"),
    label_values=MappingProxyType({"status": ("OK", "WARN", "STOP", "STALL", "REWIND")}),
    granularity=PARTITION,
    help="1 for the status of the partition.",
    unknown="The lag is not known, or no commit was seen since the monitor began to look.",
    example='rebalance_monitor_partition_status{status=~"STOP|STALL|REWIND"}',
)
