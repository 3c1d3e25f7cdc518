"""Serves the HTTP port. A slow client uses only one open socket and a few KB of memory, and cannot block probes.

1. One thread accepts connections, makes TLS handshakes, reads requests and sends responses. The thread never waits for
   a single client. When a request is complete, a new thread computes its response.
2. The TLS handshake and the complete request must arrive within `HEAD_SECONDS`. If the client reads no data for
   `SILENCE_SECONDS`, the server closes the connection. The client must read the complete response within
   `LONGEST_SECONDS`. A large response has a longer limit: its size divided by `SLOWEST_BYTES_PER_SECOND`.
3. At most `MAX_WAITING` connections can wait at the same time. Each connection without a place (rule 4) counts as
   waiting, even before its request is complete, and after its response. The server always accepts a new connection. If
   too many connections wait, the server selects the address with the most waiting connections, and closes the oldest
   waiting connection of this address.
4. The server computes or sends at most `MAX_ANSWERS` responses at the same time. Each of these responses has a place.
   `answer_places.py` decides which requests get a place. A client that needs more than `SLOW_SECONDS` to read its
   response can lose its place. One address can have at most `MAX_REQUESTS` complete requests at the same time. The
   server answers each further request of this address with the status 503 (Service Unavailable).
5. Rule 3 also limits probes, but rule 4 does not. The server answers up to `MAX_PROBES` probes at the same time, in
   addition to the other requests.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from collections import Counter
from contextlib import suppress

from streaming.http.access import Reloaded
from streaming.http.answer_places import AnswerPlaces
from streaming.http.connection import Client
from streaming.http.exchange import Application, Gateway, path_of, plain_answer, run_in_thread
from streaming.http.listener import open_listener

HEAD_SECONDS = 10.0
SILENCE_SECONDS = 10.0
SLOW_SECONDS = 2.0
LONGEST_SECONDS = 60.0
SLOWEST_BYTES_PER_SECOND = 64_000
MAX_WAITING = 192
MAX_REQUESTS = 32
MAX_ANSWERS = 16
MAX_PROBES = 4
MAX_HEAD_BYTES = 64 << 10

_RETRY_SECONDS = 0.1
_PIECE_BYTES = 64 << 10

_log = logging.getLogger(__name__)


class Server:
    """An HTTP server. The constructor opens the port, and raises PortError if the port cannot be opened.

    `serve_forever` answers requests until `shutdown` is called. `probes` contains the paths of the probes (rule 5).
    """

    def __init__(
        self,
        host: str,
        port: int,
        application: Application,
        certificate: Reloaded[ssl.SSLContext] | None = None,
        probes: frozenset[str] = frozenset(),
    ) -> None:
        self._listener = open_listener(host, port)
        self.port = int(self._listener.getsockname()[1])
        self._gateway = Gateway(application, host, self.port)
        self._certificate = certificate
        self._probes = probes
        self._clients: dict[Client, None] = {}  # oldest first
        self._places = AnswerPlaces(MAX_ANSWERS, MAX_ANSWERS // 2)
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
        """Stop `serve_forever`. Any thread can call this method."""
        with suppress(RuntimeError):  # `serve_forever` has returned already
            self._loop.call_soon_threadsafe(self._accepting.cancel)

    async def _accept(self) -> None:
        while True:
            try:
                connection, (host, *_) = await self._loop.sock_accept(self._listener)
            except OSError:  # the process has too many open files, so the server closes a connection
                self._make_room(0)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self._make_room(MAX_WAITING - 1)
            self._start_client(connection, host)

    def _make_room(self, max_waiting: int) -> None:
        """If more than `max_waiting` connections wait, close one of them (rule 3)."""
        waiting = [client for client in self._clients if not self._places.has_place(client)]
        if len(waiting) > max_waiting:
            [(busiest_address, _)] = Counter(client.address for client in waiting).most_common(1)
            oldest = next(client for client in waiting if client.address == busiest_address)
            oldest.hang_up()
            self._forget(oldest)

    def _start_client(self, connection: socket.socket, host: str) -> None:
        client = Client(connection, host, client_network(host))
        self._clients[client] = None
        client.task = self._loop.create_task(self._serve_client(client))
        client.task.add_done_callback(lambda _: self._forget(client))

    def _forget(self, client: Client) -> None:
        self._clients.pop(client, None)
        client.close()

    async def _serve_client(self, client: Client) -> None:
        """Read one request and answer it (rule 2). Log errors of the client only at the level DEBUG."""
        try:
            with client.deadline(HEAD_SECONDS):
                reader = await self._connect(client)
                head = await _read_head(reader)
            if head:
                await self._answer(client, head)
                await _close(client)
        except (OSError, asyncio.CancelledError):
            _log.debug("a connection to the HTTP port failed", exc_info=True)

    async def _connect(self, client: Client) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES, loop=self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        context = self._certificate.current() if self._certificate else None
        transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, client.connection, ssl=context)
        transport.set_write_buffer_limits(_PIECE_BYTES)
        client.writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
        return reader

    async def _answer(self, client: Client, head: bytes) -> None:
        if path_of(head) in self._probes:
            async with self._probe_places:
                await self._exchange(client, head)
            return
        if self._places.open_requests(client.address) >= MAX_REQUESTS:
            await _send(client, [plain_answer("503 Service Unavailable", ("Retry-After", "1"))])
            return
        async with self._places.place(client):
            await self._exchange(client, head)

    async def _exchange(self, client: Client, head: bytes) -> None:
        if client.writer is not None and not client.writer.is_closing():
            pieces = await run_in_thread(lambda: self._gateway.answer(head, client.host))
            slow = self._loop.call_later(SLOW_SECONDS, self._places.mark_slow, client)
            try:
                await _send(client, pieces)
            finally:
                slow.cancel()


def client_network(host: str) -> str:
    """Return the address to which limits apply: a single IPv4 address, or the /64 network of an IPv6 address.

    An IPv4-mapped IPv6 address has the limits of its IPv4 address.

    >>> client_network("10.0.0.7"), client_network("::ffff:10.0.0.7"), client_network("2001:db8::1:2:3:4")
    ('10.0.0.7', '10.0.0.7', '2001:db8::')
    """
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False).network_address)


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


async def _send(client: Client, pieces: list[bytes]) -> None:
    """Send a response (rule 2). Each piece is so small that even a slow client can read it in SILENCE_SECONDS.

    The operating system can still send bytes after the function returns.
    """
    writer = client.writer
    if writer is None:
        return
    with client.deadline(max(LONGEST_SECONDS, sum(map(len, pieces)) / SLOWEST_BYTES_PER_SECOND)):
        for piece in pieces:
            for start in range(0, len(piece), _PIECE_BYTES):
                writer.write(memoryview(piece)[start : start + _PIECE_BYTES])
                with client.deadline(SILENCE_SECONDS):
                    await writer.drain()


async def _close(client: Client) -> None:
    """Close the connection. With TLS, wait until the client also closes the connection (rule 2)."""
    if client.writer is not None:
        client.writer.close()
        with client.deadline(SILENCE_SECONDS), suppress(ConnectionError):  # the client may close first
            await client.writer.wait_closed()
