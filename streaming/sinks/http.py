"""The HTTP port: `/metrics` in Prometheus' text format or OpenMetrics, gzip where the scraper takes it."""

from __future__ import annotations

import threading
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.registry import Collector

from streaming.errors import RemedyError


class PortError(RemedyError):
    """The HTTP port cannot be had."""


class MetricsServer:
    """Serves a collector until closed. `port` is the port that was really taken."""

    def __init__(self, host: str, port: int, collector: Collector) -> None:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(collector)
        try:
            self._server: WSGIServer
            self._thread: threading.Thread
            self._server, self._thread = start_http_server(port, addr=host, registry=registry)
        except OSError as error:
            raise PortError(
                f"cannot listen on {host}:{port} ({error.strerror}): stop what listens there or set metrics.port"
            ) from None
        self.port = int(self._server.server_port)

    def close(self) -> None:
        """Stop serving and wait for the thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
