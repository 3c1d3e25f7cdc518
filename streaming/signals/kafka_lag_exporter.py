"""As kafka-lag-exporter: these metrics have the names and labels of github.com/seglo/kafka-lag-exporter.

The metrics do not have kafka-lag-exporter's labels `member_host`, `consumer_id` and `client_id`, because these labels
would create new series at each restart of a member. If a value is unknown, kafka-lag-exporter exports NaN or Inf, but
this monitor exports no series. If a record is older than all samples of the end offset, kafka-lag-exporter extrapolates
the lag in seconds, but this monitor exports a lower bound.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from streaming.signals.signal import KAFKA_LAG_EXPORTER, PARTITION, TOPIC, Signal

_signal = partial(Signal, family_set=KAFKA_LAG_EXPORTER)
_GROUP = ("cluster_name", "group")
_GROUP_PARTITION = ("cluster_name", "group", "topic", "partition")
_PARTITION = ("cluster_name", "topic", "partition")
_SEE_REASONS = "The metric `rebalance_monitor_lag_unknown_partitions` shows the reason."
_UNKNOWN_EVERYWHERE = f"The lag of every partition is unknown. {_SEE_REASONS}"
_NOT_SAMPLED = "The partition has no leader, or no group uses the topic."

GROUP_OFFSET: Final = _signal(
    name="kafka_consumergroup_group_offset",
    unit="offset",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    help="Offset that the group committed for the partition.",
    unknown="The group never committed an offset in the partition, or an open transaction blocks the group's partition"
    " of `__consumer_offsets`.",
    example="sum by (cluster_name, group) (rate(kafka_consumergroup_group_offset[5m]))",
)
GROUP_LAG: Final = _signal(
    name="kafka_consumergroup_group_lag",
    unit="records",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    help="Number of records after the committed offset of the partition.",
    unknown="The end offset of the partition is unknown, or the end offset is smaller than the committed offset."
    f" {_SEE_REASONS}",
    example="topk(25, kafka_consumergroup_group_lag)",
)
GROUP_LAG_SECONDS: Final = _signal(
    name="kafka_consumergroup_group_lag_seconds",
    unit="seconds",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    help="Age of the partition's oldest record that the group has not committed, in seconds. The value is a lower bound"
    " if this record was written before the oldest sample of the end offset.",
    unknown=f"The lag of the partition is unknown, or the age of the oldest unread record is unknown. {_SEE_REASONS}",
    example="max by (cluster_name, group) (kafka_consumergroup_group_lag_seconds)",
)
GROUP_MAX_LAG: Final = _signal(
    name="kafka_consumergroup_group_max_lag",
    unit="records",
    labels=_GROUP,
    help="Largest lag of a partition of the group, in records. The value ignores partitions with unknown lag.",
    unknown=_UNKNOWN_EVERYWHERE,
    example="topk(50, kafka_consumergroup_group_max_lag)",
)
GROUP_MAX_LAG_SECONDS: Final = _signal(
    name="kafka_consumergroup_group_max_lag_seconds",
    unit="seconds",
    labels=_GROUP,
    help="Largest lag of a partition of the group, in seconds. The value ignores partitions with unknown lag.",
    unknown=_UNKNOWN_EVERYWHERE,
    example="kafka_consumergroup_group_max_lag_seconds > 180",
)
GROUP_SUM_LAG: Final = _signal(
    name="kafka_consumergroup_group_sum_lag",
    unit="records",
    labels=_GROUP,
    help="Number of records that the group has not committed yet.",
    unknown=f"The lag of at least one partition is unknown. {_SEE_REASONS}",
    example="sum by (cluster_name) (kafka_consumergroup_group_sum_lag)",
)
GROUP_TOPIC_SUM_LAG: Final = _signal(
    name="kafka_consumergroup_group_topic_sum_lag",
    unit="records",
    labels=("cluster_name", "group", "topic"),
    granularity=TOPIC,
    help="Number of the topic's records that the group has not committed yet.",
    unknown=f"The lag of at least one partition is unknown. {_SEE_REASONS}",
    example="topk(10, kafka_consumergroup_group_topic_sum_lag)",
)
PARTITION_LATEST_OFFSET: Final = _signal(
    name="kafka_partition_latest_offset",
    unit="offset",
    labels=_PARTITION,
    granularity=PARTITION,
    help="End offset of the partition. The next record that is written gets this offset.",
    unknown=_NOT_SAMPLED,
    example="sum by (cluster_name, topic) (rate(kafka_partition_latest_offset[5m]))",
)
PARTITION_EARLIEST_OFFSET: Final = _signal(
    name="kafka_partition_earliest_offset",
    unit="offset",
    labels=_PARTITION,
    granularity=PARTITION,
    help="Log start offset of the partition. All records with smaller offsets have been deleted.",
    unknown=_NOT_SAMPLED,
    example="kafka_partition_latest_offset - kafka_partition_earliest_offset",
)
