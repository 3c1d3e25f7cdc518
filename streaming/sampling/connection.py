"""The connection to a cluster. All requests to the brokers of the cluster use this connection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from streaming.config.security import SecuritySettings, read_secrets
from streaming.config.settings import KafkaSettings
from streaming.errors import STAYS, RemedyError
from streaming.security.python_client import client_arguments, refusal, suspicion

Message = Any
"""A message class of kafka-python, or a message. The library has no type annotations for message classes."""

BrokerRequest = tuple[int | None, Message]
"""The id of a broker, and the request for this broker. If the id is None, the request can go to any broker."""


class BrokerUnreachableError(RemedyError):
    """Error: no broker answered in time."""


class AccessRefusedError(RemedyError):
    """Error: a broker answered, but the broker or the client refused the connection."""


class DifferentClusterError(RemedyError):
    """Error: the brokers belong to a different Kafka cluster than the cluster whose data the checkpoint contains."""

    exit_code = STAYS


@dataclass
class _BootstrapState:
    """The state of the connection until the first broker has answered."""

    security: SecuritySettings
    client: KafkaNetClient | None = None
    failure: BaseException | None = None
    is_over: bool = False

    def refusal(self) -> str | None:
        return None if self.is_over or self.failure is None else refusal(self.failure, self.security)


class _ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]
    """The connection manager of kafka-python, with two changes.

    1. During the start, the manager fails immediately if a retry cannot succeed, for example after refused credentials
       or an unknown certificate. The unchanged library (kafka-python 3.0) retries until the timeout, and then reports
       only a timeout. After the start, the manager retries, because a broker that restarts possibly does not know its
       users yet.
    2. The manager reads the last message that a broker sends before the broker closes the connection, because one
       packet can contain both a refusal of credentials and the end of the connection.
    """

    def __init__(self, net: NetworkSelector, start: _BootstrapState, **configs: Any) -> None:  # noqa: ANN401 - the library's signature
        self._start = start
        super().__init__(net, **configs)

    def get_connection(self, node_id: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - the library's signature
        if (refused := self._start.refusal()) is not None:
            raise AccessRefusedError(refused)
        connection = super().get_connection(node_id, *args, **options)
        connection.init_future.add_errback(self._note)
        return connection

    async def _build_transport(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - the library's signature
        transport = await super()._build_transport(*args, **options)
        transport._sock_recv = partial(_bytes_before_end, transport._sock_recv)  # noqa: SLF001 - it has no public method
        return transport

    def _note(self, error: BaseException) -> None:
        self._start.failure = error


def _bytes_before_end(receive: Callable[[], tuple[bytes, KafkaError | None]]) -> tuple[bytes, KafkaError | None]:
    """If a read returns bytes together with an error, return only the bytes.

    The next read of the socket returns the error again. Without this function, kafka-python 3.0 loses the bytes.
    """
    content, error = receive()
    return content, None if content else error


class Connection:
    """A KafkaAdminClient that can send any Kafka request. The caller selects the broker for each request.

    Several threads can use this object, because the client reads and writes in a separate thread.
    """

    _expected_cluster_id: str | None = None

    def __init__(self, kafka: KafkaSettings, request_timeout_seconds: float) -> None:
        """Connect. Raises BrokerUnreachableError after the timeout, or AccessRefusedError immediately."""
        self._kafka = kafka
        start = _BootstrapState(kafka.security)
        try:
            self.admin = KafkaAdminClient(
                bootstrap_servers=kafka.bootstrap_servers.split(","),
                client_id="kafka-rebalance-monitor",
                bootstrap_timeout_ms=int(kafka.connect_timeout_seconds * 1000),
                request_timeout_ms=int(request_timeout_seconds * 1000),
                kafka_client=partial(_client, start),
                **client_arguments(kafka.security, read_secrets(kafka.security)),
            )
        except AccessRefusedError as refused:
            raise AccessRefusedError(f"no access to {kafka.bootstrap_servers}: {refused}") from None
        except (KafkaError, OSError) as error:
            raise BrokerUnreachableError(
                f"no broker at {kafka.bootstrap_servers} answered within {kafka.connect_timeout_seconds:g} s"
                f" ({type(error).__name__}): {suspicion(start.failure, kafka.security)}"
            ) from None
        else:
            start.is_over = True
        finally:
            if not start.is_over and start.client is not None:
                start.client.close()  # ends its thread and closes its sockets
        # The client has no public method to send an arbitrary request to a chosen broker.
        self._manager = self.admin._manager  # noqa: SLF001

    def close(self) -> None:
        """Close the connection."""
        self.admin.close()

    def broker_ids(self) -> list[int]:
        """Return the sorted ids of all live brokers. Raises KafkaError or DifferentClusterError."""
        self._manager.run(self._manager.cluster.refresh_metadata)
        self.check_cluster()
        return list(self.broker_addresses())

    def broker_addresses(self) -> Mapping[int, str]:
        """For each broker id in the last metadata response, return the advertised address of the broker."""
        brokers = sorted(self._manager.cluster.brokers(), key=lambda broker: broker.node_id)
        return {broker.node_id: f"{broker.host}:{broker.port}" for broker in brokers}

    @property
    def cluster_id(self) -> str | None:
        """Kafka's id of the cluster, from the last metadata response. None if the brokers return no id."""
        return self._manager.cluster.cluster_id or None

    def expect_cluster(self, cluster_id: str | None) -> None:
        """Set the id of the only allowed cluster. None allows every cluster. Raises DifferentClusterError."""
        self._expected_cluster_id = cluster_id
        self.check_cluster()

    @property
    def is_different_cluster(self) -> bool:
        """True if the last metadata response is not from the expected cluster. An unknown id is not compared."""
        return None not in {self._expected_cluster_id, self.cluster_id} and self.cluster_id != self._expected_cluster_id

    def check_cluster(self) -> None:
        """Raise DifferentClusterError if the last metadata response is not from the expected cluster."""
        if self.is_different_cluster:
            raise DifferentClusterError(
                f"the brokers at {self._kafka.bootstrap_servers} belong to a different Kafka cluster than the"
                f" checkpoint of {self._kafka.cluster!r}. Kafka's cluster id is {self.cluster_id} and was"
                f" {self._expected_cluster_id}: correct kafka.bootstrap_servers. If the old cluster was replaced, set"
                " kafka.cluster to a new name and run `rebalance-monitor rebuild`"
            )

    @property
    def kafka_version(self) -> str:
        """The version that kafka-python detects, for example "4.1". The brokers can be newer than this version."""
        return ".".join(map(str, self._manager.broker_version))

    def ask_each(self, requests: Sequence[BrokerRequest]) -> list[Message | KafkaError]:
        """Return the response or the error of each request, in the order of the requests.

        Requests to different brokers run in parallel. Each broker receives its requests one after the other, because
        the client limits the number of open requests.
        """
        answers: list[Message | KafkaError] = [None] * len(requests)
        self._manager.run(self._ask_brokers, requests, answers)
        return answers

    async def _ask_brokers(self, requests: Sequence[BrokerRequest], answers: list[Message | KafkaError]) -> None:
        places: dict[int | None, list[int]] = defaultdict(list)
        for place, (broker_id, _) in enumerate(requests):
            places[broker_id].append(place)
        under_way = [
            self._manager.call_soon(self._ask_in_sequence, requests, of_broker, answers)
            for of_broker in places.values()
        ]
        for one_broker in under_way:
            await one_broker

    async def _ask_in_sequence(
        self, requests: Sequence[BrokerRequest], places: Sequence[int], answers: list[Message | KafkaError]
    ) -> None:
        for place in places:
            broker_id, request = requests[place]
            try:
                answers[place] = await self._manager.send(request, node_id=broker_id)
            except KafkaError as error:
                answers[place] = error


def _client(start: _BootstrapState, **configs: Any) -> KafkaNetClient:  # noqa: ANN401 - the library's signature
    net = NetworkSelector(**configs)
    start.client = KafkaNetClient(net=net, manager=_ConnectionManager(net, start, **configs), **configs)
    return start.client
