"""As kafka_exporter: names and labels of github.com/danielqsj/kafka_exporter, for dashboards people already have.

What it shows as -1 because it is not known has no series here.
"""

from __future__ import annotations

from typing import Final

from streaming.signals.signal import KAFKA_EXPORTER, PARTITION, TOPIC, Signal

_TOPIC = ("consumergroup", "topic")
_PARTITION = ("consumergroup", "topic", "partition")

CONSUMERGROUP_CURRENT_OFFSET: Final = Signal(
    name="kafka_consumergroup_current_offset",
    unit="offset",
    labels=_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_EXPORTER,
    help="Committed offset.",
    unknown="The group never committed there, or an open transaction hides what it committed last.",
    example="sum by (consumergroup, topic) (rate(kafka_consumergroup_current_offset[5m]))",
)
CONSUMERGROUP_LAG: Final = Signal(
    name="kafka_consumergroup_lag",
    unit="records",
    labels=_PARTITION,
    granularity=PARTITION,
    family_set=KAFKA_EXPORTER,
    help="Records after the committed offset.",
    unknown="The end offset is not known, or is before the committed one. `rebalance_monitor_lag_unknown_partitions`"
    " says why.",
    example="topk(10, kafka_consumergroup_lag)",
)
CONSUMERGROUP_LAG_SUM: Final = Signal(
    name="kafka_consumergroup_lag_sum",
    unit="records",
    labels=_TOPIC,
    granularity=TOPIC,
    family_set=KAFKA_EXPORTER,
    help="Records after the committed offset, of all partitions of the topic.",
    unknown="The lag of one of the partitions is not known.",
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
