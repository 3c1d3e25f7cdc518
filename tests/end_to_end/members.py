"""Run members of groups with any client. Each member polls in its own thread until it must leave."""

from __future__ import annotations

import logging
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from confluent_kafka import Consumer
from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from py4j.protocol import Py4JJavaError

_logger = logging.getLogger(__name__)

RACK = "a-rack"
"""Rack of the members whose client sends a rack."""


@dataclass(frozen=True)
class Regex:
    """A subscription that the broker resolves (KIP-848)."""

    pattern: str


@dataclass(frozen=True)
class Joining:
    """The group, client id, topics and instance id of a joining member."""

    group_id: str
    client_id: str
    topics: Sequence[str] | Regex
    instance_id: str | None = None


class Consuming(ABC):
    """A client that has subscribed."""

    @abstractmethod
    def poll(self) -> None:
        """Consume and commit for a moment."""

    def generation(self) -> int | None:
        """Return the client's own generation (classic) or epoch; None if the client does not show it."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Leave the group. A static classic member only stops."""


OpenClient = Callable[[Joining], Consuming]


class Member:
    """One member. It is in the group from construction until `leave`."""

    def __init__(self, open_client: OpenClient, joining: Joining) -> None:
        self.joining = joining
        self._open_client = open_client
        self._generation_requests: queue.SimpleQueue[Future[int | None]] = queue.SimpleQueue()
        self._left = threading.Event()
        self._to_hold, self._holds = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._consume, name=joining.client_id, daemon=True)
        self._thread.start()

    def generation(self) -> int | None:
        """Return the client's generation. The polling thread asks the client between two polls."""
        answer: Future[int | None] = Future()
        self._generation_requests.put(answer)
        return answer.result(30)

    def hold(self) -> None:
        """Stop polling, as during long work on one record. The client's own threads continue."""
        self._to_hold.set()
        assert self._holds.wait(30), f"{self.joining} does not stop polling"

    def go_on(self) -> None:
        """Poll again."""
        self._to_hold.clear()
        self._holds.clear()

    def start_leaving(self) -> None:
        """Let the member leave without waiting for it."""
        self._left.set()

    def leave(self) -> None:
        """Let the member leave and wait for it. Raise AssertionError if its client failed."""
        self.start_leaving()
        self._thread.join(30)
        if self._failure is not None:
            raise AssertionError(f"{self.joining} failed: {self._failure}") from self._failure
        assert not self._thread.is_alive(), f"{self.joining} does not leave"

    def _consume(self) -> None:
        """Poll until the member must leave. A Java client that fails is opened again once, as an application restarts.

        In one of many runs, Kafka's Java client 4.2 failed right after it had joined with the consumer protocol.
        """
        for is_last in (False, True):
            try:
                self._poll_until_left()
            except BaseException as failure:  # raised by `leave` in the test's thread
                if is_last or self._left.is_set() or not isinstance(failure, Py4JJavaError):
                    self._failure = failure
                    return
                _logger.warning("%s failed and starts again", self.joining, exc_info=True)
            if self._left.is_set():
                return

    def _poll_until_left(self) -> None:
        client = self._open_client(self.joining)
        try:
            while not self._left.is_set():
                if self._to_hold.is_set():
                    self._holds.set()
                    self._left.wait(0.1)
                    continue
                client.poll()
                while not self._generation_requests.empty():
                    self._generation_requests.get().set_result(client.generation())
        finally:
            client.close()


def librdkafka(bootstrap_servers: str, **configuration: str | int) -> OpenClient:
    """Open confluent-kafka's Consumer. Names of settings have underscores instead of dots."""
    given = {name.replace("_", "."): value for name, value in configuration.items()}
    return lambda joining: _Librdkafka(bootstrap_servers, joining, given)


def librdkafka_classic(bootstrap_servers: str, strategy: str) -> OpenClient:
    """Open confluent-kafka's Consumer with one of librdkafka's assignors, for example `range`."""
    return librdkafka(
        bootstrap_servers,
        partition_assignment_strategy=strategy,
        heartbeat_interval_ms=300,
        topic_metadata_refresh_interval_ms=1_000,
    )


def kafka_python(bootstrap_servers: str, *assignors: type[AbstractPartitionAssignor]) -> OpenClient:
    """Open kafka-python's KafkaConsumer with assignors in order of preference."""
    return lambda joining: _KafkaPython(bootstrap_servers, joining, assignors)


def rejoining_kafka_python(bootstrap_servers: str, assignor: type[AbstractPartitionAssignor]) -> OpenClient:
    """Open kafka-python's KafkaConsumer that rejoins every second. If it leads the group, all members must rejoin."""
    return lambda joining: _Rejoining(bootstrap_servers, joining, (assignor,))


class _Librdkafka(Consuming):
    def __init__(self, bootstrap_servers: str, joining: Joining, configuration: dict[str, str | int]) -> None:
        static = {} if joining.instance_id is None else {"group.instance.id": joining.instance_id}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": joining.group_id,
                "client.id": joining.client_id,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 300,
                "client.rack": RACK,
                **static,
                **configuration,
            }
        )
        regex = isinstance(joining.topics, Regex)
        self._consumer.subscribe([joining.topics.pattern] if regex else list(joining.topics))

    def poll(self) -> None:
        self._consumer.poll(0.3)

    def close(self) -> None:
        self._consumer.close()


class _KafkaPython(Consuming):
    def __init__(
        self, bootstrap_servers: str, joining: Joining, assignors: Sequence[type[AbstractPartitionAssignor]]
    ) -> None:
        assert not isinstance(joining.topics, Regex)
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            group_id=joining.group_id,
            group_instance_id=joining.instance_id,
            client_id=joining.client_id,
            partition_assignment_strategy=list(assignors),
            auto_offset_reset="earliest",
            auto_commit_interval_ms=1_000,  # it also commits offsets that have not changed
            heartbeat_interval_ms=300,
            metrics_enabled=False,
        )
        self._consumer.subscribe(list(joining.topics))

    def poll(self) -> None:
        self._consumer.poll(timeout_ms=300)

    def generation(self) -> int | None:
        return int(self._consumer.group_metadata().generation_id)

    def close(self) -> None:
        self._consumer.close()


class _Rejoining(_KafkaPython):
    _EVERY_SECONDS = 1.0
    _joined_seconds = 0.0

    def poll(self) -> None:
        if time.monotonic() - self._joined_seconds > self._EVERY_SECONDS:
            self._joined_seconds = time.monotonic()
            self._consumer._coordinator.request_rejoin()  # kafka-python has no enforceRebalance
        super().poll()
