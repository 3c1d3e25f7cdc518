"""Tests that slow or many clients block neither probes nor scrapes from other addresses."""

from __future__ import annotations

import base64
import doctest
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import trustme

import streaming.http.access
import streaming.http.exchange
import streaming.http.server
from streaming.config.settings import MetricsSettings
from streaming.http.access import UNPROTECTED, Access, read_access
from streaming.http.exchange import Environ, StartResponse
from streaming.http.routes import MetricsServer
from streaming.http.server import MAX_WAITING
from tests.streaming.http.clients import answer_to, connect_to, is_closed_by_server, still_waits
from tests.streaming.http.test_access import pem_files, read_certificate, users_file
from tests.streaming.http.test_http import one

HERE, ELSEWHERE, ATTACKERS = "127.0.0.1", "127.0.0.2", ("127.0.0.3", "127.0.0.4")
LARGE_BYTES = 32 << 20


class Pages:
    """Pages that answer `/held` after the gate is open, `/large` with many bytes, and other paths with a word."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def __call__(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        """Return the response of the path."""
        if environ["PATH_INFO"] == "/held":
            self.gate.wait(60)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"x" * LARGE_BYTES if environ["PATH_INFO"] == "/large" else b"a word"]


@pytest.fixture
def pages() -> Iterator[Pages]:
    served = Pages()
    yield served
    served.gate.set()


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Return a monkeypatch for the server's limits."""
    return monkeypatch


def set_limits(limits: pytest.MonkeyPatch, **values: float) -> None:
    for name, value in values.items():
        limits.setattr(streaming.http.server, name, value)


@contextmanager
def run_server(pages: Pages, access: Access = UNPROTECTED) -> Iterator[MetricsServer]:
    server = MetricsServer("127.0.0.1", 0, one, pages, access)
    try:
        yield server
    finally:
        pages.gate.set()
        server.close()


def is_answered(server: MetricsServer, path: str, source: str = HERE) -> bool:
    with connect_to(server, source) as connection:
        return b" 200 OK" in answer_to(connection, path)


@contextmanager
def trickle(connections: list[socket.socket], content: bytes) -> Iterator[None]:
    """Send the content byte by byte on each connection, from a thread."""
    is_over = threading.Event()

    def send() -> None:
        for place in range(len(content)):
            for connection in connections:
                with suppress(OSError):
                    connection.send(content[place : place + 1])
            if is_over.wait(0.05):
                return

    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        is_over.set()
        sender.join()


def test_slow_and_idle_connections_block_no_probe_and_no_scrape(pages: Pages) -> None:
    """70 connections that sent one byte every 4 s used all threads, and no other client was answered.

    200 idle connections had the same effect.
    """
    with run_server(pages) as server, ExitStack() as stack:
        slow = [stack.enter_context(connect_to(server)) for _ in range(70)]
        with trickle(slow, b"GET /metrics HTTP/1.1\r\nX-More: " + b"and more, " * 1000):
            idle = [stack.enter_context(connect_to(server)) for _ in range(200)]
            for path in ("/-/healthy", "/-/ready", "/metrics"):
                assert is_answered(server, path), path
            assert any(map(still_waits, slow + idle)), "some of the slow and idle connections are still open"


def test_a_client_with_an_incomplete_request_blocks_no_other_client(pages: Pages) -> None:
    """Rule 1. Its connection also stays open while there are few connections."""
    with run_server(pages) as server, ExitStack() as stack:
        silent = [stack.enter_context(connect_to(server)) for _ in range(20)]
        for connection in silent:
            connection.sendall(b"GET /met")
        assert is_answered(server, "/metrics")
        assert all(still_waits(connection) for connection in silent)


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTT"])
def test_a_request_that_does_not_arrive_in_time_closes_the_connection(
    pages: Pages, limits: pytest.MonkeyPatch, sent: bytes
) -> None:
    """Tests rule 2."""
    set_limits(limits, HEAD_SECONDS=0.2)
    with run_server(pages) as server, connect_to(server) as connection:
        connection.sendall(sent)
        assert is_closed_by_server(connection)


def test_a_request_that_never_ends_closes_the_connection(pages: Pages, limits: pytest.MonkeyPatch) -> None:
    """Rule 2: slow headers (Slowloris) do not extend the time."""
    set_limits(limits, HEAD_SECONDS=0.5)
    with run_server(pages) as server, connect_to(server) as connection:
        deadline = time.monotonic() + 30
        with suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() < deadline:
                connection.sendall(b"X-More: and more\r\n")
                time.sleep(0.05)
        assert time.monotonic() < deadline


def test_a_new_connection_is_accepted_and_the_oldest_of_the_busiest_address_is_closed(
    pages: Pages, limits: pytest.MonkeyPatch
) -> None:
    """Rule 3: idle clients made the server refuse a probe, and the monitor was killed."""
    set_limits(limits, MAX_WAITING=4)
    with run_server(pages) as server, ExitStack() as stack:
        alone = stack.enter_context(connect_to(server, ELSEWHERE))
        connections = [stack.enter_context(connect_to(server, HERE)) for _ in range(4)]
        assert is_closed_by_server(connections[0])
        assert still_waits(alone), "the connection is older, but its address has only one"
        alone.setblocking(True)
        assert b"a word" in answer_to(alone, "/")


def test_more_connections_than_the_limit_block_no_request(pages: Pages) -> None:
    """Tests rule 3 with the real limits."""
    with run_server(pages) as server, ExitStack() as stack:
        connections = [stack.enter_context(connect_to(server)) for _ in range(MAX_WAITING + 50)]
        assert is_answered(server, "/-/healthy")
        assert is_answered(server, "/metrics")
        assert is_closed_by_server(connections[0])


def test_one_address_cannot_block_probes_and_other_addresses(pages: Pages, limits: pytest.MonkeyPatch) -> None:
    """Rules 4 and 5: long requests of one address use at most half of the limit."""
    set_limits(limits, MAX_ANSWERS=2, MAX_REQUESTS=4)
    with run_server(pages) as server, ExitStack() as stack:
        held = [stack.enter_context(connect_to(server)) for _ in range(4)]
        for connection in held:
            connection.sendall(b"GET /held HTTP/1.1\r\n\r\n")
        refused = stack.enter_context(connect_to(server))
        refusal = answer_to(refused, "/metrics")
        assert refusal.startswith(b"HTTP/1.0 503 Service Unavailable\r\n")
        assert b"Retry-After: 1\r\n" in refusal
        assert is_answered(server, "/-/ready")
        assert is_answered(server, "/metrics", ELSEWHERE)
        assert all(still_waits(connection) for connection in held)
        pages.gate.set()
        for connection in held:
            connection.settimeout(30)
            assert connection.recv(15) == b"HTTP/1.0 200 OK"


def test_a_client_that_does_not_read_blocks_no_other_address_and_is_disconnected(
    pages: Pages, limits: pytest.MonkeyPatch
) -> None:
    """Rule 2: a response that is not read uses memory and counts towards the limit."""
    set_limits(limits, MAX_ANSWERS=2, SILENCE_SECONDS=0.5)
    with run_server(pages) as server, ExitStack() as stack:
        not_reading = [stack.enter_context(connect_to(server)) for _ in range(3)]
        for connection in not_reading:
            connection.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        assert is_answered(server, "/-/healthy")
        assert is_answered(server, "/metrics", ELSEWHERE)
        assert is_answered(server, "/metrics"), "the same address waits until the connections are closed"


def test_a_slow_client_gets_the_complete_response(pages: Pages) -> None:
    """The server sends the response in pieces, and no piece is lost."""
    with run_server(pages) as server, connect_to(server) as connection:
        answer = answer_to(connection, "/large")
    assert answer.partition(b"\r\n\r\n")[2] == b"x" * LARGE_BYTES


def test_a_client_that_reads_slowly_but_steadily_is_not_disconnected(pages: Pages, limits: pytest.MonkeyPatch) -> None:
    """Rule 2: the limit for silence applied to each MiB. At 78 kB/s, a client lost its response after 4 MB."""
    set_limits(limits, SILENCE_SECONDS=1.0, LONGEST_SECONDS=2.0, SLOWEST_BYTES_PER_SECOND=LARGE_BYTES / 60)
    with run_server(pages) as server, ExitStack() as stack:
        server._server._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 10)
        connection = stack.enter_context(connect_to(server))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        connection.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        connection.settimeout(30)
        received_bytes = 0
        while received_bytes < 3 << 20:
            piece = connection.recv(32 << 10)
            assert piece, f"disconnected after {received_bytes} bytes"
            received_bytes += len(piece)
            time.sleep(len(piece) / (600 << 10))


@pytest.mark.parametrize("slow_path", ["/large", "/held"])
def test_two_addresses_cannot_use_all_places(pages: Pages, limits: pytest.MonkeyPatch, slow_path: str) -> None:
    """Rule 4: the requests of two addresses were half of the limit each. All others got the status 503."""
    set_limits(limits, MAX_ANSWERS=4, MAX_REQUESTS=4, SILENCE_SECONDS=600, LONGEST_SECONDS=600, SLOW_SECONDS=0.2)
    with run_server(pages) as server, ExitStack() as stack:
        attacking = [stack.enter_context(connect_to(server, source)) for _ in range(4) for source in ATTACKERS]
        for connection in attacking:
            connection.sendall(b"GET %b HTTP/1.1\r\n\r\n" % slow_path.encode())
        waiting = stack.enter_context(connect_to(server, ELSEWHERE))
        waiting.settimeout(30)
        waiting.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert is_answered(server, "/-/healthy")
        if slow_path == "/held":
            pages.gate.set()  # a response that is being computed keeps its place
        assert waiting.recv(15) == b"HTTP/1.0 200 OK"


def test_wrong_passwords_of_two_addresses_do_not_refuse_other_addresses(
    tmp_path: Path, pages: Pages, limits: pytest.MonkeyPatch
) -> None:
    """Rule 4: their requests waited for the check of the passwords. Scrapes of other addresses got the status 503."""
    set_limits(limits, MAX_ANSWERS=4, MAX_REQUESTS=4)
    permits = threading.Semaphore(1)
    limits.setattr(streaming.http.access.bcrypt, "checkpw", lambda password, _: permits.acquire() and password == b"y")
    file = users_file(tmp_path, "prometheus:$2y$05$" + "x" * 53)
    access = read_access(MetricsSettings(basic_auth_users_file=file))
    right, wrong = (b"Authorization: Basic " + base64.b64encode(b"prometheus:" + word) for word in (b"y", b"n"))
    with run_server(pages, access) as server, ExitStack() as stack:

        def scrape(header: bytes, source: str) -> socket.socket:
            connection = stack.enter_context(connect_to(server, source))
            connection.settimeout(30)
            connection.sendall(b"GET /metrics HTTP/1.1\r\n%b\r\n\r\n" % header)
            return connection

        assert scrape(right, ELSEWHERE).recv(15) == b"HTTP/1.0 200 OK"
        attacking = [scrape(wrong, source) for _ in range(4) for source in ATTACKERS]
        assert is_answered(server, "/-/healthy")
        waiting = scrape(right, ELSEWHERE)
        assert is_answered(server, "/-/healthy"), "by now, the server has read the requests before"
        permits.release()
        assert waiting.recv(15) == b"HTTP/1.0 200 OK"
        assert sum(map(still_waits, attacking)) == len(attacking) - 1, "one password was checked"
        permits.release(len(attacking))


def test_a_probe_with_a_whole_address_is_a_probe(pages: Pages, limits: pytest.MonkeyPatch) -> None:
    """Rule 5: proxies send `GET http://host/-/healthy` (RFC 9112). Such a probe waited for a place and got 404."""
    set_limits(limits, MAX_ANSWERS=2)
    with run_server(pages) as server, ExitStack() as stack:
        stack.enter_context(connect_to(server)).sendall(b"GET /held HTTP/1.1\r\n\r\n")
        assert is_answered(server, "/-/healthy"), "by now, the server has read the request before"
        waiting = stack.enter_context(connect_to(server))
        waiting.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        for target in ("http://monitor/-/healthy", "HTTP://[::1]:9560/-/ready?cluster=eu", "/-/%68ealthy"):
            assert is_answered(server, target), target
        assert still_waits(waiting)


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="monitor")
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_a_slow_tls_handshake_blocks_no_other_client_and_ends(
    tmp_path: Path, pages: Pages, limits: pytest.MonkeyPatch
) -> None:
    """Rules 1 and 2: a blocking handshake in the accepting thread would stop the whole port."""
    set_limits(limits, HEAD_SECONDS=2.0)
    authority = trustme.CA()
    tls_context = ssl.create_default_context()
    authority.configure_trust(tls_context)
    access = Access(read_certificate(*pem_files(tmp_path, authority=authority)))
    with run_server(pages, access) as server, ExitStack() as stack:
        silent = stack.enter_context(connect_to(server))
        slow = stack.enter_context(connect_to(server))
        with trickle([slow], client_hello()):
            with tls_context.wrap_socket(connect_to(server), server_hostname="127.0.0.1") as connection:
                assert b"Content-Length: " in answer_to(connection, "/-/healthy")  # type: ignore[arg-type]
            assert still_waits(silent)
            slow.settimeout(30)
            assert is_closed_by_server(slow)


@pytest.mark.parametrize("path", ["/-/healthy", "/metrics"])
def test_tls_clients_that_never_close_block_no_other_client(
    tmp_path: Path, pages: Pages, limits: pytest.MonkeyPatch, path: str
) -> None:
    """Four such clients blocked every probe for 10 s, because the server waited for their `close_notify`."""
    set_limits(limits, SILENCE_SECONDS=600, MAX_ANSWERS=2)
    authority = trustme.CA()
    tls_context = ssl.create_default_context()
    authority.configure_trust(tls_context)
    access = Access(read_certificate(*pem_files(tmp_path, authority=authority)))
    with run_server(pages, access) as server, ExitStack() as stack:

        def connect() -> ssl.SSLSocket:
            return stack.enter_context(tls_context.wrap_socket(connect_to(server), server_hostname="127.0.0.1"))

        for _ in range(8):
            connect().sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        assert b" 200 OK" in answer_to(connect(), path)


@pytest.mark.parametrize("module", [streaming.http.server, streaming.http.exchange])
def test_the_examples_in_the_docstrings_are_correct(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
