"""Test the embedded broker: it keeps its topics, names the reason if it cannot start, and ends with its parent."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic

from streaming.embedded import BrokerError, EmbeddedBroker

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

_PARENT = """
import sys, time
from pathlib import Path
from streaming.embedded import EmbeddedBroker
print(EmbeddedBroker(Path(sys.argv[1])).start().pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """Run a broker that a test may stop. Its session is short, so that a killed broker can restart soon."""
    properties = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
    with EmbeddedBroker(tmp_path / "broker", properties=properties) as running:
        yield running


def test_topics_survive_a_stop_and_a_kill(own_broker: EmbeddedBroker):
    """Tests that stop a broker need it again at the same address with its topics."""
    address = own_broker.bootstrap_servers
    _write(own_broker, "kept", b"before")
    own_broker.stop()
    assert own_broker.pid is None
    own_broker.start()
    own_broker.kill()
    own_broker.start()
    assert own_broker.bootstrap_servers == address
    assert _read_one(own_broker, "kept") == b"before"


def test_topics_survive_a_change_of_ports(tmp_path: Path):
    """A restarted `rebalance-monitor broker --folder` gets different free ports."""
    with EmbeddedBroker(tmp_path) as first:
        _write(first, "kept", b"before")
    with EmbeddedBroker(tmp_path) as second:
        assert second.port != first.port
        assert _read_one(second, "kept") == b"before"


def test_a_metadata_request_does_not_create_a_topic(broker: EmbeddedBroker):
    """A monitor that samples a deleted topic must not create it again."""
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
        admin.describe_topics(["not-there"])
        assert "not-there" not in admin.list_topics()


def test_the_offsets_topic_has_the_configured_number_of_partitions(tmp_path: Path):
    with EmbeddedBroker(tmp_path, properties={"offsets.topic.num.partitions": "3"}) as small:
        _write(small, "read", b"record")
        assert _read_one(small, "read", group_id="a-reader") == b"record"
        with closing(KafkaAdminClient(bootstrap_servers=small.bootstrap_servers)) as admin:
            (described,) = admin.describe_topics(["__consumer_offsets"])
    assert len(described["partitions"]) == 3


def test_the_jvm_gets_the_options_that_kafkas_own_scripts_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The options of the caller come later and override them, because Java uses the last value of an option."""
    monkeypatch.setenv("KAFKA_JVM_PERFORMANCE_OPTS", "-Done=1 '-Dtwo=2 and 3'")
    with EmbeddedBroker(tmp_path / "broker", java_options=["-Done=4"]) as running:
        command_line = psutil.Process(running.pid).cmdline()
    assert [word for word in command_line if word.startswith(("-Done", "-Dtwo"))] == [
        "-Done=1",
        "-Dtwo=2 and 3",
        "-Done=4",
    ]


def test_a_taken_port_is_one_line_with_the_remedy(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(
            BrokerError, match=f"port {port} is in use: stop the process that listens there .* or choose a different"
        ):
            EmbeddedBroker(tmp_path, port=port).start()


def test_an_unknown_kafka_version_is_refused_with_the_known_versions(tmp_path: Path):
    with pytest.raises(BrokerError, match=r"^unknown Kafka version 3\.8\.0: choose one of 3\.7\.2, .*4\.2\.0, .*$"):
        EmbeddedBroker(tmp_path, kafka_version="3.8.0").start()
    assert list(tmp_path.iterdir()) == []


def test_the_error_for_an_invalid_property_is_kafkas_message(tmp_path: Path):
    wrong = EmbeddedBroker(tmp_path, properties={"offsets.topic.num.partitions": "many"})
    with pytest.raises(BrokerError, match=r"Invalid value many for configuration offsets\.topic"):
        wrong.start()


def test_the_error_of_a_failed_start_is_its_cause_and_not_the_first_log_line(tmp_path: Path):
    """The log's first error is "Fatal error during broker startup". The cause is the exception below it."""
    wrong = EmbeddedBroker(tmp_path, properties={"metric.reporters": "no.such.Reporter"})
    with pytest.raises(BrokerError) as error:
        wrong.start()
    assert str(error.value) == (
        f"the broker ended while starting: Class no.such.Reporter cannot be found (log: {tmp_path}/broker.log)"
    )
    assert wrong.pid is None


def test_a_second_broker_in_the_same_folder_is_refused_and_changes_nothing(own_broker: EmbeddedBroker):
    """Two brokers in one folder would damage each other's topics."""
    properties = (own_broker.folder / "server.properties").read_text()
    with pytest.raises(BrokerError, match=r"another broker runs in .*: stop it or choose a different folder"):
        EmbeddedBroker(own_broker.folder).start()
    assert (own_broker.folder / "server.properties").read_text() == properties
    assert own_broker.log_path.exists()


def test_a_folder_that_cannot_be_used_is_one_line():
    with pytest.raises(BrokerError, match="folder /proc/nowhere cannot be used"):
        EmbeddedBroker(Path("/proc/nowhere")).start()


def test_the_broker_ends_when_its_parent_is_killed(tmp_path: Path):
    """The parent can be the demo or a test run that was killed with SIGKILL."""
    command = [sys.executable, "-c", _PARENT, str(tmp_path / "broker")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        java = psutil.Process(int(parent.stdout.readline()))
        assert java.name() == "java"
        parent.kill()
    psutil.wait_procs([java], timeout=10)
    assert not java.is_running()


def _write(broker: EmbeddedBroker, topic: str, value: bytes) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap_servers)) as producer:
        producer.send(topic, value, partition=0).get(timeout=30)


def _read_one(broker: EmbeddedBroker, topic: str, group_id: str | None = None) -> bytes:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap_servers,
        group_id=group_id,
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )
    with closing(consumer):
        value: bytes = next(consumer).value
    return value
