"""Reads the commands of tests/clients/members.py from standard input, for all programs of Python clients.

Each line is "join NAME=VALUE ..." or "leave CLIENT_ID". A program ends when its input ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator

JoinOptions = dict[str, str]


def hold_members(consume: Callable[[JoinOptions, threading.Event], None]) -> None:
    """Call `consume` in a thread for each member. It must return after the event is set and the member has left."""
    members: dict[str, tuple[threading.Thread, threading.Event]] = {}

    def run(given: JoinOptions, leave: threading.Event, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        consume(given, leave)

    for verb, client_id, given in _commands():
        if verb == "leave":
            members[client_id][1].set()
            continue
        leave = threading.Event()
        before = members[client_id][0] if client_id in members else None
        thread = threading.Thread(target=run, args=(given, leave, before), daemon=True)
        members[client_id] = thread, leave
        thread.start()
    os._exit(0)  # as in a crash: members leave only after a command "leave"


async def hold_members_in_loop(consume: Callable[[JoinOptions, asyncio.Event], Awaitable[None]]) -> None:
    """Call `consume` in a task for each member, as `hold_members` does in threads."""
    members: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}
    commands = _commands()

    async def run(given: JoinOptions, leave: asyncio.Event, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        await consume(given, leave)

    while command := await asyncio.to_thread(next, commands, None):
        verb, client_id, given = command
        if verb == "leave":
            members[client_id][1].set()
            continue
        leave = asyncio.Event()
        before = members[client_id][0] if client_id in members else None
        members[client_id] = asyncio.create_task(run(given, leave, before)), leave
    os._exit(0)


def _commands() -> Iterator[tuple[str, str, JoinOptions]]:
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "leave":
            yield verb, words[0], {}
        else:
            given = dict(word.split("=", 1) for word in words)
            yield verb, given["client_id"], given
