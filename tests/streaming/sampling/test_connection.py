"""The one connection: questions of one's own to brokers of one's choice."""

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
    """On-call reads the first line."""
    kafka = KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_port()}", connect_timeout_seconds=0.3)
    with pytest.raises(
        BrokerUnreachableError, match=r"no broker at 127\.0\.0\.1:\d+ answered within 0\.3 s"
    ) as refused:
        Connection(kafka, 1)
    assert "\n" not in str(refused.value)


def test_a_start_that_failed_leaves_neither_thread_nor_socket_behind(caplog: pytest.LogCaptureFixture):
    """A cluster that is away is tried again all night: at four sockets a try the whole monitor would be out of them."""
    caplog.set_level(logging.CRITICAL, "kafka")  # a record that pytest keeps would keep its connection

    def held_after_failing() -> tuple[int, int]:
        kafka = KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_port()}", connect_timeout_seconds=0.1)
        with pytest.raises(BrokerUnreachableError):
            Connection(kafka, 1)
        gc.collect()  # the client leaves refused sockets to it
        return sum(thread.name.startswith("kafka-io") for thread in threading.enumerate()), psutil.Process().num_fds()

    threads, sockets = held_after_failing()
    for _ in range(4):
        now_threads, now_sockets = held_after_failing()
        assert now_threads <= threads
        assert now_sockets <= sockets


@contextmanager
def tls_port(authority: trustme.CA, wants: ssl.VerifyMode = ssl.CERT_NONE) -> Iterator[str]:
    """Listen as a broker with TLS does, as far as the handshake; its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = wants
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_shake_hands, args=(listener, context), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def _shake_hands(listener: socket.socket, context: ssl.SSLContext) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection, suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(1)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.mark.parametrize(
    ("host", "trusts_it", "said"),
    [
        ("127.0.0.1", False, r"broker's certificate \(.*certificate.*\): check kafka\.security\.ca_file"),
        (
            "localhost",
            True,
            r"broker's certificate \(Hostname mismatch.*\): check kafka\.bootstrap_servers or v",
        ),
    ],
    ids=["unknown authority", "another's certificate"],
)
def test_a_refused_handshake_says_at_once_what_to_check(
    authority: trustme.CA, tmp_path: Path, host: str, trusts_it: bool, said: str
):
    """kafka-python alone tries until its time is up, then says that it timed out."""
    (authority if trusts_it else trustme.CA()).cert_pem.write_to_path(tmp_path / "ca.pem")
    security = SecuritySettings(protocol="SSL", ca_file=tmp_path / "ca.pem")
    with tls_port(authority) as address:
        servers = address.replace("127.0.0.1", host)
        kafka = KafkaSettings(bootstrap_servers=servers, connect_timeout_seconds=600, security=security)
        with pytest.raises(AccessRefusedError, match=f"^no access to {servers}: .*{said}"):
            Connection(kafka, 5)


def test_a_port_that_hangs_up_when_tls_begins_is_told_from_one_where_nobody_is(authority: trustme.CA, tmp_path: Path):
    """Brokers tell after the handshake that they want a certificate (TLS 1.3), and may hang up before we hear it."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    security = SecuritySettings(protocol="SSL", ca_file=tmp_path / "ca.pem")
    with tls_port(authority, ssl.CERT_REQUIRED) as address:
        kafka = KafkaSettings(bootstrap_servers=address, connect_timeout_seconds=2, security=security)
        with pytest.raises(RemedyError, match=r": check kafka\.security\.(protocol and )?certificate_file"):
            Connection(kafka, 5)


def hung_up_on(last_words: bytes) -> KafkaTCPTransport:
    """What kafka-python reads from a broker that said this and hung up before anybody looked."""
    ours, brokers = socket.socketpair()
    ours.setblocking(False)
    brokers.sendall(last_words)
    brokers.close()
    return KafkaTCPTransport(None, ours)


def test_last_words_are_handed_over_before_the_end_of_the_connection():
    """kafka-python 3.0 gives both at once, and then drops the words: a refusal of credentials among them."""
    with closing(hung_up_on(b"refused")._sock) as socket_of_library:
        words, end = KafkaTCPTransport(None, socket_of_library)._sock_recv()
        assert (words, type(end)) == (b"refused", KafkaConnectionError), "mended there: ours can go"
    transport = hung_up_on(b"refused")
    with closing(transport._sock):
        assert _bytes_before_end(transport._sock_recv) == (b"refused", None)
        words, end = _bytes_before_end(transport._sock_recv)
        assert (words, type(end)) == (b"", KafkaConnectionError)


@pytest.mark.slow
def test_many_questions_are_answered_each_at_its_place_and_a_missing_broker_spoils_only_its_own(broker: EmbeddedBroker):
    """The client refuses more than five requests under way on a connection: the rest must wait, not fail."""
    with closing(Connection(KafkaSettings(bootstrap_servers=broker.bootstrap_servers), 15)) as connection:
        [broker_id] = connection.broker_ids()
        versions = [version % 6 for version in range(20)]
        questions = [(broker_id, ListGroupsRequest(max_version=version)) for version in versions]
        *answers, missing = connection.ask_each([*questions, (broker_id + 1, ListGroupsRequest())])
    assert isinstance(missing, UnknownBrokerIdError)
    assert not any(isinstance(answer, KafkaError) for answer in answers)
    assert [answer.API_VERSION for answer in answers] == versions
