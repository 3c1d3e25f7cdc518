"""Tests of several clusters in one scrape: each family appears once, and each series has its cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from streaming.prometheus.metrics import Exporter
from streaming.signals import KAFKA_LAG_EXPORTER, SIGNALS, exported_names
from streaming.state.monitor_state import MonitorState
from tests.streaming.http.answers import answer
from tests.streaming.page.scene import NOW_MS
from tests.streaming.prometheus.everything import STALE_AFTER_MS, everything

CLUSTERS = ("eu", "us")
SIGNAL_BY_NAME = {name: signal for signal in SIGNALS.values() for name in exported_names(signal)}


@pytest.fixture(scope="module")
def monitor_state(tmp_path_factory: pytest.TempPathFactory) -> MonitorState:
    """Return the state that both clusters use, so all their groups and topics have the same names."""
    tables: Path = tmp_path_factory.mktemp("tables")
    return everything(tables)


@pytest.fixture(scope="module")
def families(monitor_state: MonitorState) -> list[Metric]:
    exporter = Exporter([(name, monitor_state) for name in CLUSTERS], lambda: NOW_MS, STALE_AFTER_MS)
    return list(parse_text(answer(exporter)))


def cluster_of(name: str, labels: dict[str, str]) -> str:
    """Return the cluster in the labels of a series."""
    return labels["cluster_name" if SIGNAL_BY_NAME[name].family_set == KAFKA_LAG_EXPORTER else "cluster"]


def test_each_family_appears_once_with_one_cluster_after_the_other(families: list[Metric]) -> None:
    """Prometheus refuses a family that appears twice."""
    assert len({family.name for family in families}) == len(families)
    for family in families:
        clusters = [cluster_of(sample.name, sample.labels) for sample in family.samples]
        assert clusters == sorted(clusters), family.name
        assert set(clusters) == set(CLUSTERS), family.name


def test_no_two_series_are_equal_although_both_clusters_have_the_same_names(families: list[Metric]) -> None:
    """kafka_exporter has no label for the cluster. With several clusters, its series get the label `cluster`."""
    series = [(sample.name, tuple(sorted(sample.labels.items()))) for family in families for sample in family.samples]
    assert len(set(series)) == len(series)


def test_with_one_cluster_kafka_exporters_series_have_only_its_own_labels(monitor_state: MonitorState) -> None:
    text = answer(Exporter([("eu", monitor_state)], lambda: NOW_MS, STALE_AFTER_MS))
    [brokers] = [family for family in parse_text(text) if family.name == "kafka_brokers"]
    assert [sample.labels for sample in brokers.samples] == [{}]


def test_a_cluster_that_was_never_ready_does_not_affect_the_others(monitor_state: MonitorState) -> None:
    """Rule: no verdict from a part of the log. A problem of one cluster does not affect the others."""
    never_ready = MonitorState()
    exporter = Exporter([("eu", monitor_state), ("us", never_ready)], lambda: NOW_MS, STALE_AFTER_MS)
    samples_by_family = {family.name: family.samples for family in parse_text(answer(exporter))}
    ready = {sample.labels["cluster"]: sample.value for sample in samples_by_family["rebalance_monitor_ready"]}
    assert ready == {"eu": 1, "us": 0}
    assert {sample.labels["cluster"] for sample in samples_by_family["rebalance_monitor_group_lag"]} == {"eu"}


def test_the_openmetrics_format_of_several_clusters_can_be_parsed(monitor_state: MonitorState) -> None:
    exporter = Exporter([(name, monitor_state) for name in CLUSTERS], lambda: NOW_MS, STALE_AFTER_MS)
    text = answer(exporter, generate_openmetrics)
    assert list(parse_openmetrics(text))  # type: ignore[no-untyped-call]
