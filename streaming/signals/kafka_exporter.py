"""As kafka_exporter: these metrics have the names and labels of github.com/danielqsj/kafka_exporter.

Existing dashboards for kafka_exporter can use these metrics. If a value is unknown, kafka_exporter exports -1, but this
monitor exports no series. If this monitor watches several clusters, each metric also has the label `cluster`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from streaming.signals.signal import CLUSTER, KAFKA_EXPORTER, PARTITION, TOPIC, Signal

_signal = partial(Signal, family_set=KAFKA_EXPORTER)
_GROUP_TOPIC = ("consumergroup", "topic")
_GROUP_PARTITION = ("consumergroup", "topic", "partition")
_PARTITION = ("topic", "partition")
_SEE_REASONS = "The metric `rebalance_monitor_lag_unknown_partitions` shows the reason."
_NOT_SAMPLED = "The partition has no leader, or no group uses the topic."

CONSUMERGROUP_CURRENT_OFFSET: Final = _signal(
    name="kafka_consumergroup_current_offset",
    unit="offset",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    help="Offset that the group committed for the partition.",
    unknown="The group never committed an offset in the partition, or an open transaction blocks the group's partition"
    " of `__consumer_offsets`.",
    example="sum by (consumergroup, topic) (rate(kafka_consumergroup_current_offset[5m]))",
)
CONSUMERGROUP_CURRENT_OFFSET_SUM: Final = _signal(
    name="kafka_consumergroup_current_offset_sum",
    unit="offset",
    labels=_GROUP_TOPIC,
    granularity=TOPIC,
    help="Sum of the offsets that the group committed for the partitions of the topic. The value ignores partitions"
    " without a committed offset.",
    unknown="The group never committed an offset in the topic, or an open transaction blocks the group's partition of"
    " `__consumer_offsets`.",
    example="sum by (consumergroup) (rate(kafka_consumergroup_current_offset_sum[5m]))",
)
CONSUMERGROUP_LAG: Final = _signal(
    name="kafka_consumergroup_lag",
    unit="records",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    help="Number of records after the committed offset of the partition.",
    unknown="The end offset of the partition is unknown, or the end offset is smaller than the committed offset."
    f" {_SEE_REASONS}",
    example="topk(10, kafka_consumergroup_lag)",
)
CONSUMERGROUP_LAG_SUM: Final = _signal(
    name="kafka_consumergroup_lag_sum",
    unit="records",
    labels=_GROUP_TOPIC,
    granularity=TOPIC,
    help="Number of records after the group's committed offsets in the topic. The value ignores partitions without a"
    " committed offset.",
    unknown=f"The lag of at least one partition with a committed offset is unknown. {_SEE_REASONS}",
    example="topk(10, sum by (consumergroup) (kafka_consumergroup_lag_sum))",
)
CONSUMERGROUP_MEMBERS: Final = _signal(
    name="kafka_consumergroup_members",
    unit="members",
    labels=("consumergroup",),
    help="Number of members of the group.",
    unknown="In `__consumer_offsets`, records of some members are missing, or an open transaction blocks"
    " the group's partition.",
    example="kafka_consumergroup_members == 0",
)
TOPIC_PARTITIONS: Final = _signal(
    name="kafka_topic_partitions",
    unit="partitions",
    labels=("topic",),
    granularity=TOPIC,
    help="Number of partitions of the topic.",
    unknown="No group uses the topic, or the topic does not exist on the brokers.",
    example="sum(kafka_topic_partitions)",
)
TOPIC_PARTITION_CURRENT_OFFSET: Final = _signal(
    name="kafka_topic_partition_current_offset",
    unit="offset",
    labels=_PARTITION,
    granularity=PARTITION,
    help="End offset of the partition. The next record that is written gets this offset.",
    unknown=_NOT_SAMPLED,
    example="sum by (topic) (rate(kafka_topic_partition_current_offset[5m]))",
)
TOPIC_PARTITION_OLDEST_OFFSET: Final = _signal(
    name="kafka_topic_partition_oldest_offset",
    unit="offset",
    labels=_PARTITION,
    granularity=PARTITION,
    help="Log start offset of the partition. All records with smaller offsets have been deleted.",
    unknown=_NOT_SAMPLED,
    example="sum by (topic) (kafka_topic_partition_current_offset - kafka_topic_partition_oldest_offset)",
)
BROKERS: Final = _signal(
    name="kafka_brokers",
    unit="brokers",
    labels=(),
    granularity=CLUSTER,
    help="Number of brokers in the cluster metadata. The value does not include brokers that are down.",
    unknown="There is no recent sample of the brokers.",
    example="min_over_time(kafka_brokers[1h])",
)
