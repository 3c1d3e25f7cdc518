"""What the programs of Python's clients have in common: the lines that they are given, and when a member leaves.

The standard input is a line "join NAME=VALUE ..." or "leave CLIENT_ID" at a time, see tests/clients/members.py. A
program ends with its input.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator

Given = dict[str, str]


def hold_members(consume: Callable[[Given, threading.Event], None]) -> None:
    """Call `consume` in a thread for each member; it returns once the event is set and the member has left."""
    members: dict[str, tuple[threading.Thread, threading.Event]] = {}

    def run(given: Given, leave: threading.Event, before: threading.Thread | None) -> None:
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
    os._exit(0)  # As a crash would: whoever wants its members to leave says so.


async def hold_members_in_loop(consume: Callable[[Given, asyncio.Event], Awaitable[None]]) -> None:
    """Do the same with a task for each member."""
    members: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}
    commands = _commands()

    async def run(given: Given, leave: asyncio.Event, before: asyncio.Task[None] | None) -> None:
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


def _commands() -> Iterator[tuple[str, str, Given]]:
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "leave":
            yield verb, words[0], {}
        else:
            given = dict(word.split("=", 1) for word in words)
            yield verb, given["client_id"], given
