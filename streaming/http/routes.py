"""Answers the requests for `/metrics` and for pages. `server.py` handles the connections.

1. The module `exposition` answers GET on `/metrics`, because this module is faster than prometheus-client. The format
   is Prometheus' text format or OpenMetrics. If the client accepts gzip, the server compresses the response. For every
   path, HEAD returns the headers of GET without a body. For all other methods on `/metrics`, the status is 405.
2. The application `pages` answers requests for all other paths. If the pages are switched off, the response is 404 (Not
   Found).
3. If users are configured, every path except `/-/healthy` and `/-/ready` requires a password. The paths `/-/healthy`
   and `/-/ready` are for probes, which cannot send passwords. The responses to probes contain no data about groups.
4. If a request fails, the monitor logs the error. The client receives only the status 500 (Internal Server Error).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from streaming.http.access import UNPROTECTED, Access, Reloaded, Users
from streaming.http.compression import compress_gzip
from streaming.http.exchange import Application, Environ, Headers, StartResponse
from streaming.http.negotiation import accepts_gzip, select_encoder
from streaming.http.server import Server
from streaming.prometheus.exposition import Encoder, Pieces

PUBLIC_PATHS = frozenset({"/-/healthy", "/-/ready"})
_PLAIN = ("Content-Type", "text/plain; charset=utf-8")

_log = logging.getLogger(__name__)


def not_found(_: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Answer every request with 404 (Not Found)."""
    return _status_response(start_response, "404 Not Found")


class MetricsServer:
    """Serves metrics and pages until `close` is called. Raises PortError if the port cannot be opened.

    If the argument `port` is 0, the operating system selects the port.
    """

    def __init__(
        self,
        host: str,
        port: int,
        exposition: Callable[[Encoder], Pieces],
        pages: Application = not_found,
        access: Access = UNPROTECTED,
    ) -> None:
        application = _with_routes(_metrics_application(exposition), pages)
        if access.users is not None:
            application = _with_passwords(application, access.users)
        self._server = Server(host, port, application, access.certificate, PUBLIC_PATHS)
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)
        self._thread.start()
        self.port = self._server.port

    def close(self) -> None:
        """Stop the server and wait for the end of its thread."""
        self._server.shutdown()
        self._thread.join()


def _metrics_application(exposition: Callable[[Encoder], Pieces]) -> Application:
    def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "GET":
            return _status_response(start_response, "405 Method Not Allowed", ("Allow", "GET, HEAD"))
        encoder, content_type = select_encoder(environ.get("HTTP_ACCEPT", ""))
        headers, pieces = [("Content-Type", content_type), ("Vary", "Accept, Accept-Encoding")], exposition(encoder)
        is_compressed = accepts_gzip(environ.get("HTTP_ACCEPT_ENCODING", ""))
        if is_compressed:
            headers.append(("Content-Encoding", "gzip"))
        start_response("200 OK", headers)
        return [compress_gzip(pieces) if is_compressed else b"".join(pieces)]

    return answer


def _with_routes(metrics: Application, pages: Application) -> Application:
    def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        application = metrics if environ["PATH_INFO"] == "/metrics" else pages
        is_head = environ["REQUEST_METHOD"] == "HEAD"
        started: list[tuple[str, Headers]] = []
        try:
            request = {**environ, "REQUEST_METHOD": "GET"} if is_head else environ
            body = b"".join(application(request, lambda status, headers: started.append((status, headers))))
        except Exception:  # noqa: BLE001 - a failed request must not stop the server
            _log.exception("a request on the HTTP port failed")
            return _status_response(start_response, "500 Internal Server Error")
        status, headers = started[-1]
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        return [] if is_head else [body]

    return answer


def _with_passwords(application: Application, users: Reloaded[Users]) -> Application:
    def answer(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        is_public = environ["PATH_INFO"] in PUBLIC_PATHS
        if is_public or users.current().admits(environ.get("HTTP_AUTHORIZATION")):
            return application(environ, start_response)
        challenge = ("WWW-Authenticate", 'Basic realm="kafka-rebalance-monitor", charset="UTF-8"')
        return _status_response(start_response, "401 Unauthorized", challenge)

    return answer


def _status_response(start_response: StartResponse, status: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    body = f"{status}\n".encode()
    start_response(status, [_PLAIN, *headers])
    return [body]
