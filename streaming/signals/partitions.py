"""Topics and partitions: these metrics show the lag of each topic and of each partition.

The setting `metrics.granularity` selects the metrics that are exported for every group.
"""

from __future__ import annotations

from typing import Final

from streaming.signals.signal import OF_A_GROUP, PARTITION, TOPIC, Signal

_OF_A_TOPIC = (*OF_A_GROUP, "topic")
_OF_A_PARTITION = (*_OF_A_TOPIC, "partition")
_SEE_REASONS = "The metric `rebalance_monitor_lag_unknown_partitions` shows the reason."

TOPIC_LAG: Final = Signal(
    name="rebalance_monitor_topic_lag",
    unit="records",
    labels=_OF_A_TOPIC,
    granularity=TOPIC,
    help="Number of the topic's records that the group has not committed yet.",
    unknown=f"The lag of at least one partition of the topic is unknown. {_SEE_REASONS}",
    example="topk(10, rebalance_monitor_topic_lag)",
)
TOPIC_LAG_UNKNOWN_PARTITIONS: Final = Signal(
    name="rebalance_monitor_topic_lag_unknown_partitions",
    unit="partitions",
    labels=_OF_A_TOPIC,
    granularity=TOPIC,
    help="Number of the topic's partitions for which the lag of the group is unknown. If this series exists, the series"
    " of `rebalance_monitor_topic_lag` with the same labels does not exist.",
    unknown="The lag of every partition of the topic is known.",
    example="count by (cluster, topic) (rebalance_monitor_topic_lag_unknown_partitions)",
)
TOPIC_HOTTEST_PARTITION_RATIO: Final = Signal(
    name="rebalance_monitor_topic_hottest_partition_ratio",
    unit="ratio",
    labels=("cluster", "topic", "partition"),
    granularity=TOPIC,
    help="Produce rate of the topic's hottest partition, divided by the mean produce rate of all partitions of the"
    " topic. The rates are averages over the last five minutes. The label `partition` is the number of the hottest"
    " partition.",
    unknown="The value is smaller than 1.5, or the hottest partition receives less than 1 record per second. The"
    " series is also absent if the produce rate of a partition is unknown.",
    example="topk(10, rebalance_monitor_topic_hottest_partition_ratio)",
)
PARTITION_LAG: Final = Signal(
    name="rebalance_monitor_partition_lag",
    unit="records",
    labels=_OF_A_PARTITION,
    granularity=PARTITION,
    help="Number of the partition's records that the group has not committed yet.",
    unknown="The end offset of the partition is unknown, or the end offset is smaller than the committed offset."
    f" {_SEE_REASONS}",
    example="max by (cluster, group, topic) (rebalance_monitor_partition_lag)"
    " > 10 * avg by (cluster, group, topic) (rebalance_monitor_partition_lag)",
)
PARTITION_LAG_SECONDS: Final = Signal(
    name="rebalance_monitor_partition_lag_seconds",
    unit="seconds",
    labels=_OF_A_PARTITION,
    granularity=PARTITION,
    help="Age of the partition's oldest record that the group has not committed, in seconds.",
    unknown="The lag of the partition is unknown, or there is no recent sample of the partition.",
    example="rebalance_monitor_partition_lag_seconds > 600",
)
PARTITION_STATUS: Final = Signal(
    name="rebalance_monitor_partition_status",
    unit="boolean",
    labels=(*_OF_A_PARTITION, "status"),
    label_values={"status": ("OK", "WARN", "STOP", "STALL", "REWIND")},
    granularity=PARTITION,
    help="The value is 1 for the current status of the partition. The other statuses of the partition have no series.",
    unknown="The lag of the partition is unknown, or the monitor has not seen a commit for the partition yet. The"
    " series is also absent if it is possible that all unread offsets are transaction markers or records of aborted"
    " transactions. The series is also absent if an open transaction in the partition blocks the group, or if an open"
    " transaction blocks the group's partition of `__consumer_offsets`.",
    example='rebalance_monitor_partition_status{status=~"STOP|STALL|REWIND"}',
)
