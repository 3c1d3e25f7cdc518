"""Tests that public dashboards of other exporters find their metrics with the same names, labels and meaning.

kafka_exporter's dashboard is 7589 on grafana.com (`kafka_exporter_overview.json` in its repository). `kafka-mixin` was
an earlier form of it. kafka-lag-exporter's dashboard is `grafana/Kafka_Lag_Exporter_Dashboard.json` in its repository.
Queries of Java's own metrics are not tested here, because only the exporter has these metrics. Prometheus adds the
labels `job`, `instance` and `namespace` to a target.
"""

from __future__ import annotations

import re

import pytest

from streaming.signals import KAFKA_EXPORTER, KAFKA_LAG_EXPORTER, SIGNALS
from tests.promql import names_in_query
from tests.streaming.prometheus.test_metrics import monitor_state_of, named, sample_of, scraped

TARGET_LABELS = {"job", "instance", "namespace"}
VARIABLE_QUERY = re.compile(r"(?:label_values|query_result)\((?P<query>.*?)(?:, ?(?P<label>\w+))?\)$")
"""A dashboard variable: its query, and the label whose values it lists."""
LAGGING = {("g", "orders", 0): 90, ("g", "orders", 1): 40, ("h", "orders", 0): 100}

QUERIES = [
    (KAFKA_EXPORTER, "label_values(kafka_consumergroup_current_offset, job)", "the list of jobs"),
    (KAFKA_EXPORTER, 'label_values(kafka_consumergroup_current_offset{job=~"j"}, instance)', "the list of targets"),
    (
        KAFKA_EXPORTER,
        "label_values(kafka_topic_partition_current_offset{instance='i',topic!='__consumer_offsets'}, topic)",
        "the list of topics",
    ),
    (KAFKA_EXPORTER, "label_values(kafka_consumergroup_members,consumergroup)", "the list of groups (kafka-mixin)"),
    (
        KAFKA_EXPORTER,
        'sum(rate(kafka_topic_partition_current_offset{instance="i", topic=~"t"}[1m])) by (topic)',
        "incoming messages per second",
    ),
    (
        KAFKA_EXPORTER,
        "sum(delta(kafka_topic_partition_current_offset{instance=~'i', topic=~\"t\"}[5m])/5) by (topic)",
        "incoming messages per minute",
    ),
    (
        KAFKA_EXPORTER,
        'sum(kafka_consumergroup_lag{instance="i",topic=~"t"}) by (consumergroup, topic)',
        "lag by group: the sum of its partitions",
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
    (KAFKA_LAG_EXPORTER, "query_result(kafka_consumergroup_group_lag)", "the lists of namespaces, clusters and groups"),
    (
        KAFKA_LAG_EXPORTER,
        'query_result(kafka_consumergroup_group_lag{namespace="n",cluster_name="c"})',
        "the list of groups of a cluster",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'topk(50, kafka_consumergroup_group_max_lag_seconds{namespace="n",cluster_name="c",group=~"g",group!=""})',
        "the groups with the most lag in seconds, also over time",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'topk(50, kafka_consumergroup_group_max_lag{namespace="n",cluster_name="c",group=~"g",group!=""})',
        "the groups with the most lag in records",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'topk(25, kafka_consumergroup_group_lag_seconds{namespace="n",cluster_name="c",group=~"g",group!=""})',
        "the partitions with the most lag in seconds, by group, topic and partition",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'topk(25, kafka_consumergroup_group_lag{namespace="n",cluster_name="c",group=~"g",group!=""})',
        "the partitions with the most lag in records",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'max(kafka_consumergroup_group_lag_seconds{namespace="n",cluster_name="c",group=~"g",group!=""}) by (group)',
        "a group's worst partition",
    ),
    (
        KAFKA_LAG_EXPORTER,
        'sum(kafka_consumergroup_group_offset{namespace="n",cluster_name="c",group=~"g",group!=""})',
        "the sum of a group's committed offsets",
    ),
    (
        KAFKA_LAG_EXPORTER,
        (
            'sum((kafka_consumergroup_group_offset{namespace="n",cluster_name="c",group=~"g"} * 0)'
            " + on(namespace,cluster_name,topic,partition) group_left()"
            ' kafka_partition_latest_offset{namespace="n",cluster_name="c"})'
        ),
        "the sum of the end offsets of the partitions that the group committed",
    ),
]


@pytest.mark.parametrize(("family_set", "query", "why"), QUERIES, ids=[query for _, query, _ in QUERIES])
def test_the_metrics_and_labels_of_a_public_dashboard_exist(family_set: str, query: str, why: str) -> None:
    """If a panel is empty after a change of the exporter, users notice it only in an incident."""
    variable = VARIABLE_QUERY.match(query)
    names = names_in_query(variable["query"] if variable else query)
    listed_label = {variable["label"]} if variable and variable["label"] else set()
    labels = {*names.labels, *listed_label} - TARGET_LABELS
    signals = [SIGNALS[name] for name in names.metrics]
    assert {signal.family_set for signal in signals} == {family_set}, why
    assert labels <= {label for signal in signals for label in signal.labels}, why
    joined_on = {label for on in re.findall(r"\bon\(([^)]*)\)", query) for label in on.split(",")} - TARGET_LABELS
    assert all(joined_on <= {*signal.labels} for signal in signals), why


def test_end_and_start_offsets_have_the_meaning_of_both_exporters() -> None:
    """In kafka_exporter, `current_offset` of a partition is its end offset, and of a group its committed offset."""
    series = scraped(monitor_state_of([], LAGGING, sample_of()))
    ends = {"partition=0,topic=orders": 100, "partition=1,topic=orders": 100}
    assert named(series, "kafka_topic_partition_current_offset") == ends
    assert named(series, "kafka_partition_latest_offset", cluster_name="prod") == ends
    assert named(series, "kafka_topic_partition_oldest_offset") == {}, (
        "log start offsets were not sampled, so they are absent and not 0"
    )
    assert named(series, "kafka_brokers") == {}, "brokers were not sampled either"


def test_sums_of_a_groups_partitions_are_equal_in_both_families_and_the_monitors_own() -> None:
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


def test_a_value_that_kafka_exporter_shows_as_minus_one_is_absent() -> None:
    """kafka_exporter shows -1 for a partition without a commit, which makes sums and averages too small."""
    series = scraped(monitor_state_of([], {**LAGGING, ("g", "orders", 2): 5}, sample_of()))
    assert all(value >= 0 for (name, _), value in series.items() if name.startswith("kafka_"))
    assert "partition=2,topic=orders" not in named(series, "kafka_consumergroup_lag", consumergroup="g")
    assert named(series, "kafka_consumergroup_lag_sum", consumergroup="g") == {}, "the lag of one partition is unknown"
    assert named(series, "kafka_consumergroup_group_sum_lag", cluster_name="prod") == {"group=h": 0}
    assert named(series, "kafka_consumergroup_group_max_lag", cluster_name="prod")["group=g"] == 60, (
        "the maximum of the known partitions"
    )
