"""Decides which requests the server answers at the same time. A place is the permission to answer one request.

1. The total number of places is limited. The number of places of each client address is limited, too.
2. A free place goes to the waiting address with the fewest places. If several addresses have the fewest places, the
   oldest waiting request of these addresses gets the place.
3. If no place is free, a request can take the place of a client that reads its response slowly. The address of the slow
   client must have at least two places more than the address of the request. If there are several such clients, the
   address with the most places loses a place. The server closes the connection of the oldest slow client of this
   address.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streaming.http.connection import Client


class AnswerPlaces:
    """Manages the places of all requests. Only the thread of the event loop may call the methods."""

    def __init__(self, limit: int, limit_of_address: int) -> None:
        self._limit = limit
        self._limit_of_address = limit_of_address
        self._holders: dict[Client, bool] = {}  # oldest first; the value is True if the client reads slowly
        self._waiting: dict[Client, asyncio.Future[None]] = {}  # oldest first

    def has_place(self, client: Client) -> bool:
        """Return True if this client has a place."""
        return client in self._holders

    def open_requests(self, address: str) -> int:
        """Return how many requests of this address have a place or wait for a place."""
        return sum(client.address == address for client in (*self._holders, *self._waiting))

    @asynccontextmanager
    async def place(self, client: Client) -> AsyncIterator[None]:
        """Wait for a place. The client has the place until the end of the `with` block."""
        granted = self._waiting[client] = asyncio.get_running_loop().create_future()
        try:
            self._assign()
            await granted
            yield
        finally:
            self._waiting.pop(client, None)
            self._holders.pop(client, None)
            self._assign()

    def mark_slow(self, client: Client) -> None:
        """Record that a client reads its response slowly. Then a request can take the client's place (rule 3)."""
        if client in self._holders:
            self._holders[client] = True
            self._assign()

    def _assign(self) -> None:
        while (client := self._next_client()) is not None:
            if len(self._holders) >= self._limit and not self._take_place_for(client):
                return
            self._holders[client] = False
            self._waiting.pop(client).set_result(None)

    def _next_client(self) -> Client | None:
        places = self._places_by_address()
        candidates = [
            client
            for client, granted in self._waiting.items()
            if places[client.address] < self._limit_of_address and not granted.cancelled()
        ]
        return min(candidates, key=lambda client: places[client.address], default=None)

    def _take_place_for(self, client: Client) -> bool:
        """Free the place of a slow client for `client` (rule 3). Return False if no client can lose its place."""
        places = self._places_by_address()
        fewest = places[client.address] + 2
        slow = [one for one, is_slow in self._holders.items() if is_slow and places[one.address] >= fewest]
        if not slow:
            return False
        loser = max(slow, key=lambda one: places[one.address])
        del self._holders[loser]
        loser.hang_up()
        return True

    def _places_by_address(self) -> Counter[str]:
        return Counter(client.address for client in self._holders)
