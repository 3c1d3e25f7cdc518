"""Answers one HTTP request with the WSGI handler of the standard library. The handler uses memory instead of a socket.

The head of a request is its request line and its headers.

1. The handler reads a complete head from memory and writes the response into a list. So the handler never waits for a
   client.
2. All responses contain all headers in `ALWAYS`, including the error responses of the handler. If the
   application sets one of these headers, the response contains the value of the application.
3. A request line can contain a complete URL instead of a path (RFC 9112, section 3.2.2). The application receives only
   the path and the query of such a URL.
"""

from __future__ import annotations

import asyncio
import io
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, TextIO, TypeVar
from urllib.parse import unquote
from wsgiref.simple_server import WSGIRequestHandler

Headers = list[tuple[str, str]]
Environ = dict[str, Any]
StartResponse = Callable[[str, Headers], object]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
"""The type of a WSGI application (PEP 3333)."""

ALWAYS: Final[tuple[tuple[str, str], ...]] = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Server", "rebalance-monitor"),
)
_MAX_HEAD_BYTES = 64 << 10
_SCHEME_AND_HOST = re.compile(r"https?://[^/?#]*/*", re.IGNORECASE)
_TEXT = "text/plain; charset=utf-8"

_T = TypeVar("_T")


class Gateway:
    """Answers requests with a WSGI application."""

    def __init__(self, application: Application, host: str, port: int) -> None:
        self._application = application
        self.base_environ = {"SERVER_NAME": host, "SERVER_PORT": str(port), "GATEWAY_INTERFACE": "CGI/1.1"}
        self.base_environ |= {"REMOTE_HOST": "", "CONTENT_LENGTH": "", "SCRIPT_NAME": ""}

    def answer(self, head: bytes, host: str) -> list[bytes]:
        """Answer a request of the client `host`. The request has no body. Return the pieces of the response."""
        exchange = _Exchange(head)
        _Handler(exchange, (host, 0), self)  # type: ignore[arg-type]
        return exchange.answer

    def get_app(self) -> Application:
        """Return the application. The library's handler calls this method of its server object."""
        return self._call_application

    def _call_application(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: Headers) -> object:
            return start_response(status, [*headers, *_missing_headers(headers)])

        return self._application(environ, start)


class _Exchange:
    """Replaces the socket of the handler. Stores the request and the response."""

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.answer: list[bytes] = []

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self.head)

    def sendall(self, piece: bytes) -> None:
        self.answer.append(piece)


class _Handler(WSGIRequestHandler):
    server_version, sys_version = "rebalance-monitor", ""
    default_request_version = "HTTP/1.0"  # so an error response has a status line, even if the request line is invalid
    error_content_type, error_message_format = _TEXT, "%(code)d %(message)s\n"

    def handle(self) -> None:
        """Answer the request.

        A head longer than _MAX_HEAD_BYTES is rejected, because the server did not read the rest of the head.
        """
        head = self.request.head
        if len(head) <= _MAX_HEAD_BYTES:
            super().handle()
            return
        self.requestline, self.request_version, self.command = "", self.default_request_version, ""
        is_line_too_long = b"\n" not in head[:_MAX_HEAD_BYTES]
        self.send_error(
            HTTPStatus.REQUEST_URI_TOO_LONG if is_line_too_long else HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        )

    def parse_request(self) -> bool:
        """Parse the request line and the headers (rule 3)."""
        is_valid = super().parse_request()
        if is_valid:
            self.path = _without_host(self.path)
        return is_valid

    def end_headers(self) -> None:
        """Add the headers in `ALWAYS` to error responses of the library (rule 2)."""
        for name, value in ALWAYS:
            if name != "Server":
                self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Log no requests, because one line per scrape would make the log too large."""

    def get_stderr(self) -> TextIO:
        """Return a buffer for error output, so that wsgiref does not print to the terminal."""
        return io.StringIO()


def plain_answer(status: str, *headers: tuple[str, str]) -> bytes:
    """Return a complete response with the text `status` as its body."""
    body = f"{status}\n"
    given = [("Content-Type", _TEXT), ("Content-Length", str(len(body))), *headers]
    lines = [f"{name}: {value}\r\n" for name, value in [*given, *_missing_headers(given)]]
    return f"HTTP/1.0 {status}\r\n{''.join(lines)}\r\n{body}".encode()


def path_of(head: bytes) -> str:
    r"""Return the decoded path of a request line. The result is empty if the line has no path.

    >>> path_of(b"GET /-/ready?cluster=eu HTTP/1.1\r\nHost: x\r\n\r\n"), path_of(b"\x16\x03")
    ('/-/ready', '')
    >>> path_of(b"GET http://x:9560/-/%68ealthy HTTP/1.1\r\n\r\n")
    '/-/healthy'
    """
    words = head.partition(b"\n")[0].split()
    target = words[1].decode("latin-1") if len(words) > 1 else ""
    return unquote(_without_host(target).partition("?")[0], "latin-1")


def _without_host(target: str) -> str:
    """Remove the scheme and the host from a request target (rule 3).

    >>> _without_host("http://monitor:9560/groups?at=now"), _without_host("HTTP://monitor"), _without_host("/a")
    ('/groups?at=now', '/', '/a')
    """
    start = _SCHEME_AND_HOST.match(target)
    return f"/{target[start.end() :]}" if start else target


async def run_in_thread(function: Callable[[], _T]) -> _T:
    """Run a function in a new thread. The process can exit before the function returns."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: Exception | None) -> None:
        if done.done():  # the waiting task was cancelled
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, failure = None, None
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - it is raised in the waiting task
            failure = error
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, name="http request", daemon=True).start()
    return await done


def _missing_headers(headers: Headers) -> Headers:
    given = {name.lower() for name, _ in headers}
    return [(name, value) for name, value in ALWAYS if name.lower() not in given]
