"""The HTTP port: `/metrics` in Prometheus' text format or OpenMetrics, gzip where the scraper takes it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app, start_http_server
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector

from streaming.errors import RemedyError
from streaming.sinks.exposition import exposition

GZIP_LEVEL = 1
"""A third more bytes than at level 9, which is what the library takes, for an eighth of the time."""

StartResponse = Callable[[str, list[tuple[str, str]]], object]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


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
        self._server.set_app(_application(collector, make_wsgi_app(registry)))
        self.port = int(self._server.server_port)

    def close(self) -> None:
        """Stop serving and wait for the thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _application(collector: Collector, library: Application) -> Application:
    """A whole scrape is written by us, at a fraction of the cost; whatever else is asked is the library's affair."""

    def answer(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "GET" or environ["PATH_INFO"] == "/favicon.ico":
            return library(environ, start_response)
        encoder, content_type = choose_encoder(environ.get("HTTP_ACCEPT", ""))
        headers, body = [("Content-Type", content_type)], exposition(collector, encoder)
        if gzip_accepted(environ.get("HTTP_ACCEPT_ENCODING", "")):
            headers.append(("Content-Encoding", "gzip"))
            body = gzip.compress(body, GZIP_LEVEL)
        start_response("200 OK", headers)
        return [body]

    return answer
