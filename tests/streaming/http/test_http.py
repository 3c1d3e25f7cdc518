"""Tests of the HTTP port with real HTTP requests."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from streaming.http.routes import MetricsServer
from streaming.prometheus.exposition import Encoder


class One(Collector):
    """A collector of one series."""

    def collect(self) -> Iterator[Metric]:
        """Return the only family."""
        yield GaugeMetricFamily("one", "The one.", value=1)


def one(encoder: Encoder) -> list[bytes]:
    """Return the exposition of the only family."""
    return [encoder(One())]


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    served = MetricsServer("127.0.0.1", 0, one)
    yield served
    served.close()


def scrape(server: MetricsServer, **headers: str) -> tuple[bytes, str]:
    request = Request(f"http://127.0.0.1:{server.port}/metrics", headers=headers)
    with urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
        return answer.read(), answer.headers["Content-Type"]


def test_metrics_are_served_in_prometheus_text(server: MetricsServer) -> None:
    body, content_type = scrape(server)
    assert content_type.startswith("text/plain")
    assert [family.name for family in text_string_to_metric_families(body.decode())] == ["one"]


def test_metrics_are_served_as_openmetrics_and_compressed_on_request(server: MetricsServer) -> None:
    headers = {"Accept": "application/openmetrics-text; version=1.0.0", "Accept-Encoding": "gzip"}
    body, content_type = scrape(server, **headers)
    assert content_type.startswith("application/openmetrics-text")
    families = parse_openmetrics(gzip.decompress(body).decode())  # type: ignore[no-untyped-call]
    assert [family.name for family in families] == ["one"]


def test_after_close_the_port_is_free_and_no_thread_is_left() -> None:
    before = threading.active_count()
    server = MetricsServer("127.0.0.1", 0, one)
    server.close()
    assert threading.active_count() == before
    MetricsServer("127.0.0.1", server.port, one).close()


def test_a_request_for_a_different_path_is_not_a_scrape(server: MetricsServer) -> None:
    """Browsers request an icon."""
    with pytest.raises(HTTPError, match="404"):
        urlopen(f"http://127.0.0.1:{server.port}/favicon.ico", timeout=10)
