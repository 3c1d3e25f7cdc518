"""The HTTP port among clients that are slow, mad, many or strangers: a scrape comes through all the same."""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import bcrypt
import pytest
import trustme

import streaming.sinks.server
from streaming.sinks.access import Certificate, Users
from streaming.sinks.http import Access, Environ, MetricsServer, StartResponse
from tests.streaming.sinks.test_access import pem_files
from tests.streaming.sinks.test_http import one


def pages(environ: Environ, start_response: StartResponse) -> list[bytes]:
    """Answer with what was asked; fail where that is asked for."""
    if environ["PATH_INFO"] == "/fails":
        raise RuntimeError("as asked")
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["REQUEST_METHOD"].encode(), b" ", environ["PATH_INFO"].encode("latin-1")]


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    served = MetricsServer("127.0.0.1", 0, one, pages)
    yield served
    served.close()


def ask(
    server: MetricsServer, method: str = "GET", path: str = "/metrics", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read()


def connected(server: MetricsServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=10)


def is_hung_up_on(connection: socket.socket) -> bool:
    """Wait for the end of what the server says; it says nothing."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def still_waits(connection: socket.socket) -> bool:
    """Whether the server neither answered nor hung up."""
    connection.setblocking(False)
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        pass
    return False


def test_a_client_that_says_nothing_keeps_no_scrape_waiting(server: MetricsServer) -> None:
    """Rule 1."""
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(server)) for _ in range(20)]
        for connection in silent:
            connection.sendall(b"GET /met")
        assert b"one 1.0" in ask(server)[1]
        assert all(still_waits(connection) for connection in silent), "nobody had to go first"


def test_who_says_nothing_for_long_is_hung_up_on(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 2."""
    monkeypatch.setattr(streaming.sinks.server, "SILENCE_SECONDS", 0.2)
    with connected(server) as connection:
        connection.sendall(b"GET /metrics HTT")
        assert is_hung_up_on(connection)


def test_who_is_never_done_is_hung_up_on_however_busy(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 2: a header a second would hold a thread for ever (Slowloris)."""
    monkeypatch.setattr(streaming.sinks.server, "LONGEST_SECONDS", 0.5)
    deadline = time.monotonic() + 10
    with connected(server) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\n")
        with suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() < deadline:
                connection.sendall(b"X-More: and more\r\n")
                time.sleep(0.05)
    assert time.monotonic() < deadline
    assert b"one 1.0" in ask(server)[1]


def test_too_many_connections_are_hung_up_on_and_room_is_made_again(
    server: MetricsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 3."""
    monkeypatch.setattr(streaming.sinks.server, "MOST_CONNECTIONS", 3)
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(connected(server))
        time.sleep(0.2)
        assert is_hung_up_on(stack.enter_context(connected(server)))
    deadline = time.monotonic() + 10
    while True:
        try:
            assert b"one 1.0" in ask(server)[1]
            break
        except (ConnectionError, http.client.HTTPException):
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.parametrize(
    "said",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"A" * 70_000,
    ],
)
def test_what_is_no_http_is_refused_and_said_nowhere(
    server: MetricsServer, said: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with connected(server) as connection:
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionResetError):
            while heard := connection.recv(65_536):
                answer += heard
    assert answer == b"" or b" 400 " in answer or b" 414 " in answer or b" 505 " in answer or b"Error" in answer
    assert b"one 1.0" in ask(server)[1]
    assert capfd.readouterr().err == ""


def test_a_client_that_goes_away_in_the_middle_is_said_nowhere(
    server: MetricsServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(5):
        connection = connected(server)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        connection.close()
    assert b"one 1.0" in ask(server)[1]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("path", ["/metrics", "/groups/a%2Fb"])
def test_head_is_get_without_the_body(server: MetricsServer, path: str) -> None:
    answer, body = ask(server, "HEAD", path)
    whole, text = ask(server, "GET", path)
    assert (answer.status, body) == (200, b"")
    assert text
    assert int(answer.headers["Content-Length"]) == len(text)
    assert answer.headers["Content-Type"] == whole.headers["Content-Type"]


def test_methods_nobody_knows_reach_the_pages_and_are_theirs_to_refuse(server: MetricsServer) -> None:
    assert ask(server, "BREW", "/pot")[1] == b"BREW /pot"
    assert ask(server, "POST")[0].status == 405, "/metrics is prometheus-client's, which says so"


def test_only_its_own_address_is_metrics(server: MetricsServer) -> None:
    """prometheus-client alone answers any address with a whole scrape."""
    assert b"one 1.0" not in ask(server, path="/metrics/")[1]
    assert b"one 1.0" not in ask(server, path="/")[1]


def test_a_request_that_fails_costs_that_request_only(server: MetricsServer, caplog: pytest.LogCaptureFixture) -> None:
    answer, body = ask(server, path="/fails")
    assert (answer.status, body) == (500, b"500 Internal Server Error\n"), "no trace of our insides"
    assert "as asked" in caplog.text, "the log tells"
    assert b"one 1.0" in ask(server)[1]


def test_it_says_nothing_of_its_making(server: MetricsServer) -> None:
    assert ask(server)[0].headers["Server"] == "rebalance-monitor"


def test_it_listens_on_ipv6_too() -> None:
    try:
        server = MetricsServer("::1", 0, one)
    except OSError:
        pytest.skip("no IPv6 on this machine")
    with closing(http.client.HTTPConnection("::1", server.port, timeout=10)) as connection:
        connection.request("GET", "/metrics")
        assert b"one 1.0" in connection.getresponse().read()
    server.close()


GUARDED = Users({"prometheus": bcrypt.hashpw(b"secret", bcrypt.gensalt(4))})
RIGHT = "Basic " + base64.b64encode(b"prometheus:secret").decode()


@pytest.mark.parametrize(
    ("path", "headers", "status", "why"),
    [
        ("/metrics", {}, 401, "nobody"),
        ("/metrics", {"Authorization": RIGHT}, 200, "a user"),
        ("/groups/x", {}, 401, "pages too"),
        ("/groups/x", {"Authorization": RIGHT}, 200, "pages too"),
        ("/fails", {}, 401, "nothing is done for strangers"),
        ("/-/healthy", {}, 200, "probes have no password"),
        ("/-/ready", {}, 200, "probes have no password"),
        ("/-/ready/../metrics", {}, 401, "no way round"),
        ("/-/ready/", {}, 401, "no way round"),
    ],
)
def test_with_users_only_probes_are_answered_for_strangers(
    path: str, headers: dict[str, str], status: int, why: str
) -> None:
    server = MetricsServer("127.0.0.1", 0, one, pages, Access(users=GUARDED))
    try:
        answer, _ = ask(server, path=path, **headers)
    finally:
        server.close()
    assert answer.status == status, why
    if status == 401:
        assert answer.headers["WWW-Authenticate"].startswith("Basic realm=")


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def ask_tls(server: MetricsServer, context: ssl.SSLContext) -> bytes:
    with closing(http.client.HTTPSConnection("127.0.0.1", server.port, timeout=10, context=context)) as connection:
        connection.request("GET", "/metrics")
        return connection.getresponse().read()


@pytest.fixture
def over_tls(tmp_path: Path, authority: trustme.CA) -> Iterator[MetricsServer]:
    certificate = Certificate(*pem_files(tmp_path, authority=authority))
    served = MetricsServer("127.0.0.1", 0, one, pages, Access(certificate))
    yield served
    served.close()


def test_with_a_certificate_the_port_speaks_tls_and_nothing_else(
    over_tls: MetricsServer, authority: trustme.CA, capfd: pytest.CaptureFixture[str]
) -> None:
    assert b"one 1.0" in ask_tls(over_tls, trusting(authority))
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        ask(over_tls)
    with pytest.raises(ssl.SSLCertVerificationError):
        ask_tls(over_tls, ssl.create_default_context())
    assert capfd.readouterr().err == ""


def test_a_handshake_nobody_goes_on_with_keeps_no_scrape_waiting(
    over_tls: MetricsServer, authority: trustme.CA
) -> None:
    """Rule 1: prometheus-client's own server makes the handshake where it takes connections."""
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(over_tls)) for _ in range(5)]
        assert b"one 1.0" in ask_tls(over_tls, trusting(authority))
        assert all(still_waits(connection) for connection in silent), "nobody had to go first"


def test_old_tls_is_refused(over_tls: MetricsServer, authority: trustme.CA) -> None:
    context = trusting(authority)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLS"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLS"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask_tls(over_tls, context)


def test_a_renewed_certificate_is_shown_without_a_restart_and_a_broken_one_is_not(
    tmp_path: Path, over_tls: MetricsServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Certificates are renewed every few weeks by somebody who knows nothing of us."""
    renewed = trustme.CA()
    certificate, _ = pem_files(tmp_path, authority=renewed)
    os.utime(certificate, (1, 1))
    assert b"one 1.0" in ask_tls(over_tls, trusting(renewed))
    Path(certificate).write_text("half written")
    assert b"one 1.0" in ask_tls(over_tls, trusting(renewed))
    assert "the old one stays" in caplog.text
