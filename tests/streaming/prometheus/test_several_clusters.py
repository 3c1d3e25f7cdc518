"""Several clusters in one answer: each family once, each series with its cluster."""

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
OF_A_NAME = {name: signal for signal in SIGNALS.values() for name in exported_names(signal)}


@pytest.fixture(scope="module")
def monitor_state(tmp_path_factory: pytest.TempPathFactory) -> MonitorState:
    """Return what both clusters have: the same names in both are no conflict."""
    tables: Path = tmp_path_factory.mktemp("tables")
    return everything(tables)


@pytest.fixture(scope="module")
def families(monitor_state: MonitorState) -> list[Metric]:
    exporter = Exporter([(name, monitor_state) for name in CLUSTERS], lambda: NOW_MS, STALE_AFTER_MS)
    return list(parse_text(answer(exporter)))


def cluster_of(name: str, labels: dict[str, str]) -> str:
    """Return the cluster that a series says it is of."""
    return labels["cluster_name" if OF_A_NAME[name].family_set == KAFKA_LAG_EXPORTER else "cluster"]


def test_a_family_stands_once_and_in_it_one_cluster_after_the_other(families: list[Metric]) -> None:
    """Prometheus refuses a family that is told of twice."""
    assert len({family.name for family in families}) == len(families)
    for family in families:
        clusters = [cluster_of(sample.name, sample.labels) for sample in family.samples]
        assert clusters == sorted(clusters), family.name
        assert set(clusters) == set(CLUSTERS), family.name


def test_no_two_series_are_the_same_though_names_of_groups_and_topics_are(families: list[Metric]) -> None:
    """kafka_exporter has no label for the cluster: where there are several its series have `cluster` beside theirs."""
    series = [(sample.name, tuple(sorted(sample.labels.items()))) for family in families for sample in family.samples]
    assert len(set(series)) == len(series)


def test_one_cluster_has_no_label_that_kafka_exporter_has_not(monitor_state: MonitorState) -> None:
    text = answer(Exporter([("eu", monitor_state)], lambda: NOW_MS, STALE_AFTER_MS))
    [brokers] = [family for family in parse_text(text) if family.name == "kafka_brokers"]
    assert [sample.labels for sample in brokers.samples] == [{}]


def test_a_cluster_that_was_never_ready_leaves_the_others_as_they_are(monitor_state: MonitorState) -> None:
    """Rule: no verdict from half a log, and one cluster's trouble is its own."""
    down = MonitorState()
    exporter = Exporter([("eu", monitor_state), ("us", down)], lambda: NOW_MS, STALE_AFTER_MS)
    found = {family.name: family.samples for family in parse_text(answer(exporter))}
    ready = {sample.labels["cluster"]: sample.value for sample in found["rebalance_monitor_ready"]}
    assert ready == {"eu": 1, "us": 0}
    assert {sample.labels["cluster"] for sample in found["rebalance_monitor_group_lag"]} == {"eu"}


def test_openmetrics_takes_it_too(monitor_state: MonitorState) -> None:
    exporter = Exporter([(name, monitor_state) for name in CLUSTERS], lambda: NOW_MS, STALE_AFTER_MS)
    text = answer(exporter, generate_openmetrics)
    assert list(parse_openmetrics(text))  # type: ignore[no-untyped-call]
