"""Tests of requests for `/metrics` and of reading single metric families."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from streaming.embedded.ports import free_port
from streaming.http.routes import MetricsServer
from streaming.prometheus.exposition import Encoder
from tests.bench.fill import BenchError
from tests.bench.scrape import Scrape, scrape

LAG = {"plain": 5.0, 'quo"ted \\ and\nbroken': 7.0}


class _Lag(Collector):
    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily("rebalance_monitor_group_lag", "Lag.", labels=("cluster", "group"))
        for group_id, lag in LAG.items():
            family.add_metric(("bench", group_id), lag)
        yield family
        yield GaugeMetricFamily("rebalance_monitor_ready", "Ready.", value=1)


def _lag(encoder: Encoder) -> list[bytes]:
    return [encoder(_Lag())]


@pytest.fixture
def answer() -> Iterator[Scrape]:
    server = MetricsServer("127.0.0.1", 0, _lag)
    try:
        found = scrape(server.port)
        assert found is not None
        yield found
    finally:
        server.close()


def test_a_family_is_read_by_label(answer: Scrape) -> None:
    assert answer.by_label("rebalance_monitor_group_lag", "group") == LAG


def test_a_family_without_labels_has_one_value(answer: Scrape) -> None:
    assert answer.value("rebalance_monitor_ready") == 1
    assert answer.value("rebalance_monitor_rea") is None


def test_a_closed_port_gives_no_scrape() -> None:
    assert scrape(free_port()) is None


def _fail(_: Encoder) -> list[bytes]:
    raise OSError("test")


def test_an_error_response_is_reported() -> None:
    server = MetricsServer("127.0.0.1", 0, _fail)
    try:
        with pytest.raises(BenchError, match="/metrics returned 500"):
            scrape(server.port)
    finally:
        server.close()
