"""Tests that the HTTP port answers scrapes in spite of faulty, many or unauthorized clients."""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import bcrypt
import pytest
import trustme

import streaming.http.access
from streaming.config.settings import MetricsSettings
from streaming.http.access import Access, read_access
from streaming.http.exchange import Environ, Gateway, StartResponse
from streaming.http.routes import MetricsServer
from tests.streaming.http.clients import answer_to, connect_to
from tests.streaming.http.test_access import pem_files, read_certificate, users_file
from tests.streaming.http.test_http import one


def pages(environ: Environ, start_response: StartResponse) -> list[bytes]:
    """Return the method and the path. Raise an error for the path `/fails`."""
    if environ["PATH_INFO"] == "/fails":
        raise RuntimeError("as requested")
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


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"A" * 70_000,
    ],
)
def test_invalid_http_is_refused_without_output(
    server: MetricsServer, request_bytes: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with connect_to(server) as connection:
        connection.sendall(request_bytes)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionResetError):
            while received := connection.recv(65_536):
                answer += received
    assert answer == b"" or answer.startswith((b"HTTP/1.0 400 ", b"HTTP/1.0 414 ", b"HTTP/1.0 505 "))
    assert b"one 1.0" in ask(server)[1]
    assert capfd.readouterr().err == ""


def test_a_client_that_disconnects_early_causes_no_output(
    server: MetricsServer, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(5):
        connection = connect_to(server)
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


def test_unknown_methods_are_passed_to_the_pages(server: MetricsServer) -> None:
    assert ask(server, "BREW", "/pot")[1] == b"BREW /pot"


@pytest.mark.parametrize("method", ["POST", "PUT", "OPTIONS", "BREW"])
def test_metrics_can_only_be_read(server: MetricsServer, method: str) -> None:
    answer, body = ask(server, method)
    assert (answer.status, body) == (405, b"405 Method Not Allowed\n")
    assert answer.headers["Allow"] == "GET, HEAD"
    assert answer.headers.get_all("Content-Length") == [str(len(body))]


def test_without_pages_every_other_address_is_not_found() -> None:
    server = MetricsServer("127.0.0.1", 0, one)
    try:
        answer, body = ask(server, path="/groups/x")
    finally:
        server.close()
    assert (answer.status, body) == (404, b"404 Not Found\n")
    assert answer.headers.get_all("Content-Length") == [str(len(body))]


def test_only_the_path_metrics_is_a_scrape(server: MetricsServer) -> None:
    """The scrape contains data of all groups, so no other address may return it."""
    assert b"one 1.0" not in ask(server, path="/metrics/")[1]
    assert b"one 1.0" not in ask(server, path="/")[1]


def test_an_error_affects_only_its_own_request(server: MetricsServer, caplog: pytest.LogCaptureFixture) -> None:
    answer, body = ask(server, path="/fails")
    assert (answer.status, body) == (500, b"500 Internal Server Error\n"), "the response has no stack trace"
    assert "as requested" in caplog.text, "the log shows the reason"
    assert b"one 1.0" in ask(server)[1]


def test_the_server_header_shows_no_library_or_version(server: MetricsServer) -> None:
    assert ask(server)[0].headers["Server"] == "rebalance-monitor"


def test_the_port_can_listen_on_ipv6() -> None:
    try:
        server = MetricsServer("::1", 0, one)
    except OSError:
        pytest.skip("no IPv6 on this machine")
    with closing(http.client.HTTPConnection("::1", server.port, timeout=10)) as connection:
        connection.request("GET", "/metrics")
        assert b"one 1.0" in connection.getresponse().read()
    server.close()


@pytest.mark.parametrize(
    ("path", "status"),
    [("/metrics", 200), ("/groups/x", 200), ("/fails", 500), ("/-/healthy", 200), ("/bad path", 400)],
)
def test_every_response_has_the_security_headers(server: MetricsServer, path: str, status: int) -> None:
    """Some responses had none. If a browser takes a scrape for a page, it may run code in a group name."""
    with connect_to(server) as connection:
        head, _, _ = answer_to(connection, path).partition(b"\r\n\r\n")
    status_line, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert len(lines) == len(headers), "each header appears once"
    assert status_line.split()[1] == str(status)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("accept_encoding", "encoding"), [("gzip", "gzip"), ("gzip;q=0", None), ("identity, gzip;q=0.1", None)]
)
def test_the_header_vary_names_the_headers_that_a_response_depends_on(
    server: MetricsServer, accept_encoding: str, encoding: str | None
) -> None:
    answer, _ = ask(server, **{"Accept-Encoding": accept_encoding})
    assert answer.headers["Vary"] == "Accept, Accept-Encoding"
    assert answer.headers["Content-Encoding"] == encoding


def test_too_long_request_headers_are_refused(server: MetricsServer) -> None:
    """The server does not answer the part that it has read, because a header may be incomplete."""
    with connect_to(server) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\n" + b"X-More: and more\r\n" * 4000)
        with suppress(ConnectionResetError):
            assert connection.recv(1 << 16).startswith(b"HTTP/1.0 431 ")
    assert b"one 1.0" in ask(server)[1]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(b"GET /" + b"a" * 70_000, b"414", id="no end"),
        pytest.param(b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414", id="the end in the second read"),
        pytest.param(b"GET / HTTP/1.1\r\nX-More: " + b"a" * 70_000 + b"\r\n\r\n", b"431", id="a long header"),
    ],
)
def test_a_request_that_is_too_long_gets_the_status_of_its_long_part(head: bytes, status: bytes) -> None:
    """A long request line got 431, a problem of headers, if its end arrived with the second read."""
    [answer, *_] = Gateway(lambda *_: [], "127.0.0.1", 1).answer(head, "127.0.0.1")
    assert answer.startswith(b"HTTP/1.0 " + status)


USERS_LINE = f"prometheus:{bcrypt.hashpw(b'secret', bcrypt.gensalt(4)).decode()}\n"
RIGHT = "Basic " + base64.b64encode(b"prometheus:secret").decode()


@pytest.mark.parametrize(
    ("path", "headers", "status", "why"),
    [
        ("/metrics", {}, 401, "no password"),
        ("/metrics", {"Authorization": RIGHT}, 200, "a user"),
        ("/groups/x", {}, 401, "pages also need a password"),
        ("/groups/x", {"Authorization": RIGHT}, 200, "a user may open pages"),
        ("/fails", {}, 401, "the application does not run without a password"),
        ("/-/healthy", {}, 200, "probes need no password"),
        ("/-/ready", {}, 200, "probes need no password"),
        ("/-/ready/../metrics", {}, 401, "only the exact path of the probe is open"),
        ("/-/ready/", {}, 401, "only the exact path of the probe is open"),
    ],
)
def test_with_users_only_probes_are_answered_without_a_password(
    tmp_path: Path, path: str, headers: dict[str, str], status: int, why: str
) -> None:
    access = read_access(MetricsSettings(basic_auth_users_file=users_file(tmp_path, USERS_LINE)))
    server = MetricsServer("127.0.0.1", 0, one, pages, access)
    try:
        answer, _ = ask(server, path=path, **headers)
    finally:
        server.close()
    assert answer.status == status, why
    if status == 401:
        assert answer.headers["WWW-Authenticate"].startswith("Basic realm=")
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def tls_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def ask_tls(server: MetricsServer, context: ssl.SSLContext) -> bytes:
    with closing(http.client.HTTPSConnection("127.0.0.1", server.port, timeout=10, context=context)) as connection:
        connection.request("GET", "/metrics")
        return connection.getresponse().read()


@pytest.fixture
def over_tls(tmp_path: Path, authority: trustme.CA) -> Iterator[MetricsServer]:
    certificate = read_certificate(*pem_files(tmp_path, authority=authority))
    served = MetricsServer("127.0.0.1", 0, one, pages, Access(certificate))
    yield served
    served.close()


def test_with_a_certificate_the_port_accepts_only_tls(
    over_tls: MetricsServer, authority: trustme.CA, capfd: pytest.CaptureFixture[str]
) -> None:
    assert b"one 1.0" in ask_tls(over_tls, tls_context(authority))
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        ask(over_tls)
    with pytest.raises(ssl.SSLCertVerificationError):
        ask_tls(over_tls, ssl.create_default_context())
    assert capfd.readouterr().err == ""


def test_old_tls_is_refused(over_tls: MetricsServer, authority: trustme.CA) -> None:
    context = tls_context(authority)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLS"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLS"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask_tls(over_tls, context)


def test_a_renewed_certificate_is_used_without_a_restart_and_a_broken_one_is_not(
    tmp_path: Path, over_tls: MetricsServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other programs renew certificates every few weeks, and do not know the monitor."""
    monkeypatch.setattr(streaming.http.access, "SETTLE_SECONDS", 0)
    renewed = trustme.CA()
    certificate, _ = pem_files(tmp_path, authority=renewed)
    os.utime(certificate, (1, 1))
    assert b"one 1.0" in ask_tls(over_tls, tls_context(renewed))
    (tmp_path / "newer").mkdir()
    newer, _ = pem_files(tmp_path / "newer")
    Path(newer).replace(certificate)
    assert b"one 1.0" in ask_tls(over_tls, tls_context(renewed)), (
        "the old pair stays in use, because the new key is not written yet"
    )
    Path(certificate).write_text("half written")
    assert b"one 1.0" in ask_tls(over_tls, tls_context(renewed))
    assert "The old certificate stays in use" in caplog.text
