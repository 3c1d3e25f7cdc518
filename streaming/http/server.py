"""Serves the HTTP port. A slow client uses only one open socket and a few KB of memory. Probes are always answered.

Slow pages never delay a scrape.

1. One thread accepts connections, makes TLS handshakes, reads requests and sends responses. This thread never waits for
   a single client. Only a complete request gets its own thread.
2. The TLS handshake and the complete request must arrive within `HEAD_SECONDS`. If data arrives slowly, the server does
   not extend this time. If a response is not sent completely after `LONGEST_SECONDS`, the server closes the connection.
   If the client reads no data for `SILENCE_SECONDS`, the server closes the connection.
3. At most `MAX_WAITING` connections can wait for their request at the same time. The server always accepts a new
   connection. If too many connections wait, the server selects the address with the most waiting connections. Then it
   closes the oldest waiting connection of this address.
4. At most `MAX_REQUESTS` complete requests can be open at the same time. At most half of `MAX_REQUESTS` can be from one
   address. The server answers each further request with the status 503 (Service Unavailable). The server computes or
   sends at most `MAX_ANSWERS` responses at the same time. At most half of `MAX_ANSWERS` can be for one address.
5. A quarter of each limit in rule 4 is reserved for scrapes. All other requests use at most three quarters of it.
6. Rule 3 also applies to probes. Rule 4 does not apply to probes. The server answers up to `MAX_PROBES` probes at a
   time, in addition to the other requests.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakValueDictionary

from streaming.http.access import Certificate
from streaming.http.exchange import Application, Gateway, path_of, plain_answer, run_in_thread

HEAD_SECONDS = 10.0
SILENCE_SECONDS = 10.0
LONGEST_SECONDS = 60.0
MAX_WAITING = 192
MAX_REQUESTS = 64
MAX_ANSWERS = 16
MAX_PROBES = 4
MAX_HEAD_BYTES = 64 << 10

_BACKLOG = 128
_RETRY_SECONDS = 0.1
_PIECE_BYTES = 1 << 20

_log = logging.getLogger(__name__)


class ReservedPaths(NamedTuple):
    """The paths of scrapes (rule 5) and of probes (rule 6)."""

    scrapes: frozenset[str]
    probes: frozenset[str]


def _without_reserve(limit: int) -> int:
    """Return the part of a limit that requests other than scrapes can use (rule 5).

    >>> _without_reserve(64), _without_reserve(1)
    (48, 1)
    """
    return limit - limit // 4


class _Places:
    """Limits the number of responses that the server computes or sends at the same time (rules 4 and 5)."""

    def __init__(self, limit: int) -> None:
        self._all = asyncio.Semaphore(limit)
        self._without_reserve = asyncio.Semaphore(_without_reserve(limit))

    @asynccontextmanager
    async def take(self, *, is_scrape: bool) -> AsyncIterator[None]:
        """Wait for a place, and use it during the `with` block."""
        async with nullcontext() if is_scrape else self._without_reserve, self._all:
            yield


@dataclass(eq=False, slots=True)
class _Client:
    """One accepted connection. `places` limits the number of responses for the client's address (rule 4)."""

    connection: socket.socket
    host: str
    places: _Places
    address: str
    task: asyncio.Task[None] | None = None
    writer: asyncio.StreamWriter | None = None
    has_request: bool = False
    is_scrape: bool = False

    def hang_up(self) -> None:
        """Cancel the task of this connection, even if the task is waiting."""
        if self.task is not None:
            self.task.cancel()

    def close(self) -> None:
        """Close the socket."""
        if self.writer is not None:
            self.writer.transport.abort()
        else:
            self.connection.close()

    @contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """Cancel the task of this connection if the `with` block takes longer than this time."""
        timer = asyncio.get_running_loop().call_later(seconds, self.hang_up)
        try:
            yield
        finally:
            timer.cancel()


class Server:
    """An HTTP server that listens as soon as it is created. Raises OSError if it cannot listen.

    `serve_forever` answers requests until `shutdown` is called. The limits are different for `reserved` paths.
    """

    def __init__(
        self,
        host: str,
        port: int,
        application: Application,
        reserved: ReservedPaths,
        certificate: Certificate | None = None,
    ) -> None:
        self._listener = _open_listener(host, port)
        self.port = int(self._listener.getsockname()[1])
        self._gateway = Gateway(application, host, self.port)
        self._certificate = certificate
        self._reserved = reserved
        self._clients: dict[_Client, None] = {}  # oldest first
        self._places_by_address: WeakValueDictionary[str, _Places] = WeakValueDictionary()
        self._places = _Places(MAX_ANSWERS)
        self._probe_places = asyncio.Semaphore(MAX_PROBES)
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(
            lambda _, context: _log.debug("a connection to the HTTP port failed: %s", context)
        )
        self._accepting = self._loop.create_task(self._accept())

    def serve_forever(self) -> None:
        """Answer requests until `shutdown` is called. Then close all connections."""
        try:
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._accepting)
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(tasks) if tasks else asyncio.sleep(0))
            self._loop.run_until_complete(asyncio.sleep(0))  # transports close their sockets in a later step
        finally:
            self._loop.close()
            self._listener.close()

    def shutdown(self) -> None:
        """Make `serve_forever` return soon. Any thread can call this method."""
        with suppress(RuntimeError):  # `serve_forever` has returned already
            self._loop.call_soon_threadsafe(self._accepting.cancel)

    async def _accept(self) -> None:
        while True:
            try:
                connection, (host, *_) = await self._loop.sock_accept(self._listener)
            except OSError:  # the process has too many open files, and closing a connection frees one
                self._make_room(0)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self._make_room(MAX_WAITING - 1)
            self._start_client(connection, host)

    def _make_room(self, max_waiting: int) -> None:
        """If more than `max_waiting` connections wait for a request, close one of them (rule 3)."""
        waiting = [client for client in self._clients if not client.has_request]
        if len(waiting) > max_waiting:
            [(busiest_address, _)] = Counter(client.address for client in waiting).most_common(1)
            oldest = next(client for client in waiting if client.address == busiest_address)
            oldest.hang_up()
            self._forget(oldest)

    def _start_client(self, connection: socket.socket, host: str) -> None:
        address = client_network(host)
        places = self._places_by_address.setdefault(address, _Places(MAX_ANSWERS // 2))
        client = _Client(connection, host, places, address)
        self._clients[client] = None
        client.task = self._loop.create_task(self._serve_client(client))
        client.task.add_done_callback(lambda _: self._forget(client))

    def _forget(self, client: _Client) -> None:
        self._clients.pop(client, None)
        client.close()

    async def _serve_client(self, client: _Client) -> None:
        """Read one request and answer it (rule 2).

        If the client closes the connection, or does not use HTTP or TLS, the server logs this only at the level DEBUG.
        """
        try:
            with client.deadline(HEAD_SECONDS):
                reader = await self._connect(client)
                head = await _read_head(reader)
            if head:
                await self._answer(client, head)
        except (OSError, asyncio.CancelledError):
            _log.debug("a connection to the HTTP port failed", exc_info=True)

    async def _connect(self, client: _Client) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES, loop=self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        context = self._certificate.context() if self._certificate else None
        transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, client.connection, ssl=context)
        client.writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
        return reader

    async def _answer(self, client: _Client, head: bytes) -> None:
        """Answer a complete request if the limits allow it (rules 4 to 6)."""
        path = path_of(head)
        if path in self._reserved.probes:
            async with self._probe_places:
                await self._exchange(client, head)
            return
        client.is_scrape = path in self._reserved.scrapes
        if self._is_full(client):
            await _send(client, [plain_answer("503 Service Unavailable", ("Retry-After", "1"))])
            return
        client.has_request = True
        async with client.places.take(is_scrape=client.is_scrape), self._places.take(is_scrape=client.is_scrape):
            await self._exchange(client, head)

    def _is_full(self, client: _Client) -> bool:
        """Return True if there are too many open requests for one more request of this client."""
        requests = [one for one in self._clients if one.has_request]
        others = [one for one in requests if not one.is_scrape]
        limits = [(requests, MAX_REQUESTS)]
        if not client.is_scrape:
            limits.append((others, _without_reserve(MAX_REQUESTS)))
        return any(
            len(counted) >= limit or sum(one.address == client.address for one in counted) >= limit // 2
            for counted, limit in limits
        )

    async def _exchange(self, client: _Client, head: bytes) -> None:
        if client.writer is not None and not client.writer.is_closing():
            await _send(client, await run_in_thread(lambda: self._gateway.answer(head, client.host)))


def client_network(host: str) -> str:
    """Return the address to which limits apply: a single IPv4 address, or the /64 network of an IPv6 address.

    An IPv4 address that is written as an IPv6 address counts as IPv4.

    >>> client_network("10.0.0.7"), client_network("::ffff:10.0.0.7"), client_network("2001:db8::1:2:3:4")
    ('10.0.0.7', '10.0.0.7', '2001:db8::')
    """
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False).network_address)


def _open_listener(host: str, port: int) -> socket.socket:
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


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    """Read the request line and the headers. Stop at an empty line, at the end of the data, or after MAX_HEAD_BYTES."""
    head = bytearray()
    while len(head) <= MAX_HEAD_BYTES:
        search_from = max(0, len(head) - 3)
        piece = await reader.read(MAX_HEAD_BYTES)
        head += piece
        if not piece or head.find(b"\n\r\n", search_from) >= 0 or head.find(b"\n\n", search_from) >= 0:
            break
    return bytes(head)


async def _send(client: _Client, pieces: list[bytes]) -> None:
    """Send a response and close the connection (rule 2)."""
    writer = client.writer
    if writer is None:
        return
    with client.deadline(LONGEST_SECONDS):
        for piece in pieces:
            for start in range(0, len(piece), _PIECE_BYTES):
                writer.write(memoryview(piece)[start : start + _PIECE_BYTES])
                with client.deadline(SILENCE_SECONDS):
                    await writer.drain()
        writer.close()
        with client.deadline(SILENCE_SECONDS), suppress(ConnectionError):  # the client may close first
            await writer.wait_closed()
