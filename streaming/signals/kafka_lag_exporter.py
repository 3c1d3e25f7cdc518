"""As kafka-lag-exporter: metrics with the names and labels of github.com/seglo/kafka-lag-exporter.

These metrics are the only standard for lag in seconds.

kafka-lag-exporter has labels for the member: `member_host`, `consumer_id`, `client_id`. The metrics of this monitor do
not have these labels. The reason is that a member gets a new id at each restart, so each restart would create new
series. For an unknown value, kafka-lag-exporter shows NaN or Inf. For an unknown value, this monitor shows no series.
If the samples do not cover the whole lag, kafka-lag-exporter extrapolates the lag in seconds. In this case, this
monitor shows a lower bound.
"""

from __future__ import annotations

from typing import Final

from streaming.signals.signal import KAFKA_LAG_EXPORTER, PARTITION, TOPIC, Signal

_GROUP = ("cluster_name", "group")
_GROUP_PARTITION = ("cluster_name", "group", "topic", "partition")
_PARTITION = ("cluster_name", "topic", "partition")
_SEE_REASONS = "For the reason, see `rebalance_monitor_lag_unknown_partitions`."
_UNKNOWN_EVERYWHERE = f"The lag of every partition is unknown. {_SEE_REASONS}"
_NOT_SAMPLED = "The partition has no leader, or no group uses the topic."

GROUP_OFFSET: Final = Signal(
    name="kafka_consumergroup_group_offset",
    unit="offset",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_LAG_EXPORTER,
    help="Offset that the group committed for the partition.",
    unknown="The group never committed an offset of the partition, or an open transaction blocks the group's last"
    " commit.",
    example="sum by (cluster_name, group) (rate(kafka_consumergroup_group_offset[5m]))",
)
GROUP_LAG: Final = Signal(
    name="kafka_consumergroup_group_lag",
    unit="records",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_LAG_EXPORTER,
    help="Records of the partition after the committed offset.",
    unknown=f"The end offset is unknown, or it is smaller than the committed offset. {_SEE_REASONS}",
    example="topk(25, kafka_consumergroup_group_lag)",
)
GROUP_LAG_SECONDS: Final = Signal(
    name="kafka_consumergroup_group_lag_seconds",
    unit="seconds",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_LAG_EXPORTER,
    help="Age of the oldest record that the group has not committed in this partition. The value is a lower bound if"
    " the record is older than every stored sample.",
    unknown=f"The lag is unknown, or no sample shows the record's time yet. {_SEE_REASONS}",
    example="max by (cluster_name, group) (kafka_consumergroup_group_lag_seconds)",
)
GROUP_MAX_LAG: Final = Signal(
    name="kafka_consumergroup_group_max_lag",
    unit="records",
    labels=_GROUP,
    family_set=KAFKA_LAG_EXPORTER,
    help="Lag in records of the partition with the largest lag. Partitions with unknown lag are left out.",
    unknown=_UNKNOWN_EVERYWHERE,
    example="topk(50, kafka_consumergroup_group_max_lag)",
)
GROUP_MAX_LAG_SECONDS: Final = Signal(
    name="kafka_consumergroup_group_max_lag_seconds",
    unit="seconds",
    labels=_GROUP,
    family_set=KAFKA_LAG_EXPORTER,
    help="Lag in seconds of the partition with the largest lag in seconds. Partitions with unknown lag are left out.",
    unknown=_UNKNOWN_EVERYWHERE,
    example="kafka_consumergroup_group_max_lag_seconds > 180",
)
GROUP_SUM_LAG: Final = Signal(
    name="kafka_consumergroup_group_sum_lag",
    unit="records",
    labels=_GROUP,
    family_set=KAFKA_LAG_EXPORTER,
    help="Records that the group has not committed yet.",
    unknown=f"The lag of at least one partition is unknown. {_SEE_REASONS}",
    example="sum by (cluster_name) (kafka_consumergroup_group_sum_lag)",
)
GROUP_TOPIC_SUM_LAG: Final = Signal(
    name="kafka_consumergroup_group_topic_sum_lag",
    unit="records",
    labels=("cluster_name", "group", "topic"),
    granularity=TOPIC,
    family_set=KAFKA_LAG_EXPORTER,
    help="Records of the topic that the group has not committed yet.",
    unknown=f"The lag of at least one partition is unknown. {_SEE_REASONS}",
    example="topk(10, kafka_consumergroup_group_topic_sum_lag)",
)
PARTITION_LATEST_OFFSET: Final = Signal(
    name="kafka_partition_latest_offset",
    unit="offset",
    labels=_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_LAG_EXPORTER,
    help="End offset of the partition. The next record gets this offset.",
    unknown=_NOT_SAMPLED,
    example="sum by (cluster_name, topic) (rate(kafka_partition_latest_offset[5m]))",
)
PARTITION_EARLIEST_OFFSET: Final = Signal(
    name="kafka_partition_earliest_offset",
    unit="offset",
    labels=_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_LAG_EXPORTER,
    help="Log start offset of the partition. All records before this offset are deleted.",
    unknown=_NOT_SAMPLED,
    example="kafka_partition_latest_offset - kafka_partition_earliest_offset",
)
