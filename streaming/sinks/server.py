"""The server behind the HTTP port: a thread a request, and no client keeps another waiting.

1. Nothing that waits for a client runs in the thread that takes connections, a TLS handshake included.
2. A client that is silent for `SILENCE_SECONDS` is hung up on, and so is one that is not done after `LONGEST_SECONDS`,
   however busy it looks.
3. There are `MOST_CONNECTIONS` at a time; who comes beyond that is hung up on at once, and comes again.
"""

from __future__ import annotations

import io
import logging
import socket
import ssl
import time
from contextlib import suppress
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, TextIO
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from streaming.sinks.access import Certificate

SILENCE_SECONDS = 10.0
LONGEST_SECONDS = 60.0
MOST_CONNECTIONS = 64
POLL_SECONDS = 0.2

_log = logging.getLogger(__name__)


class Server(ThreadingMixIn, WSGIServer):
    """Listens from the start; `serve_forever` answers until `shutdown`. Raises OSError where it cannot listen."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, host: str, port: int, certificate: Certificate | None = None) -> None:
        self._certificate = certificate
        self._since_seconds: dict[socket.socket, float] = {}
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        self.address_family = family
        super().__init__(address[:2], _Handler)  # type: ignore[arg-type]

    def server_bind(self) -> None:
        """Bind, and ask no name server what we are called: that may take long and is shown nowhere."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's own
        """Give the connection a thread."""
        if len(self._since_seconds) >= MOST_CONNECTIONS:
            self.shutdown_request(request)
            return
        request.settimeout(SILENCE_SECONDS)
        try:
            connection = self._certificate.wrapped(request) if self._certificate else request
        except OSError:  # it is gone already
            self.shutdown_request(request)
            return
        self._since_seconds[connection] = time.monotonic()
        super().process_request(connection, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's own
        """Answer, in the request's own thread."""
        if isinstance(request, ssl.SSLSocket):
            request.do_handshake()
        super().finish_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - socketserver's own
        """Close the connection."""
        self._since_seconds.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Hang up on who takes too long; called every `POLL_SECONDS`."""
        now_seconds = time.monotonic()
        for connection, since_seconds in list(self._since_seconds.items()):
            if now_seconds - since_seconds > LONGEST_SECONDS:
                with suppress(OSError):
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002 - socketserver's own
        """A client that went away, or speaks no HTTP or TLS, is none of an operator's business."""
        _log.debug("a request on the HTTP port broke off", exc_info=True)


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing: a scrape every few seconds is no news."""

    def get_stderr(self) -> TextIO:
        """What wsgiref would print of a client that hung up in the middle of an answer."""
        return io.StringIO()
