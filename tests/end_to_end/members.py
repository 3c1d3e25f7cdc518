"""Members of groups, whatever client they use: each polls in a thread of its own until it is told to leave."""

from __future__ import annotations

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

RACK = "a-rack"
"""Where members of the clients that tell it say they are."""


@dataclass(frozen=True)
class Regex:
    """A subscription that the broker resolves (KIP-848)."""

    pattern: str


@dataclass(frozen=True)
class Joining:
    """Who joins what, in words that every client knows."""

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
        """The generation (classic) or epoch in which the client believes to be; None where it does not tell."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Leave the group; a static classic member only stops."""


OpenClient = Callable[[Joining], Consuming]


class Member:
    """One member, from construction until `leave`."""

    def __init__(self, open_client: OpenClient, joining: Joining) -> None:
        self.joining = joining
        self._open_client = open_client
        self._asked: queue.SimpleQueue[Future[int | None]] = queue.SimpleQueue()
        self._left = threading.Event()
        self._to_hold, self._holds = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._consume, name=joining.client_id, daemon=True)
        self._thread.start()

    def generation(self) -> int | None:
        """What its client says between two polls: a client answers only the thread that polls it."""
        answer: Future[int | None] = Future()
        self._asked.put(answer)
        return answer.result(30)

    def hold(self) -> None:
        """Let it poll no more, as when it works on one record for long; its client's own threads go on."""
        self._to_hold.set()
        assert self._holds.wait(30), f"{self.joining} does not stop polling"

    def go_on(self) -> None:
        """Let it poll again."""
        self._to_hold.clear()
        self._holds.clear()

    def tell_to_leave(self) -> None:
        """Let it leave without waiting for it."""
        self._left.set()

    def leave(self) -> None:
        """Let it leave; raises what its client raised."""
        self.tell_to_leave()
        self._thread.join(30)
        if self._failure is not None:
            raise AssertionError(f"{self.joining} failed") from self._failure
        assert not self._thread.is_alive(), f"{self.joining} does not leave"

    def _consume(self) -> None:
        try:
            client = self._open_client(self.joining)
            try:
                while not self._left.is_set():
                    if self._to_hold.is_set():
                        self._holds.set()
                        self._left.wait(0.1)
                        continue
                    client.poll()
                    while not self._asked.empty():
                        self._asked.get().set_result(client.generation())
            finally:
                client.close()
        except BaseException as failure:  # noqa: BLE001 - told by `leave`, in the test's own thread
            self._failure = failure


def librdkafka(bootstrap_servers: str, **configuration: str | int) -> OpenClient:
    """confluent-kafka's Consumer; the configuration's dots are written as underscores."""
    given = {name.replace("_", "."): value for name, value in configuration.items()}
    return lambda joining: _Librdkafka(bootstrap_servers, joining, given)


def librdkafka_classic(bootstrap_servers: str, strategy: str) -> OpenClient:
    """confluent-kafka's Consumer with one of librdkafka's own assignors, such as `range`."""
    return librdkafka(
        bootstrap_servers,
        partition_assignment_strategy=strategy,
        heartbeat_interval_ms=300,
        topic_metadata_refresh_interval_ms=1_000,
    )


def kafka_python(bootstrap_servers: str, *assignors: type[AbstractPartitionAssignor]) -> OpenClient:
    """kafka-python's KafkaConsumer with assignors, the first it likes best."""
    return lambda joining: _KafkaPython(bootstrap_servers, joining, assignors)


def rejoining_kafka_python(bootstrap_servers: str, assignor: type[AbstractPartitionAssignor]) -> OpenClient:
    """The same, but it joins anew with every second: if it leads, all others must, too."""
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
            auto_commit_interval_ms=300,
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
