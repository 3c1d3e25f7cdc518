"""As kafka-lag-exporter: names and labels of github.com/seglo/kafka-lag-exporter, the only standard for lag in seconds.

Members are no labels here (`member_host`, `consumer_id`, `client_id` there): the member's id is another one after each
restart, and a series for each would never end. What it shows as NaN or Inf has no series here, and its extrapolation
beyond what was sampled is a lower bound.
"""

from __future__ import annotations

from typing import Final

from streaming.signals.signal import KAFKA_LAG_EXPORTER, PARTITION, TOPIC, Signal

_GROUP = ("cluster_name", "group")
_GROUP_PARTITION = ("cluster_name", "group", "topic", "partition")
_PARTITION = ("cluster_name", "topic", "partition")
_SEE_REASONS = "`rebalance_monitor_lag_unknown_partitions` says why."
_NOT_SAMPLED = "The partition has no leader, or no group has to do with the topic."

GROUP_OFFSET: Final = Signal(
    name="kafka_consumergroup_group_offset",
    unit="offset",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_LAG_EXPORTER,
    help="Committed offset.",
    unknown="The group never committed there, or an open transaction hides what it committed last.",
    example="sum by (cluster_name, group) (rate(kafka_consumergroup_group_offset[5m]))",
)
GROUP_LAG: Final = Signal(
    name="kafka_consumergroup_group_lag",
    unit="records",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_LAG_EXPORTER,
    help="Records after the committed offset.",
    unknown=f"The end offset is not known, or is before the committed one. {_SEE_REASONS}",
    example="topk(25, kafka_consumergroup_group_lag)",
)
GROUP_LAG_SECONDS: Final = Signal(
    name="kafka_consumergroup_group_lag_seconds",
    unit="seconds",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_LAG_EXPORTER,
    help="How long ago the next record was written that the group has to read there; at least that long where it is"
    " older than every sample kept.",
    unknown=f"The lag is not known, or nothing was sampled yet that tells its time. {_SEE_REASONS}",
    example="max by (cluster_name, group) (kafka_consumergroup_group_lag_seconds)",
)
GROUP_MAX_LAG: Final = Signal(
    name="kafka_consumergroup_group_max_lag",
    unit="records",
    labels=_GROUP,
    family_set=KAFKA_LAG_EXPORTER,
    help="Most records after the committed offset of one of the group's partitions of which that is known.",
    unknown=f"It is known of none of them. {_SEE_REASONS}",
    example="topk(50, kafka_consumergroup_group_max_lag)",
)
GROUP_MAX_LAG_SECONDS: Final = Signal(
    name="kafka_consumergroup_group_max_lag_seconds",
    unit="seconds",
    labels=_GROUP,
    family_set=KAFKA_LAG_EXPORTER,
    help="Most lag in seconds of one of the group's partitions of which that is known.",
    unknown=f"It is known of none of them. {_SEE_REASONS}",
    example="kafka_consumergroup_group_max_lag_seconds > 180",
)
GROUP_SUM_LAG: Final = Signal(
    name="kafka_consumergroup_group_sum_lag",
    unit="records",
    labels=_GROUP,
    family_set=KAFKA_LAG_EXPORTER,
    help="Records the group has yet to commit.",
    unknown=f"The lag of one of its partitions is not known. {_SEE_REASONS}",
    example="sum by (cluster_name) (kafka_consumergroup_group_sum_lag)",
)
GROUP_TOPIC_SUM_LAG: Final = Signal(
    name="kafka_consumergroup_group_topic_sum_lag",
    unit="records",
    labels=("cluster_name", "group", "topic"),
    granularity=TOPIC,
    family_set=KAFKA_LAG_EXPORTER,
    help="Records the group has yet to commit in the topic.",
    unknown=f"The lag of one of the partitions is not known. {_SEE_REASONS}",
    example="topk(10, kafka_consumergroup_group_topic_sum_lag)",
)
PARTITION_LATEST_OFFSET: Final = Signal(
    name="kafka_partition_latest_offset",
    unit="offset",
    labels=_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_LAG_EXPORTER,
    help="End of the partition's log: the offset its next record will have.",
    unknown=_NOT_SAMPLED,
    example="sum by (cluster_name, topic) (rate(kafka_partition_latest_offset[5m]))",
)
PARTITION_EARLIEST_OFFSET: Final = Signal(
    name="kafka_partition_earliest_offset",
    unit="offset",
    labels=_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_LAG_EXPORTER,
    help="Start of the partition's log: what is before it retention took.",
    unknown=_NOT_SAMPLED,
    example="kafka_partition_latest_offset - kafka_partition_earliest_offset",
)
