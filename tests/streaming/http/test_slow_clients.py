"""Slow and many clients on the HTTP port: probes are answered all the same, and so is another address's scrape."""

from __future__ import annotations

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

import streaming.http.exchange
import streaming.http.server
from streaming.http.access import Certificate
from streaming.http.exchange import Environ, StartResponse
from streaming.http.port import Access, MetricsServer
from streaming.http.server import MAX_WAITING
from tests.streaming.http.clients import answer_to, connected, is_hung_up_on, still_waits
from tests.streaming.http.test_access import pem_files
from tests.streaming.http.test_http import one

HERE, ELSEWHERE = "127.0.0.1", "127.0.0.2"
LARGE_BYTES = 32 << 20


class Pages:
    """`/held` is answered when the test opens the gate, `/large` at once, and all else with a word."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def __call__(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        """Answer."""
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
    """Change the server's limits before it starts."""
    return monkeypatch


def limit(limits: pytest.MonkeyPatch, **values: float) -> None:
    for name, value in values.items():
        limits.setattr(streaming.http.server, name, value)


@contextmanager
def served(pages: Pages, access: Access = Access()) -> Iterator[MetricsServer]:  # noqa: B008 - a frozen value
    server = MetricsServer("127.0.0.1", 0, one, pages, access)
    try:
        yield server
    finally:
        pages.gate.set()
        server.close()


def is_answered(server: MetricsServer, path: str, source: str = HERE) -> bool:
    with connected(server, source) as connection:
        return b" 200 OK" in answer_to(connection, path)


@contextmanager
def trickled(connections: list[socket.socket], content: bytes) -> Iterator[None]:
    """Send a byte on each connection, again and again, from a thread."""
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


def test_trickling_and_idle_connections_keep_no_probe_and_no_scrape_waiting(pages: Pages) -> None:
    """70 connections that sent a byte in 4 s took all threads: nobody else was answered. 200 idle ones did, too."""
    with served(pages) as server, ExitStack() as stack:
        slow = [stack.enter_context(connected(server)) for _ in range(70)]
        with trickled(slow, b"GET /metrics HTTP/1.1\r\nX-More: " + b"and more, " * 1000):
            idle = [stack.enter_context(connected(server)) for _ in range(200)]
            for path in ("/-/healthy", "/-/ready", "/metrics"):
                assert is_answered(server, path), path
            assert any(map(still_waits, slow + idle)), "they were there all the time"


def test_a_client_that_sends_half_a_request_keeps_nobody_waiting(pages: Pages) -> None:
    """Rule 1: and it is not hung up on either, as long as there is room."""
    with served(pages) as server, ExitStack() as stack:
        silent = [stack.enter_context(connected(server)) for _ in range(20)]
        for connection in silent:
            connection.sendall(b"GET /met")
        assert is_answered(server, "/metrics")
        assert all(still_waits(connection) for connection in silent)


@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTT"])
def test_a_request_that_does_not_arrive_ends_the_connection(
    pages: Pages, limits: pytest.MonkeyPatch, sent: bytes
) -> None:
    """Rule 2."""
    limit(limits, HEAD_SECONDS=0.2)
    with served(pages) as server, connected(server) as connection:
        connection.sendall(sent)
        assert is_hung_up_on(connection)


def test_a_request_that_never_ends_ends_the_connection(pages: Pages, limits: pytest.MonkeyPatch) -> None:
    """Rule 2: a header now and then (Slowloris) is not progress."""
    limit(limits, HEAD_SECONDS=0.5)
    with served(pages) as server, connected(server) as connection:
        deadline = time.monotonic() + 30
        with suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() < deadline:
                connection.sendall(b"X-More: and more\r\n")
                time.sleep(0.05)
        assert time.monotonic() < deadline


def test_a_new_connection_always_gets_in_and_the_oldest_of_the_crowd_goes(
    pages: Pages, limits: pytest.MonkeyPatch
) -> None:
    """Rule 3: a probe that was hung up on because others said nothing had the monitor killed."""
    limit(limits, MAX_WAITING=4)
    with served(pages) as server, ExitStack() as stack:
        alone = stack.enter_context(connected(server, ELSEWHERE))
        synthetic_groups = [stack.enter_context(connected(server, HERE)) for _ in range(4)]
        assert is_hung_up_on(synthetic_groups[0])
        assert still_waits(alone), "it is older, but its address has one connection only"
        alone.setblocking(True)
        assert b"a word" in answer_to(alone, "/")


def test_more_connections_than_may_wait_are_as_good_as_none(pages: Pages) -> None:
    """Rule 3, with the real limits."""
    with served(pages) as server, ExitStack() as stack:
        synthetic_groups = [stack.enter_context(connected(server)) for _ in range(MAX_WAITING + 50)]
        assert is_answered(server, "/-/healthy")
        assert is_answered(server, "/metrics")
        assert is_hung_up_on(synthetic_groups[0])


def test_probes_and_other_addresses_have_places_that_no_request_of_one_address_takes(
    pages: Pages, limits: pytest.MonkeyPatch
) -> None:
    """Rules 4 and 5: requests that take long (a slow table) fill half of the places only."""
    limit(limits, MAX_ANSWERS=2, MAX_REQUESTS=8)
    with served(pages) as server, ExitStack() as stack:
        held = [stack.enter_context(connected(server)) for _ in range(4)]
        for connection in held:
            connection.sendall(b"GET /held HTTP/1.1\r\n\r\n")
        refused = stack.enter_context(connected(server))
        until_refused = answer_to(refused, "/metrics")
        assert until_refused.startswith(b"HTTP/1.0 503 Service Unavailable\r\n")
        assert b"Retry-After: 1\r\n" in until_refused
        assert is_answered(server, "/-/ready")
        assert is_answered(server, "/metrics", ELSEWHERE)
        assert all(still_waits(connection) for connection in held)
        pages.gate.set()
        for connection in held:
            connection.settimeout(30)
            assert connection.recv(15) == b"HTTP/1.0 200 OK"


def test_a_client_that_reads_no_answer_keeps_no_other_address_waiting_and_is_hung_up_on(
    pages: Pages, limits: pytest.MonkeyPatch
) -> None:
    """Rule 2: an answer nobody reads holds its memory and its place."""
    limit(limits, MAX_ANSWERS=2, SILENCE_SECONDS=0.5)
    with served(pages) as server, ExitStack() as stack:
        deaf = [stack.enter_context(connected(server)) for _ in range(3)]
        for connection in deaf:
            connection.sendall(b"GET /large HTTP/1.1\r\n\r\n")
        assert is_answered(server, "/-/healthy")
        assert is_answered(server, "/metrics", ELSEWHERE)
        assert is_answered(server, "/metrics"), "its own address waits until it is hung up on"


def test_a_client_that_reads_slowly_gets_all_of_it(pages: Pages) -> None:
    """An answer goes out in pieces, none of them lost."""
    with served(pages) as server, connected(server) as connection:
        answer = answer_to(connection, "/large")
    assert answer.partition(b"\r\n\r\n")[2] == b"x" * LARGE_BYTES


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="monitor")
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_a_trickled_handshake_keeps_nobody_waiting_and_comes_to_an_end(
    tmp_path: Path, pages: Pages, limits: pytest.MonkeyPatch
) -> None:
    """Rules 1 and 2: a handshake made where connections are taken stops the whole port."""
    limit(limits, HEAD_SECONDS=2.0)
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    access = Access(Certificate(*pem_files(tmp_path, authority=authority)))
    with served(pages, access) as server, ExitStack() as stack:
        silent = stack.enter_context(connected(server))
        slow = stack.enter_context(connected(server))
        with trickled([slow], client_hello()):
            with trusting.wrap_socket(connected(server), server_hostname="127.0.0.1") as connection:
                assert b"Content-Length: " in answer_to(connection, "/-/healthy")  # type: ignore[arg-type]
            assert still_waits(silent)
            slow.settimeout(30)
            assert is_hung_up_on(slow)


@pytest.mark.parametrize("module", [streaming.http.server, streaming.http.exchange])
def test_the_examples_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
