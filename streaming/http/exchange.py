"""One request and its answer, in memory: the standard library's own WSGI handler, without a socket.

1. The handler reads a head that has arrived as a whole and writes into a list, so it never waits for a client.
2. Each answer has the headers `ALWAYS`, unless it has one of that name itself: also refusals that no page has made.
"""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, TextIO, TypeVar
from wsgiref.simple_server import WSGIRequestHandler

Headers = list[tuple[str, str]]
Environ = dict[str, Any]
StartResponse = Callable[[str, Headers], object]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
"""What PEP 3333 calls an application, as far as it is used here."""

ALWAYS: Final[tuple[tuple[str, str], ...]] = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Server", "rebalance-monitor"),
)
_LONGEST_HEAD_BYTES = 64 << 10
_TEXT = "text/plain; charset=utf-8"

_T = TypeVar("_T")


class Gateway:
    """Turns the head of a request into an answer of an application."""

    def __init__(self, application: Application, host: str, port: int) -> None:
        self._application = application
        self.base_environ = {"SERVER_NAME": host, "SERVER_PORT": str(port), "GATEWAY_INTERFACE": "CGI/1.1"}
        self.base_environ |= {"REMOTE_HOST": "", "CONTENT_LENGTH": "", "SCRIPT_NAME": ""}

    def answer(self, head: bytes, host: str) -> list[bytes]:
        """Answer the request of a client at this address. A body that came with it is not read."""
        exchange = _Exchange(head)
        _Handler(exchange, (host, 0), self)  # type: ignore[arg-type]
        return exchange.answer

    def get_app(self) -> Application:
        """The handler asks its server for the application."""
        return self._with_headers

    def _with_headers(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Rule 2."""

        def start(status: str, headers: Headers) -> object:
            return start_response(status, [*headers, *_missing(headers)])

        return self._application(environ, start)


class _Exchange:
    """What the handler takes for a socket."""

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.answer: list[bytes] = []

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self.head)

    def sendall(self, piece: bytes) -> None:
        self.answer.append(piece)


class _Handler(WSGIRequestHandler):
    server_version, sys_version = "rebalance-monitor", ""
    default_request_version = "HTTP/1.0"  # so that a refusal has a status line, whatever was sent
    error_content_type, error_message_format = _TEXT, "%(code)d %(message)s\n"

    def handle(self) -> None:
        """Refuse a head that is longer than any client needs: it has not been read to its end."""
        head = self.request.head
        if len(head) <= _LONGEST_HEAD_BYTES:
            super().handle()
            return
        self.requestline, self.request_version, self.command = "", self.default_request_version, ""
        is_line = b"\n" not in head
        self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG if is_line else HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def end_headers(self) -> None:
        """Rule 2, for what the library refuses by itself."""
        for name, value in ALWAYS:
            if name != "Server":
                self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing: a scrape every few seconds is no news."""

    def get_stderr(self) -> TextIO:
        """Keep what wsgiref would print."""
        return io.StringIO()


def plain_answer(status: str, *headers: tuple[str, str]) -> bytes:
    """A whole answer that says no more than its status."""
    body = f"{status}\n"
    given = [("Content-Type", _TEXT), ("Content-Length", str(len(body))), *headers]
    lines = [f"{name}: {value}\r\n" for name, value in [*given, *_missing(given)]]
    return f"HTTP/1.0 {status}\r\n{''.join(lines)}\r\n{body}".encode()


def path_of(head: bytes) -> str:
    r"""The path in a request line, as it stands there.

    >>> path_of(b"GET /-/ready?cluster=eu HTTP/1.1\r\nHost: x\r\n\r\n"), path_of(b"\x16\x03")
    ('/-/ready', '')
    """
    words = head.partition(b"\n")[0].split()
    return words[1].partition(b"?")[0].decode("latin-1") if len(words) > 1 else ""


async def in_thread(function: Callable[[], _T]) -> _T:
    """Run a function in a thread of its own that does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: Exception | None) -> None:
        if done.done():  # nobody waits for it any more
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, failure = None, None
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - it goes to the one who waits
            failure = error
        with suppress(RuntimeError):  # the server has been closed
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, name="http request", daemon=True).start()
    return await done


def _missing(headers: Headers) -> Headers:
    given = {name.lower() for name, _ in headers}
    return [(name, value) for name, value in ALWAYS if name.lower() not in given]
