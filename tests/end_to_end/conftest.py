"""A real broker for the end-to-end tests, and groups of real consumers on it."""

from __future__ import annotations

import base64
import ssl
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import bcrypt
import pytest
import trustme
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as LibrdkafkaTopicPartition
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from assignors.coordinator import coordinator_partition
from streaming.demo.load import DemoLoad
from streaming.embedded import EmbeddedBroker
from tests.conftest import group_of
from tests.end_to_end.monitor_process import STARTED, Access, MonitorProcess
from tests.end_to_end.what_kafka_says import WhatKafkaSays

OFFSETS_TOPIC_PARTITIONS = 4

# Members of the newer protocols are told by the broker how often to beat; at its 5 s a rebalance would take 10 s.
_QUICK_HEARTBEATS = {
    f"group.{group_type}.{bound}heartbeat.interval.ms": "300"
    for group_type in ("consumer", "share", "streams")
    for bound in ("", "min.")
} | {"group.streams.initial.rebalance.delay.ms": "100"}

QUICK_BROKER = {"offsets.topic.num.partitions": str(OFFSETS_TOPIC_PARTITIONS), **_QUICK_HEARTBEATS}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """One broker for all tests of this folder; each test has groups and topics of its own names."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), properties=QUICK_BROKER) as running:
        yield running


_SHARED = ExitStack()
"""What several files share."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End it after the last test of these files: what goes on beside other tests takes their time."""
    if nextitem is None or group_of(nextitem.nodeid) != group_of(item.nodeid):
        _SHARED.close()


STUCK_AFTER_SECONDS = 8
"""How long the shared monitor lets a condition last before it says so. Five minutes by default: too long to wait."""


@pytest.fixture(scope="session")
def shared_monitor(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> MonitorProcess:
    """One monitor of that broker, soon ready, for tests that neither stop it nor want other settings.

    One process runs all of them (`SHARING`). The port has a certificate and wants a password.
    """
    folder = tmp_path_factory.mktemp("shared")
    authority, users = trustme.CA(), folder / "users"
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    users.write_bytes(b"ops:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(4)))
    for file in folder.iterdir():
        file.chmod(0o600)
    settings = {
        "EVALUATION__STUCK_AFTER_SECONDS": str(STUCK_AFTER_SECONDS),
        "METRICS__TLS_CERTIFICATE_FILE": str(folder / "cert.pem"),
        "METRICS__TLS_KEY_FILE": str(folder / "key.pem"),
        "METRICS__BASIC_AUTH_USERS_FILE": str(users),
    }
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    access = Access(trusting, {"Authorization": "Basic " + base64.b64encode(b"ops:secret").decode()})
    monitor = MonitorProcess(broker.bootstrap_servers, folder / "monitor", settings, access=access)
    _SHARED.callback(monitor.stop)
    return monitor.start()


@dataclass(frozen=True)
class Demo:
    """The demo's groups on a broker, and a monitor that is soon ready."""

    broker: EmbeddedBroker
    monitor: MonitorProcess


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """A broker of its own: on the tests' common one there are groups that are meant to be broken."""
    settings = {
        "KAFKA__CLUSTER": "demo",
        "METRICS__GRANULARITY": "member",  # else who owns what is not shown
        "EVALUATION__FLAP_THRESHOLD": "2",  # a member that comes and goes is called flapping a minute sooner
    }
    folder = tmp_path_factory.mktemp("demo")
    broker = _SHARED.enter_context(EmbeddedBroker(folder / "broker", properties=QUICK_BROKER))
    monitor = MonitorProcess(broker.bootstrap_servers, folder / "monitor", settings).start()
    _SHARED.callback(monitor.stop)
    _SHARED.enter_context(DemoLoad(broker.bootstrap_servers))
    return Demo(broker, monitor)


@dataclass(frozen=True)
class LostBroker:
    """A broker that goes away, or loses its log, and a monitor that looks on."""

    broker: EmbeddedBroker
    monitor: MonitorProcess


HOSTILE_PARTITION = 0
"""Of `__consumer_offsets` of the lost broker: a coordinator cannot load a partition with hostile records."""


@pytest.fixture(scope="session")
def lost_broker(tmp_path_factory: pytest.TempPathFactory) -> LostBroker:
    """For tests after which a broker is not what it was."""
    folder = tmp_path_factory.mktemp("lost")
    broker = _SHARED.enter_context(EmbeddedBroker(folder / "broker", properties=QUICK_BROKER))
    monitor = MonitorProcess(broker.bootstrap_servers, folder / "monitor").start()
    _SHARED.callback(monitor.stop)
    return LostBroker(broker, monitor)


def calm_group(name: str, partitions: int = OFFSETS_TOPIC_PARTITIONS, from_partition: int = 0) -> str:
    """The id of a group whose coordinator has no hostile record to load.

    If the offsets topic grows to `partitions`, the group belongs in `from_partition` or in a later one.
    """
    candidates = (f"{name}-{number}" for number in range(1_000))
    return next(
        one
        for one in candidates
        if coordinator_partition(one, OFFSETS_TOPIC_PARTITIONS) != HOSTILE_PARTITION
        and coordinator_partition(one, partitions) >= max(from_partition, HOSTILE_PARTITION + 1)
    )


@pytest.fixture(autouse=True)
def _no_monitor_outlives_its_test() -> Iterator[None]:
    """End what a failed test has left running, but those that several tests share: they were there before."""
    before = {id(monitor) for monitor in STARTED}
    yield
    for monitor in STARTED:
        if id(monitor) not in before:
            monitor.kill()


@pytest.fixture
def kafka_says(broker: EmbeddedBroker) -> Iterator[WhatKafkaSays]:
    """Kafka's own word."""
    asked = WhatKafkaSays(broker.bootstrap_servers)
    yield asked
    asked.close()


@pytest.fixture
def name() -> str:
    """A name no other test uses."""
    return f"t{uuid.uuid4().hex[:8]}"


class Group:
    """Members of one consumer group, each a real consumer in a thread that polls and commits until it leaves."""

    def __init__(self, bootstrap_servers: str, group_id: str, strategy: str = "range") -> None:
        self._bootstrap_servers = bootstrap_servers
        self.group_id = group_id
        self._strategy = strategy
        self._members: list[tuple[threading.Thread, threading.Event]] = []

    def join(self, topics: Sequence[str], instance_id: str | None = None) -> None:
        """Let one more member join."""
        leave = threading.Event()
        thread = threading.Thread(target=self._consume, args=(tuple(topics), instance_id, leave), daemon=True)
        thread.start()
        self._members.append((thread, leave))

    def leave(self) -> None:
        """Let the member that joined first leave."""
        thread, leave = self._members.pop(0)
        leave.set()
        thread.join(30)

    def leave_all(self) -> None:
        """Let every member leave."""
        for _, leave in self._members:
            leave.set()
        for thread, _ in self._members:
            thread.join(30)
        self._members.clear()

    def _consume(self, topics: tuple[str, ...], instance_id: str | None, leave: threading.Event) -> None:
        static = {"group.instance.id": instance_id} if instance_id else {}
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "group.id": self.group_id,
                "client.id": f"{self.group_id}-client",
                "partition.assignment.strategy": self._strategy,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 300,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
                **static,
            }
        )
        consumer.subscribe(list(topics))
        while not leave.is_set():
            consumer.poll(0.1)
        consumer.close()


def create_topics(broker: EmbeddedBroker, partitions_by_topic: dict[str, int]) -> None:
    """Create topics and put ten records into each partition."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics([NewTopic(topic, partitions, 1) for topic, partitions in partitions_by_topic.items()])
    admin.close()
    produce(broker, partitions_by_topic, records=10)


def produce(broker: EmbeddedBroker, partitions_by_topic: dict[str, int], records: int) -> None:
    """Put so many records into each partition."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for topic, partitions in partitions_by_topic.items():
        for partition in range(partitions):
            for number in range(records):
                producer.send(topic, value=b"%d" % number, partition=partition)
    producer.flush()
    producer.close()


def commit(broker: EmbeddedBroker, group_id: str, topic: str, offset: int) -> None:
    """Commit partition 0 as a member did before it went, through the coordinator."""
    with closing(Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group_id})) as consumer:
        consumer.commit(offsets=[LibrdkafkaTopicPartition(topic, 0, offset)], asynchronous=False)


def is_in_transaction(producer: Producer, offsets: list[LibrdkafkaTopicPartition], committing: Consumer) -> bool:
    """Begin a transaction with offsets; False, and none begun, where the coordinator is not there just now.

    A busy machine's broker can lose its own session for a moment. librdkafka then either says "try again" or wants the
    whole transaction aborted.
    """
    producer.begin_transaction()
    try:
        producer.send_offsets_to_transaction(offsets, committing.consumer_group_metadata())
    except KafkaException as refused:
        if not (refused.args[0].retriable() or refused.args[0].txn_requires_abort()):
            raise
        producer.abort_transaction()
        return False
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a monitor keeps its checkpoint, tables and log."""
    return tmp_path / "monitor"
