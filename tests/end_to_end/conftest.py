"""Fixtures of the end-to-end tests: real brokers, real monitors, and groups of real consumers."""

from __future__ import annotations

import base64
import json
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
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import STARTED, Access, MonitorProcess

OFFSETS_TOPIC_PARTITIONS = 4

# In the newer protocols the broker sets the heartbeat interval. With the default of 5 s, a rebalance takes 10 s.
_QUICK_HEARTBEATS = {
    f"group.{group_type}.{bound}heartbeat.interval.ms": "300"
    for group_type in ("consumer", "share", "streams")
    for bound in ("", "min.")
} | {"group.streams.initial.rebalance.delay.ms": "100"}

QUICK_BROKER = {"offsets.topic.num.partitions": str(OFFSETS_TOPIC_PARTITIONS), **_QUICK_HEARTBEATS}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """Run one broker for all tests of this folder. Each test uses its own names of groups and topics."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), properties=QUICK_BROKER) as running:
        yield running
        _SHARED.close()  # a monitor needs 17 s to stop after its broker is gone


_SHARED = ExitStack()
"""Monitors and brokers that several test files use."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the shared processes after the last test of these files, so that they do not slow down other tests."""
    if nextitem is None or group_of(nextitem.nodeid) != group_of(item.nodeid):
        _SHARED.close()


STUCK_AFTER_SECONDS = 8
"""Seconds that a condition must last before the shared monitor shows it. The default of five minutes is too long."""


@pytest.fixture(scope="session")
def shared_monitor(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> MonitorProcess:
    """Start a monitor of that broker, for tests that neither stop it nor need other settings.

    One test process runs all of these tests (`SHARING`). The port uses TLS and requires a password.
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


FEW_BATCHES = {"SOURCE__TRIGGER_SECONDS": "5"}
"""Settings for tests that wait for minutes. A batch costs CPU time, and 3 seconds more do not matter there."""

DEMO_GROUP_ENTRIES = [
    {"match": "demo-range|demo-slow", "team": "payments"},
    {"match": "demo-slow", "max_lag_seconds": 5, "critical_lag_seconds": 10},
]
"""Entries `[[groups]]` of the demo's monitor. The group `demo-slow` falls behind for ever."""


@dataclass(frozen=True)
class Demo:
    """The demo's groups on a broker, and a monitor that has been started."""

    broker: EmbeddedBroker
    monitor: MonitorProcess


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Run the demo on its own broker, because the common broker of the tests has groups with problems."""
    settings = {
        "KAFKA__CLUSTER": "demo",
        **FEW_BATCHES,
        "METRICS__GRANULARITY": "member",  # otherwise the owner of a partition is not shown
        "EVALUATION__FLAP_THRESHOLD": "2",  # detects a flapping member one minute earlier
        "GROUPS": json.dumps(DEMO_GROUP_ENTRIES),
    }
    folder = tmp_path_factory.mktemp("demo")
    broker = _SHARED.enter_context(EmbeddedBroker(folder / "broker", properties=QUICK_BROKER))
    monitor = MonitorProcess(broker.bootstrap_servers, folder / "monitor", settings).start()
    _SHARED.callback(monitor.stop)
    _SHARED.enter_context(DemoLoad(broker.bootstrap_servers))
    return Demo(broker, monitor)


@dataclass(frozen=True)
class LostBroker:
    """A broker that tests kill or whose log they delete, and a monitor of it."""

    broker: EmbeddedBroker
    monitor: MonitorProcess


HOSTILE_PARTITION = 0
"""Partition of `__consumer_offsets` that gets undecodable records. The coordinator cannot load it afterwards."""


@pytest.fixture(scope="session")
def lost_broker(tmp_path_factory: pytest.TempPathFactory) -> LostBroker:
    """Run a broker and a monitor for tests that damage the broker."""
    folder = tmp_path_factory.mktemp("lost")
    broker = _SHARED.enter_context(EmbeddedBroker(folder / "broker", properties=QUICK_BROKER))
    monitor = MonitorProcess(broker.bootstrap_servers, folder / "monitor").start()
    _SHARED.callback(monitor.stop)
    return LostBroker(broker, monitor)


def calm_group(name: str, partitions: int = OFFSETS_TOPIC_PARTITIONS, from_partition: int = 0) -> str:
    """Return the id of a group whose partition of `__consumer_offsets` gets no undecodable records.

    If the offsets topic grows to `partitions`, the group belongs in `from_partition` or in a later one.
    """
    candidates = (f"{name}-{number}" for number in range(1_000))
    return next(
        group_id
        for group_id in candidates
        if coordinator_partition(group_id, OFFSETS_TOPIC_PARTITIONS) != HOSTILE_PARTITION
        and coordinator_partition(group_id, partitions) >= max(from_partition, HOSTILE_PARTITION + 1)
    )


@pytest.fixture(autouse=True)
def _no_monitor_outlives_its_test() -> Iterator[None]:
    """Kill the monitors that a failed test left running. Shared monitors were started before the test and stay."""
    before = {id(monitor) for monitor in STARTED}
    yield
    for monitor in STARTED:
        if id(monitor) not in before:
            monitor.kill()


@pytest.fixture
def kafka_reference(broker: EmbeddedBroker) -> Iterator[KafkaReference]:
    """Return Kafka's own description of groups and offsets, to compare with."""
    reference = KafkaReference(broker.bootstrap_servers)
    yield reference
    reference.close()


@pytest.fixture
def name() -> str:
    """Return a name that no other test uses."""
    return f"t{uuid.uuid4().hex[:8]}"


class Group:
    """The members of one consumer group. Each is a real consumer in a thread that polls and commits until it leaves."""

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
    """Create topics and write ten records into each partition."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics([NewTopic(topic, partitions, 1) for topic, partitions in partitions_by_topic.items()])
    admin.close()
    produce(broker, partitions_by_topic, records=10)


def produce(broker: EmbeddedBroker, partitions_by_topic: dict[str, int], records: int) -> None:
    """Write this number of records into each partition."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for topic, partitions in partitions_by_topic.items():
        for partition in range(partitions):
            for number in range(records):
                producer.send(topic, value=b"%d" % number, partition=partition)
    producer.flush()
    producer.close()


def commit(broker: EmbeddedBroker, group_id: str, topic: str, offset: int) -> None:
    """Commit an offset of partition 0 through the coordinator, without a member."""
    with closing(Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group_id})) as consumer:
        consumer.commit(offsets=[LibrdkafkaTopicPartition(topic, 0, offset)], asynchronous=False)


def is_in_transaction(producer: Producer, offsets: list[LibrdkafkaTopicPartition], committing: Consumer) -> bool:
    """Begin a transaction with offsets. Return False, without a transaction, if the coordinator is not available.

    On a busy machine the broker can lose its own session for a moment. librdkafka then reports either a retriable
    error or an error that requires aborting the transaction.
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
    """Return the folder for a monitor's checkpoint, tables and log."""
    return tmp_path / "monitor"
