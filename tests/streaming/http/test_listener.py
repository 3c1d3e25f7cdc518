"""Tests of the start of the HTTP port: what the error says, and whether a restart can help."""

from __future__ import annotations

import errno
import socket

import pytest

import streaming.http.listener
from streaming.errors import MAY_PASS, STAYS
from streaming.http.listener import PortError, PortInUseError, open_listener
from streaming.http.routes import MetricsServer


def test_a_port_in_use_is_an_error_with_the_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUseError, match=rf"127.0.0.1:{port} .*: stop .*, or set metrics.port to") as refused:
            open_listener("127.0.0.1", port)
    assert refused.value.exit_code == MAY_PASS, "the previous monitor may still be stopping"


def test_the_server_refuses_an_address_of_a_different_host() -> None:
    with pytest.raises(PortError, match=r"cannot listen on 192\.0\.2\.1:0 .*: set metrics.host to an IP address of"):
        MetricsServer("192.0.2.1", 0, lambda _: [])


@pytest.mark.parametrize(
    ("error", "remedy", "exit_code", "why"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown name"), "check DNS, or set metrics.host", MAY_PASS, "DNS trouble"),
        (OSError(errno.EADDRNOTAVAIL, "no such address"), "set metrics.host", MAY_PASS, "a late interface"),
        (OSError(errno.EACCES, "denied"), "set metrics.port to 1024", STAYS, "a missing right"),
    ],
)
def test_the_remedy_names_the_setting_that_is_wrong(
    error: OSError, remedy: str, exit_code: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a wrong host, the remedy was to stop the process that uses the port."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(streaming.http.listener.socket, "getaddrinfo", fail)
    with pytest.raises(PortError) as refused:
        open_listener("monitor", 80)
    assert str(refused.value).startswith(f"cannot listen on monitor:80 ({error.strerror}): {remedy}")
    assert refused.value.exit_code == exit_code, why
