"""Tests of the connection to a cluster, which sends requests to chosen brokers."""

from __future__ import annotations

import gc
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import trustme
from kafka.errors import KafkaConnectionError, KafkaError, UnknownBrokerIdError
from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.admin import ListGroupsRequest

from streaming.config.security import SecuritySettings
from streaming.config.settings import KafkaSettings
from streaming.embedded import EmbeddedBroker
from streaming.embedded.ports import free_port
from streaming.errors import RemedyError
from streaming.sampling.connection import AccessRefusedError, BrokerUnreachableError, Connection, _bytes_before_end


def test_a_cluster_that_does_not_answer_is_one_line_with_the_remedy():
    """The on-call engineer reads the first line."""
    kafka = KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_port()}", connect_timeout_seconds=0.3)
    with pytest.raises(
        BrokerUnreachableError, match=r"no broker at 127\.0\.0\.1:\d+ answered within 0\.3 s"
    ) as refused:
        Connection(kafka, 1)
    assert "\n" not in str(refused.value)


def test_a_failed_start_leaves_no_thread_and_no_socket(caplog: pytest.LogCaptureFixture):
    """An unreachable cluster is retried all night. With four sockets per retry, no socket would be left."""
    caplog.set_level(logging.CRITICAL, "kafka")  # pytest keeps log records, and a record keeps its connection

    def threads_and_sockets_after_failure() -> tuple[int, int]:
        kafka = KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_port()}", connect_timeout_seconds=0.1)
        with pytest.raises(BrokerUnreachableError):
            Connection(kafka, 1)
        gc.collect()  # the client does not close refused sockets itself
        return sum(thread.name.startswith("kafka-io") for thread in threading.enumerate()), psutil.Process().num_fds()

    threads, sockets = threads_and_sockets_after_failure()
    for _ in range(4):
        now_threads, now_sockets = threads_and_sockets_after_failure()
        assert now_threads <= threads
        assert now_sockets <= sockets


@contextmanager
def tls_port(authority: trustme.CA, wants: ssl.VerifyMode = ssl.CERT_NONE) -> Iterator[str]:
    """Listen like a broker with TLS, up to the end of the handshake, and yield the address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = wants
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept_handshakes, args=(listener, context), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def _accept_handshakes(listener: socket.socket, context: ssl.SSLContext) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection, suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(1)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.mark.parametrize(
    ("host", "trusts_it", "message"),
    [
        ("127.0.0.1", False, r"broker's certificate \(.*certificate.*\): check kafka\.security\.ca_file"),
        (
            "localhost",
            True,
            r"broker's certificate \(Hostname mismatch.*\): check kafka\.bootstrap_servers or v",
        ),
    ],
    ids=["unknown authority", "certificate of a different host"],
)
def test_a_refused_handshake_reports_at_once_which_setting_to_check(
    authority: trustme.CA, tmp_path: Path, host: str, trusts_it: bool, message: str
):
    """kafka-python alone retries until its timeout, and then reports only the timeout."""
    (authority if trusts_it else trustme.CA()).cert_pem.write_to_path(tmp_path / "ca.pem")
    security = SecuritySettings(protocol="SSL", ca_file=tmp_path / "ca.pem")
    with tls_port(authority) as address:
        servers = address.replace("127.0.0.1", host)
        kafka = KafkaSettings(bootstrap_servers=servers, connect_timeout_seconds=600, security=security)
        with pytest.raises(AccessRefusedError, match=f"^no access to {servers}: .*{message}"):
            Connection(kafka, 5)


def test_a_broker_that_closes_the_connection_in_tls_is_reported_with_the_certificate_setting(
    authority: trustme.CA, tmp_path: Path
):
    """In TLS 1.3, a broker requests a certificate after the handshake.

    It may close the connection before the client reads the request.
    """
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    security = SecuritySettings(protocol="SSL", ca_file=tmp_path / "ca.pem")
    with tls_port(authority, ssl.CERT_REQUIRED) as address:
        kafka = KafkaSettings(bootstrap_servers=address, connect_timeout_seconds=2, security=security)
        with pytest.raises(RemedyError, match=r": check kafka\.security\.(protocol and )?certificate_file"):
            Connection(kafka, 5)


def closed_transport(last_bytes: bytes) -> KafkaTCPTransport:
    """Return a transport whose broker sent these bytes and closed the connection before the first read."""
    ours, brokers = socket.socketpair()
    ours.setblocking(False)
    brokers.sendall(last_bytes)
    brokers.close()
    return KafkaTCPTransport(None, ours)


def test_the_last_bytes_are_returned_before_the_end_of_the_connection():
    """kafka-python 3.0 returns both at once and then drops the bytes, for example a refusal of credentials."""
    with closing(closed_transport(b"refused")._sock) as socket_of_library:
        content, end = KafkaTCPTransport(None, socket_of_library)._sock_recv()
        assert (content, type(end)) == (b"refused", KafkaConnectionError), (
            "kafka-python fixed this, so the monitor's workaround can be removed"
        )
    transport = closed_transport(b"refused")
    with closing(transport._sock):
        assert _bytes_before_end(transport._sock_recv) == (b"refused", None)
        content, end = _bytes_before_end(transport._sock_recv)
        assert (content, type(end)) == (b"", KafkaConnectionError)


@pytest.mark.slow
def test_many_requests_are_answered_in_order_and_a_missing_broker_fails_only_its_own_request(broker: EmbeddedBroker):
    """The client allows five open requests per connection. Further requests must wait and not fail."""
    with closing(Connection(KafkaSettings(bootstrap_servers=broker.bootstrap_servers), 15)) as connection:
        [broker_id] = connection.broker_ids()
        versions = [version % 6 for version in range(20)]
        requests = [(broker_id, ListGroupsRequest(max_version=version)) for version in versions]
        *answers, missing = connection.ask_each([*requests, (broker_id + 1, ListGroupsRequest())])
    assert isinstance(missing, UnknownBrokerIdError)
    assert not any(isinstance(answer, KafkaError) for answer in answers)
    assert [answer.API_VERSION for answer in answers] == versions
