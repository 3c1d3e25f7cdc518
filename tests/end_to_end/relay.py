"""Run a TCP relay in front of a broker that changes the timing of its answers, as a network can."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PAUSE_SECONDS = 0.2
"""Longer than a broker waits before it closes a refused connection (`connection.failed.authentication.delay.ms`)."""


@contextmanager
def last_answer_with_close(address: str) -> Iterator[str]:
    """Yield the address of a relay that forwards a broker's bytes when the broker pauses.

    The client receives the broker's last bytes together with the end of the connection.
    """
    host, _, port = address.rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, (host, int(port))), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def _accept(listener: socket.socket, broker: tuple[str, int]) -> None:
    with suppress(OSError):  # until the listener is closed
        while True:
            client, _ = listener.accept()
            to_broker = socket.create_connection(broker)
            threading.Thread(target=_forward_requests, args=(client, to_broker), daemon=True).start()
            threading.Thread(target=_forward_answers, args=(to_broker, client), daemon=True).start()


def _forward_requests(client: socket.socket, broker: socket.socket) -> None:
    with suppress(OSError), broker:
        while request := client.recv(1 << 16):
            broker.sendall(request)


def _forward_answers(broker: socket.socket, client: socket.socket) -> None:
    with suppress(OSError), client:
        while True:
            answer, is_closed = _read_until_pause(broker)
            client.sendall(answer)
            if is_closed:
                return


def _read_until_pause(broker: socket.socket) -> tuple[bytes, bool]:
    """Return the bytes that a broker sends until it pauses, and whether it closed the connection."""
    broker.settimeout(None)
    answer = more = broker.recv(1 << 16)
    broker.settimeout(_PAUSE_SECONDS)
    with suppress(TimeoutError):
        while more:
            more = broker.recv(1 << 16)
            answer += more
    return answer, not more
