"""A real broker for the end-to-end tests, and groups of real consumers on it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as LibrdkafkaTopicPartition
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from streaming.embedded import EmbeddedBroker
from tests.end_to_end.monitor_process import STARTED
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


@pytest.fixture(autouse=True)
def _no_monitor_outlives_its_test() -> Iterator[None]:
    """End what a failed test has left running; monitors of several tests were started before this one."""
    already = len(STARTED)
    yield
    for monitor in STARTED[already:]:
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
