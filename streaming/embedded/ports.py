"""Ports of this machine that nobody listens on."""

from __future__ import annotations

import random
import socket

from streaming.embedded.properties import LOOPBACK

# Below the kernel's range for outgoing connections (32768 and up): from there a client that tries to reconnect to a
# stopped broker can be given the broker's own port, connect to itself, and keep the broker from ever coming back.
_FREE_PORTS = range(20_000, 32_000)


def free_port() -> int:
    """Return a port of the loopback address that was free a moment ago."""
    for _ in _FREE_PORTS:
        port = random.choice(_FREE_PORTS)  # noqa: S311 - only so that two processes seldom pick the same
        if not is_taken(port):
            return port
    raise OSError(f"no free port between {_FREE_PORTS.start} and {_FREE_PORTS.stop}")


def is_taken(port: int) -> bool:
    """Whether somebody listens there already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Kafka does: closed connections don't count
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return True
    return False
