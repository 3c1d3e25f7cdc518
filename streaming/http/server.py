"""The server behind the HTTP port: a slow client costs an open socket and a few KB, and probes are always answered.

1. One thread takes connections, makes TLS handshakes, reads requests and sends answers, and waits for no client doing
   it. Only a complete request gets a thread.
2. A request has `HEAD_SECONDS` to arrive, TLS handshake included, however busy its client looks. An answer is sent for
   `LONGEST_SECONDS` at most, and for `SILENCE_SECONDS` at most to a client that takes nothing of it.
3. At most `MOST_WAITING` connections are open whose request has not arrived. A new connection always gets in: if there
   are more, the address with the most of them loses its oldest.
4. At most `MOST_REQUESTS` complete requests are open, half of them from one address. One more is answered with 503.
   `MOST_ANSWERS` are made or sent at a time, half of them for one address.
5. Probes count for rule 3 only and have `MOST_PROBES` places of their own.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from weakref import WeakValueDictionary

from streaming.http.access import Certificate
from streaming.http.exchange import Application, Gateway, in_thread, path_of, plain_answer

HEAD_SECONDS = 10.0
SILENCE_SECONDS = 10.0
LONGEST_SECONDS = 60.0
MOST_WAITING = 192
MOST_REQUESTS = 64
MOST_ANSWERS = 16
MOST_PROBES = 4
MOST_HEAD_BYTES = 64 << 10

_BACKLOG = 128
_RETRY_SECONDS = 0.1
_PIECE_BYTES = 1 << 20

_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _Client:
    """One connection, from the moment it is taken."""

    connection: socket.socket
    host: str
    places: asyncio.Semaphore
    address: str
    task: asyncio.Task[None] | None = None
    writer: asyncio.StreamWriter | None = None
    has_request: bool = False

    def hang_up(self) -> None:
        """End it, whatever it waits for."""
        if self.task is not None:
            self.task.cancel()

    def close(self) -> None:
        """Give the socket back."""
        if self.writer is not None:
            self.writer.transport.abort()
        else:
            self.connection.close()

    @contextmanager
    def hung_up_after(self, seconds: float) -> Iterator[None]:
        """Hang up if the block takes longer."""
        deadline = asyncio.get_running_loop().call_later(seconds, self.hang_up)
        try:
            yield
        finally:
            deadline.cancel()


class Server:
    """Listens from the start; `serve_forever` answers until `shutdown`. Raises OSError where it cannot listen."""

    def __init__(
        self,
        host: str,
        port: int,
        application: Application,
        certificate: Certificate | None = None,
        probes: frozenset[str] = frozenset(),
    ) -> None:
        self._listener = _listening(host, port)
        self.port = int(self._listener.getsockname()[1])
        self._gateway = Gateway(application, host, self.port)
        self._certificate = certificate
        self._probes = probes
        self._clients: dict[_Client, None] = {}  # oldest first
        self._places_by_address: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._places = asyncio.Semaphore(MOST_ANSWERS)
        self._probe_places = asyncio.Semaphore(MOST_PROBES)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(
            lambda _, context: _log.debug("a request on the HTTP port broke off: %s", context)
        )
        self._accepting = self._loop.create_task(self._accept())

    def serve_forever(self) -> None:
        """Answer until `shutdown`; then every connection is closed."""
        try:
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._accepting)
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(tasks) if tasks else asyncio.sleep(0))
            self._loop.run_until_complete(asyncio.sleep(0))  # transports close their sockets in a step of their own
        finally:
            self._loop.close()
            self._listener.close()

    def shutdown(self) -> None:
        """Have `serve_forever` return soon; from any thread."""
        with suppress(RuntimeError):  # it has returned already
            self._loop.call_soon_threadsafe(self._accepting.cancel)

    async def _accept(self) -> None:
        while True:
            try:
                connection, (host, *_) = await self._loop.sock_accept(self._listener)
            except OSError:  # the process may open no more files: hanging up on a client gives one back
                self._make_room(0)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self._make_room(MOST_WAITING - 1)
            self._attend(connection, host)

    def _make_room(self, most_waiting: int) -> None:
        """Rule 3."""
        waiting = [client for client in self._clients if not client.has_request]
        if len(waiting) > most_waiting:
            [(crowded, _)] = Counter(client.address for client in waiting).most_common(1)
            victim = next(client for client in waiting if client.address == crowded)
            victim.hang_up()
            self._forget(victim)

    def _attend(self, connection: socket.socket, host: str) -> None:
        address = network_of(host)
        places = self._places_by_address.setdefault(address, asyncio.Semaphore(MOST_ANSWERS // 2))
        client = _Client(connection, host, places, address)
        self._clients[client] = None
        client.task = self._loop.create_task(self._converse(client))
        client.task.add_done_callback(lambda _: self._forget(client))

    def _forget(self, client: _Client) -> None:
        self._clients.pop(client, None)
        client.close()

    async def _converse(self, client: _Client) -> None:
        """Rule 2. A client that goes away, or speaks no HTTP or TLS, is no concern of an operator."""
        try:
            with client.hung_up_after(HEAD_SECONDS):
                reader = await self._connected(client)
                head = await _head(reader)
            if head:
                await self._answer(client, head)
        except (OSError, asyncio.CancelledError):
            _log.debug("a request on the HTTP port broke off", exc_info=True)

    async def _connected(self, client: _Client) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=MOST_HEAD_BYTES, loop=self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        context = self._certificate.context() if self._certificate else None
        transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, client.connection, ssl=context)
        client.writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
        return reader

    async def _answer(self, client: _Client, head: bytes) -> None:
        """Rules 4 and 5."""
        if path_of(head) in self._probes:
            async with self._probe_places:
                await self._exchange(client, head)
            return
        by_address = Counter(one.address for one in self._clients if one.has_request)
        if by_address.total() >= MOST_REQUESTS or by_address[client.address] >= MOST_REQUESTS // 2:
            await _send(client, [plain_answer("503 Service Unavailable", ("Retry-After", "1"))])
            return
        client.has_request = True
        async with client.places, self._places:
            await self._exchange(client, head)

    async def _exchange(self, client: _Client, head: bytes) -> None:
        if client.writer is not None and not client.writer.is_closing():
            await _send(client, await in_thread(lambda: self._gateway.answer(head, client.host)))


def network_of(host: str) -> str:
    """What counts as one address: one of IPv4, also where it is written as IPv6, and a /64 of IPv6.

    >>> network_of("10.0.0.7"), network_of("::ffff:10.0.0.7"), network_of("2001:db8::1:2:3:4")
    ('10.0.0.7', '10.0.0.7', '2001:db8::')
    """
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False).network_address)


def _listening(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


async def _head(reader: asyncio.StreamReader) -> bytes:
    """The request line and headers: up to an empty line, the end, or more than any client needs."""
    head = bytearray()
    while len(head) <= MOST_HEAD_BYTES:
        seen = max(0, len(head) - 3)
        piece = await reader.read(MOST_HEAD_BYTES)
        head += piece
        if not piece or head.find(b"\n\r\n", seen) >= 0 or head.find(b"\n\n", seen) >= 0:
            break
    return bytes(head)


async def _send(client: _Client, pieces: list[bytes]) -> None:
    """Rule 2."""
    writer = client.writer
    if writer is None:
        return
    with client.hung_up_after(LONGEST_SECONDS):
        for piece in pieces:
            for start in range(0, len(piece), _PIECE_BYTES):
                writer.write(memoryview(piece)[start : start + _PIECE_BYTES])
                with client.hung_up_after(SILENCE_SECONDS):
                    await writer.drain()
        writer.close()
        with client.hung_up_after(SILENCE_SECONDS), suppress(ConnectionError):  # it may hang up first
            await writer.wait_closed()
