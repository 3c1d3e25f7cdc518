"""The one connection to the cluster: whoever asks the brokers anything asks over this."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
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
from streaming.errors import RemedyError
from streaming.security.python_client import client_arguments, refusal, suspicion

Message = Any
"""A class or an object of kafka-python's protocol; it has types for none of them."""

Question = tuple[int | None, Message]
"""A request and the id of the broker it is for; None for any broker."""


Received = tuple[bytes, KafkaError | None]
"""What a socket had to give, and how the connection ended, if it did."""


class BrokerUnreachableError(RemedyError):
    """No broker answered in time."""


class AccessRefusedError(RemedyError):
    """A broker answered, and it or we refused the other."""


@dataclass
class _Start:
    """How it goes until the first broker has answered."""

    security: SecuritySettings
    client: KafkaNetClient | None = None
    failure: BaseException | None = None
    is_over: bool = False

    def give_up(self) -> None:
        """End what the client started: it would leave a thread and its sockets behind at every start that failed."""
        if self.client is not None:
            self.client.close()

    def refusal(self) -> str | None:
        return None if self.is_over or self.failure is None else refusal(self.failure, self.security)


class _Connections(KafkaConnectionManager):  # type: ignore[misc]
    """The client's own, that gives up while it starts on what no second try can change.

    kafka-python 3.0 tries refused credentials and unknown certificates again until its time is up, and then says that
    it timed out. Once it has started, trying again is right: a broker that comes back may not know its users yet.

    And that hears a broker's last words: brokers say that they refuse credentials and hang up, both in one packet.
    """

    def __init__(self, net: NetworkSelector, start: _Start, **configs: Any) -> None:  # noqa: ANN401 - the library's own
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
        transport._sock_recv = partial(_received, transport._sock_recv)  # noqa: SLF001 - it has no public way in
        return transport

    def _note(self, error: BaseException) -> None:
        self._start.failure = error


def _received(receive: Callable[[], Received]) -> Received:
    """What was read, and only then the end of the connection: kafka-python 3.0 drops what it reads together with it.

    The end is still there at the next look.
    """
    content, error = receive()
    return content, None if content else error


class Connection:
    """KafkaAdminClient, and a way to put requests to chosen brokers that it has no method for.

    Safe for several threads: the client does its reading and writing on a thread of its own.
    """

    def __init__(self, kafka: KafkaSettings, request_timeout_seconds: float) -> None:
        """Connect. Raises BrokerUnreachableError if no broker answers in time, AccessRefusedError at once."""
        start = _Start(kafka.security)
        try:
            self._connect(kafka, request_timeout_seconds, start)
        except BaseException:
            start.give_up()
            raise

    def _connect(self, kafka: KafkaSettings, request_timeout_seconds: float, start: _Start) -> None:
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
        # The client has no public way to send a request of one's own to a broker of one's choice.
        self._manager = self.admin._manager  # noqa: SLF001
        start.is_over = True

    def close(self) -> None:
        """Hang up."""
        self.admin.close()

    def broker_ids(self) -> list[int]:
        """Every live broker, asked anew. Raises KafkaError when nobody answers."""
        self._manager.run(self._manager.cluster.refresh_metadata)
        return sorted(broker.node_id for broker in self._manager.cluster.brokers())

    def ask_each(self, questions: Sequence[Question]) -> list[Message | KafkaError]:
        """The answer to each question at its place: a response, or the error that there was instead.

        Brokers are asked at the same time, each of them one question after another: more under way on one connection
        than the client allows would be refused, not kept waiting.
        """
        answers: list[Message | KafkaError] = [None] * len(questions)
        self._manager.run(self._ask_brokers, questions, answers)
        return answers

    async def _ask_brokers(self, questions: Sequence[Question], answers: list[Message | KafkaError]) -> None:
        places: dict[int | None, list[int]] = defaultdict(list)
        for place, (broker_id, _) in enumerate(questions):
            places[broker_id].append(place)
        under_way = [
            self._manager.call_soon(self._ask_one_after_another, questions, of_broker, answers)
            for of_broker in places.values()
        ]
        for one_broker in under_way:
            await one_broker

    async def _ask_one_after_another(
        self, questions: Sequence[Question], places: Sequence[int], answers: list[Message | KafkaError]
    ) -> None:
        for place in places:
            broker_id, request = questions[place]
            try:
                answers[place] = await self._manager.send(request, node_id=broker_id)
            except KafkaError as error:
                answers[place] = error


def _client(start: _Start, **configs: Any) -> KafkaNetClient:  # noqa: ANN401 - the library's own
    net = NetworkSelector(**configs)
    start.client = KafkaNetClient(net=net, manager=_Connections(net, start, **configs), **configs)
    return start.client
