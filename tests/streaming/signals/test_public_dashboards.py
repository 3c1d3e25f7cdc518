"""The dashboards people have for other exporters find what they ask for: names, labels, and the meaning behind.

kafka_exporter's is 7589 on grafana.com (`kafka_exporter_overview.json` in its repository; `kafka-mixin` was an earlier
form of it); kafka-lag-exporter's is `grafana/Kafka_Lag_Exporter_Dashboard.json` in its repository. What these ask of
Java's own metrics is the exporter's own affair and has no row here. `job`, `instance` and `namespace` are labels that
Prometheus gives a target.
"""

from __future__ import annotations

import re

import pytest

from streaming.signals import KAFKA_EXPORTER, KAFKA_LAG_EXPORTER, SIGNALS
from tests.promql import names_in_query
from tests.streaming.prometheus.test_metrics import monitor_state_of, named, sample_of, scraped

OF_A_TARGET = {"job", "instance", "namespace"}
OF_GRAFANA = re.compile(r"(?:label_values|query_result)\((?P<query>.*?)(?:, ?(?P<label>\w+))?\)$")
"""A dashboard's variable: a query, and the label whose values are wanted."""
LAGGING = {("g", "orders", 0): 90, ("g", "orders", 1): 40, ("h", "orders", 0): 100}

SHAPES = [
    (KAFKA_EXPORTER, "label_values(kafka_consumergroup_current_offset, job)", "which jobs there are"),
    (KAFKA_EXPORTER, 'label_values(kafka_consumergroup_current_offset{job=~"j"}, instance)', "which targets"),
    (
        KAFKA_EXPORTER,
        "label_values(kafka_topic_partition_current_offset{instance='i',topic!='__consumer_offsets'}, topic)",
        "which topics; ours of a group never leave it out",
    ),
    (KAFKA_EXPORTER, "label_values(kafka_consumergroup_members,consumergroup)", "which groups (kafka-mixin)"),
    (
        KAFKA_EXPORTER,
        'sum(rate(kafka_topic_partition_current_offset{instance="i", topic=~"t"}[1m])) by (topic)',
        "messages in per second",
    ),
    (
        KAFKA_EXPORTER,
        "sum(delta(kafka_topic_partition_current_offset{instance=~'i', topic=~\"t\"}[5m])/5) by (topic)",
        "messages in per minute",
    ),
    (
        KAFKA_EXPORTER,
        'sum(kafka_consumergroup_lag{instance="i",topic=~"t"}) by (consumergroup, topic)',
        "lag by group: its partitions add up to the sum",
    ),
    (
        KAFKA_EXPORTER,
        "sum(delta(kafka_consumergroup_current_offset{instance=~'i',topic=~\"t\"}[5m])/5) by (consumergroup, topic)",
        "messages consumed per minute",
    ),
    (
        KAFKA_EXPORTER,
        (
            'sum(kafka_consumergroup_current_offset{instance=~"i",topic=~"t",consumergroup=~"c"})'
            " by (consumergroup, topic, partition)"
        ),
        "the last offset of each partition (kafka-mixin)",
    ),
    (KAFKA_EXPORTER, 'sum by(topic) (kafka_topic_partitions{instance="i",topic=~"t"})', "partitions of each topic"),
    (KAFKA_LAG_EXPORTER, "query_result(kafka_consumergroup_group_lag)", "which namespaces, clusters and groups"),
    (
        KAFKA_LAG_EXPORTER,
        'query_result(kafka_consumergroup_group_lag{namespace="n",cluster_name="c"})',
        "which groups of a cluster",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'topk(50, kafka_consumergroup_group_max_lag_seconds{namespace="n",cluster_name="c",group=~"g",group!=""})',
        "the slowest groups; by seconds over time, too",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'topk(50, kafka_consumergroup_group_max_lag{namespace="n",cluster_name="c",group=~"g",group!=""})',
        "the groups furthest behind",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'topk(25, kafka_consumergroup_group_lag_seconds{namespace="n",cluster_name="c",group=~"g",group!=""})',
        "the slowest partitions; named by group, topic and partition",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'topk(25, kafka_consumergroup_group_lag{namespace="n",cluster_name="c",group=~"g",group!=""})',
        "the partitions furthest behind",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'max(kafka_consumergroup_group_lag_seconds{namespace="n",cluster_name="c",group=~"g",group!=""}) by (group)',
        "a group's worst partition",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'sum(kafka_consumergroup_group_offset{namespace="n",cluster_name="c",group=~"g",group!=""})',
        "the sum of what a group committed",
    ),
    (
        KAFKA_LAG_EXPORTER,
        (
            'sum((kafka_consumergroup_group_offset{namespace="n",cluster_name="c",group=~"g"} * 0)'
            " + on(namespace,cluster_name,topic,partition) group_left()"
            ' kafka_partition_latest_offset{namespace="n",cluster_name="c"})'
        ),
        "the sum of the ends of the partitions that the group committed",
    ),
]


@pytest.mark.parametrize(("family_set", "query", "why"), SHAPES, ids=[query for _, query, _ in SHAPES])
def test_what_a_public_dashboard_asks_for_is_there(family_set: str, query: str, why: str) -> None:
    """A panel that stays empty after a change of the exporter is noticed when it is needed."""
    of_grafana = OF_GRAFANA.match(query)
    asked = names_in_query(of_grafana["query"] if of_grafana else query)
    wanted = {of_grafana["label"]} if of_grafana and of_grafana["label"] else set()
    labels = {*asked.labels, *wanted} - OF_A_TARGET
    found = [SIGNALS[name] for name in asked.metrics]
    assert {signal.family_set for signal in found} == {family_set}, why
    assert labels <= {label for signal in found for label in signal.labels}, why
    joined_on = {label for on in re.findall(r"\bon\(([^)]*)\)", query) for label in on.split(",")} - OF_A_TARGET
    assert all(joined_on <= {*signal.labels} for signal in found), why


def test_the_ends_and_starts_of_partitions_are_what_both_say_they_are() -> None:
    """`current_offset` of a topic's partition is its end there, and of a group its commit."""
    series = scraped(monitor_state_of([], LAGGING, sample_of()))
    ends = {"partition=0,topic=orders": 100, "partition=1,topic=orders": 100}
    assert named(series, "kafka_topic_partition_current_offset") == ends
    assert named(series, "kafka_partition_latest_offset", cluster_name="prod") == ends
    assert named(series, "kafka_topic_partition_oldest_offset") == {}, "log starts were not sampled: absent, not 0"
    assert named(series, "kafka_brokers") == {}, "nor were brokers"


def test_a_groups_partitions_add_up_in_both_families_and_agree_with_our_own() -> None:
    series = scraped(monitor_state_of([], LAGGING, sample_of()))
    of_g = {"partition=0,topic=orders": 10, "partition=1,topic=orders": 60}
    assert named(series, "kafka_consumergroup_lag", consumergroup="g") == of_g
    assert named(series, "kafka_consumergroup_group_lag", cluster_name="prod", group="g") == of_g
    assert named(series, "kafka_consumergroup_lag_sum", consumergroup="g") == {"topic=orders": 70}
    assert named(series, "kafka_consumergroup_group_topic_sum_lag", cluster_name="prod", group="g") == {
        "topic=orders": 70
    }
    assert named(series, "kafka_consumergroup_current_offset_sum", consumergroup="g") == {"topic=orders": 130}
    of_groups = {"group=g": 70, "group=h": 0}
    assert named(series, "kafka_consumergroup_group_sum_lag", cluster_name="prod") == of_groups
    assert named(series, "rebalance_monitor_group_lag") == of_groups
    assert named(series, "kafka_consumergroup_group_max_lag", cluster_name="prod") == {"group=g": 60, "group=h": 0}


def test_what_kafka_exporter_shows_as_minus_one_is_absent() -> None:
    """Its -1 for a partition without a commit is added to sums by others, and pulls averages down."""
    series = scraped(monitor_state_of([], {**LAGGING, ("g", "orders", 2): 5}, sample_of()))
    assert all(value >= 0 for (name, _), value in series.items() if name.startswith("kafka_"))
    assert "partition=2,topic=orders" not in named(series, "kafka_consumergroup_lag", consumergroup="g")
    assert named(series, "kafka_consumergroup_lag_sum", consumergroup="g") == {}, "a part of it is not known"
    assert named(series, "kafka_consumergroup_group_sum_lag", cluster_name="prod") == {"group=h": 0}
    assert named(series, "kafka_consumergroup_group_max_lag", cluster_name="prod")["group=g"] == 60, "of those known"
