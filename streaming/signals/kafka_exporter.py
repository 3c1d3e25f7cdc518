"""As kafka_exporter: names and labels of github.com/danielqsj/kafka_exporter, for dashboards people already have.

What it shows as -1 because it is not known has no series here. It has no label for the cluster; with several clusters
in one monitor all of these have `cluster`, as its own `--kafka.labels` would give them.
"""

from __future__ import annotations

from typing import Final

from streaming.signals.signal import CLUSTER, KAFKA_EXPORTER, PARTITION, TOPIC, Signal

_GROUP_TOPIC = ("consumergroup", "topic")
_GROUP_PARTITION = ("consumergroup", "topic", "partition")
_PARTITION = ("topic", "partition")
_SEE_REASONS = "`rebalance_monitor_lag_unknown_partitions` says why."
_NOT_SAMPLED = "The partition has no leader, or no group has to do with the topic."

CONSUMERGROUP_CURRENT_OFFSET: Final = Signal(
    name="kafka_consumergroup_current_offset",
    unit="offset",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_EXPORTER,
    help="Committed offset.",
    unknown="The group never committed there, or an open transaction hides what it committed last.",
    example="sum by (consumergroup, topic) (rate(kafka_consumergroup_current_offset[5m]))",
)
CONSUMERGROUP_CURRENT_OFFSET_SUM: Final = Signal(
    name="kafka_consumergroup_current_offset_sum",
    unit="offset",
    labels=_GROUP_TOPIC,
    granularity=TOPIC,
    family_set=KAFKA_EXPORTER,
    help="Committed offsets, summed over those partitions of the topic that the group committed.",
    unknown="The group never committed in the topic, or an open transaction hides what it committed last.",
    example="sum by (consumergroup) (rate(kafka_consumergroup_current_offset_sum[5m]))",
)
CONSUMERGROUP_LAG: Final = Signal(
    name="kafka_consumergroup_lag",
    unit="records",
    labels=_GROUP_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_EXPORTER,
    help="Records after the committed offset.",
    unknown=f"The end offset is not known, or is before the committed one. {_SEE_REASONS}",
    example="topk(10, kafka_consumergroup_lag)",
)
CONSUMERGROUP_LAG_SUM: Final = Signal(
    name="kafka_consumergroup_lag_sum",
    unit="records",
    labels=_GROUP_TOPIC,
    granularity=TOPIC,
    family_set=KAFKA_EXPORTER,
    help="Records after the committed offset, summed over those partitions of the topic that the group committed.",
    unknown=f"The lag of one of these partitions is not known. {_SEE_REASONS}",
    example="topk(10, sum by (consumergroup) (kafka_consumergroup_lag_sum))",
)
CONSUMERGROUP_MEMBERS: Final = Signal(
    name="kafka_consumergroup_members",
    unit="members",
    labels=("consumergroup",),
    family_set=KAFKA_EXPORTER,
    help="Members of the group.",
    unknown="As for `rebalance_monitor_group_members`.",
    example="kafka_consumergroup_members == 0",
)
TOPIC_PARTITIONS: Final = Signal(
    name="kafka_topic_partitions",
    unit="partitions",
    labels=("topic",),
    granularity=TOPIC,
    family_set=KAFKA_EXPORTER,
    help="Partitions of the topic.",
    unknown="No group has to do with the topic, or the brokers know no such topic.",
    example="sum(kafka_topic_partitions)",
)
TOPIC_PARTITION_CURRENT_OFFSET: Final = Signal(
    name="kafka_topic_partition_current_offset",
    unit="offset",
    labels=_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_EXPORTER,
    help="End of the partition's log: the offset its next record will have.",
    unknown=_NOT_SAMPLED,
    example="sum by (topic) (rate(kafka_topic_partition_current_offset[5m]))",
)
TOPIC_PARTITION_OLDEST_OFFSET: Final = Signal(
    name="kafka_topic_partition_oldest_offset",
    unit="offset",
    labels=_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_EXPORTER,
    help="Start of the partition's log: what is before it retention took.",
    unknown=_NOT_SAMPLED,
    example="sum by (topic) (kafka_topic_partition_current_offset - kafka_topic_partition_oldest_offset)",
)
BROKERS: Final = Signal(
    name="kafka_brokers",
    unit="brokers",
    labels=(),
    granularity=CLUSTER,
    family_set=KAFKA_EXPORTER,
    help="Brokers of the cluster, as far as it names them at the moment: those that are down are not among them.",
    unknown="Brokers were not sampled lately.",
    example="min_over_time(kafka_brokers[1h])",
)
