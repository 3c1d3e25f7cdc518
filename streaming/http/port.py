"""The HTTP port: `/metrics` in Prometheus' text format or OpenMetrics, gzip where it is taken; pages beside it.

1. `/metrics` is written by us at a fraction of the cost (`exposition`); methods other than GET are prometheus-client's
   affair. HEAD is GET without the body, there as everywhere.
2. Everything else is the pages' affair; without any it is not found.
3. With users, only `/-/healthy` and `/-/ready` are told to everybody: they hold a word, and probes have no password.
4. What fails is said in the log, and to the client no more than that it failed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, make_wsgi_app

from streaming.errors import RemedyError
from streaming.http.access import Certificate, Users
from streaming.http.compression import gzipped
from streaming.http.exchange import Application, Environ, Headers, StartResponse
from streaming.http.negotiation import accepts_gzip, chosen_encoder
from streaming.http.server import Server
from streaming.prometheus.exposition import Encoder, Pieces

PUBLIC_PATHS = frozenset({"/-/healthy", "/-/ready"})
_PLAIN = ("Content-Type", "text/plain; charset=utf-8")

_log = logging.getLogger(__name__)


class PortError(RemedyError):
    """The HTTP port cannot be had."""


@dataclass(frozen=True, slots=True)
class Access:
    """How the port is guarded: a certificate for TLS, users for basic authentication, or neither."""

    certificate: Certificate | None = None
    users: Users | None = None


def not_found(_: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Answer 404: there is no such page."""
    return _said(start_response, "404 Not Found")


class MetricsServer:
    """Serves metrics, as an encoder has them, and pages, until closed. `port` is the one that was really taken."""

    def __init__(
        self,
        host: str,
        port: int,
        exposition: Callable[[Encoder], Pieces],
        pages: Application = not_found,
        access: Access = Access(),
    ) -> None:
        application = _guarded(_routed(_metrics(exposition), pages), access.users)
        try:
            self._server = Server(host, port, application, access.certificate, PUBLIC_PATHS)
        except OSError as error:
            raise PortError(
                f"cannot listen on {host}:{port} ({error.strerror}): stop what listens there or set metrics.port"
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)
        self._thread.start()
        self.port = self._server.port

    def close(self) -> None:
        """Stop serving and wait for the thread."""
        self._server.shutdown()
        self._thread.join()


def _metrics(exposition: Callable[[Encoder], Pieces]) -> Application:
    """Rule 1."""
    library: Application = make_wsgi_app(CollectorRegistry(auto_describe=False))

    def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "GET":
            return library(environ, start_response)
        encoder, content_type = chosen_encoder(environ.get("HTTP_ACCEPT", ""))
        headers, pieces = [("Content-Type", content_type), ("Vary", "Accept, Accept-Encoding")], exposition(encoder)
        is_zipped = accepts_gzip(environ.get("HTTP_ACCEPT_ENCODING", ""))
        if is_zipped:
            headers.append(("Content-Encoding", "gzip"))
        start_response("200 OK", headers)
        return [gzipped(pieces) if is_zipped else b"".join(pieces)]

    return answer


def _routed(metrics: Application, pages: Application) -> Application:
    """Rules 1, 2 and 4."""

    def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        wanted = metrics if environ["PATH_INFO"] == "/metrics" else pages
        is_head = environ["REQUEST_METHOD"] == "HEAD"
        answered: list[tuple[str, Headers]] = []
        try:
            asked = {**environ, "REQUEST_METHOD": "GET"} if is_head else environ
            body = b"".join(wanted(asked, lambda status, headers: answered.append((status, headers))))
        except Exception:  # noqa: BLE001 - the port outlives whatever one request brings about
            _log.exception("a request on the HTTP port failed")
            return _said(start_response, "500 Internal Server Error")
        status, headers = answered[-1]
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        return [] if is_head else [body]

    return answer


def _guarded(application: Application, users: Users | None) -> Application:
    """Rule 3."""

    def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        should_report = users is None or environ["PATH_INFO"] in PUBLIC_PATHS
        if should_report or users.admits(environ.get("HTTP_AUTHORIZATION")):  # type: ignore[union-attr]
            return application(environ, start_response)
        challenge = ("WWW-Authenticate", 'Basic realm="kafka-rebalance-monitor", charset="UTF-8"')
        return _said(start_response, "401 Unauthorized", challenge)

    return answer


def _said(start_response: StartResponse, status: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    body = f"{status}\n".encode()
    start_response(status, [_PLAIN, ("Content-Length", str(len(body))), *headers])
    return [body]
