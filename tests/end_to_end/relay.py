"""A relay before a broker, for what a network does to its words."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PAUSE_SECONDS = 0.2
"""Longer than a broker waits between refusing somebody (`connection.failed.authentication.delay.ms`) and hanging up."""


@contextmanager
def last_words_with_the_end(address: str) -> Iterator[str]:
    """Pass on what a broker says once it pauses, and its last words in one piece with the end; the relay's address."""
    host, _, port = address.rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, (host, int(port))), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def _accept(listener: socket.socket, broker: tuple[str, int]) -> None:
    with suppress(OSError):  # until the listener is closed
        while True:
            client, _ = listener.accept()
            to_broker = socket.create_connection(broker)
            threading.Thread(target=_pass_on_questions, args=(client, to_broker), daemon=True).start()
            threading.Thread(target=_pass_on_answers, args=(to_broker, client), daemon=True).start()


def _pass_on_questions(client: socket.socket, broker: socket.socket) -> None:
    with suppress(OSError), broker:
        while asked := client.recv(1 << 16):
            broker.sendall(asked)


def _pass_on_answers(broker: socket.socket, client: socket.socket) -> None:
    with suppress(OSError), client:
        while True:
            said, is_end = _until_it_pauses(broker)
            client.sendall(said)
            if is_end:
                return


def _until_it_pauses(broker: socket.socket) -> tuple[bytes, bool]:
    """What a broker says in one go, and whether it hung up."""
    broker.settimeout(None)
    said = more = broker.recv(1 << 16)
    broker.settimeout(_PAUSE_SECONDS)
    with suppress(TimeoutError):
        while more:
            more = broker.recv(1 << 16)
            said += more
    return said, not more
