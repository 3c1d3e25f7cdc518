"""Tests which requests are answered at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

import pytest

from streaming.http.answer_places import AnswerPlaces


@dataclass(eq=False)
class FakeClient:
    """A client whose request is answered as soon as the test says so."""

    address: str
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def hang_up(self) -> None:
        """Cancel the task."""
        if self.task is not None:
            self.task.cancel()


class Requests:
    """Requests that wait for a place or have one."""

    def __init__(self, limit: int, limit_of_address: int) -> None:
        self.places = AnswerPlaces(limit, limit_of_address)

    async def arrive(self, *addresses: str) -> list[FakeClient]:
        """Start a request of each of these addresses."""
        clients = [FakeClient(address) for address in addresses]
        for client in clients:
            client.task = asyncio.ensure_future(self._serve(client))
        await settle()
        return clients

    async def _serve(self, client: FakeClient) -> None:
        async with self.places.place(client):
            await client.answered.wait()

    def with_place(self, clients: list[FakeClient]) -> list[bool]:
        """Return for each client whether it has a place."""
        return [self.places.has_place(client) for client in clients]


async def settle() -> None:
    """Let all tasks run until they wait."""
    for _ in range(5):
        await asyncio.sleep(0)


async def answer(client: FakeClient) -> None:
    client.answered.set()
    await settle()


async def limits_hold() -> None:
    requests = Requests(3, 2)
    clients = await requests.arrive("a", "a", "a", "b", "c")
    assert requests.with_place(clients) == [True, True, False, True, False]
    assert [requests.places.open_requests(address) for address in "abcd"] == [3, 1, 1, 0]
    await answer(clients[3])
    assert requests.with_place(clients) == [True, True, False, False, True], "c has fewer places than a"
    await answer(clients[0])
    assert requests.with_place(clients) == [False, True, True, False, True]


async def a_place_goes_to_the_address_with_the_fewest() -> None:
    requests = Requests(4, 2)
    attacking = await requests.arrive(*"aabb", *"ababab", *"ababab")
    others = await requests.arrive(*"cdc")
    await answer(attacking[0])
    assert requests.with_place(others) == [True, False, False], "the oldest of the addresses without a place"
    await answer(attacking[2])
    assert requests.with_place(others) == [True, True, False]


async def a_cancelled_request_leaves_no_place_behind() -> None:
    requests = Requests(1, 1)
    clients = await requests.arrive("a", "b", "c")
    for client in clients[:2]:
        client.hang_up()
    await settle()
    assert requests.with_place(clients) == [False, False, True]
    assert [requests.places.open_requests(address) for address in "abc"] == [0, 0, 1]


async def a_place_of_a_cancelled_request_is_not_lost() -> None:
    """The place is granted and the task is cancelled before it runs again."""
    requests = Requests(1, 1)
    clients = await requests.arrive("a", "b", "c")
    clients[0].answered.set()
    clients[1].hang_up()
    await settle()
    assert requests.with_place(clients) == [False, False, True]


async def a_slow_client_loses_its_place_to_another_address() -> None:
    requests = Requests(4, 2)
    slow = await requests.arrive(*"aabb")
    (waiting,) = await requests.arrive("c")
    assert not requests.places.has_place(waiting), "responses that are being computed keep their places"
    requests.places.mark_slow(slow[1])
    await settle()
    assert requests.with_place([*slow, waiting]) == [True, False, True, True, True]
    assert slow[1].task is not None
    assert slow[1].task.cancelled()


async def a_slow_client_keeps_its_place_if_nobody_has_fewer() -> None:
    requests = Requests(2, 2)
    clients = await requests.arrive(*"ab", *"abc")
    for client in clients[:2]:
        requests.places.mark_slow(client)
    await settle()
    assert requests.with_place(clients) == [True, True, False, False, False], "each address has at most one place"


async def only_clients_with_a_place_are_slow() -> None:
    requests = Requests(2, 2)
    clients = await requests.arrive(*"aaa")
    requests.places.mark_slow(clients[2])
    requests.places.mark_slow(FakeClient("probe"))
    await requests.arrive("b")
    assert requests.with_place(clients) == [True, True, False]


@pytest.mark.parametrize(
    "scenario",
    [
        limits_hold,
        a_place_goes_to_the_address_with_the_fewest,
        a_cancelled_request_leaves_no_place_behind,
        a_place_of_a_cancelled_request_is_not_lost,
        a_slow_client_loses_its_place_to_another_address,
        a_slow_client_keeps_its_place_if_nobody_has_fewer,
        only_clients_with_a_place_are_slow,
    ],
    ids=lambda scenario: scenario.__name__,
)
def test_places_are_shared_between_addresses(scenario: Callable[[], Coroutine[None, None, None]]) -> None:
    """Two addresses with wrong passwords had all places, and every scrape from a third address got the status 503."""
    asyncio.run(scenario())
