"""Finds free ports of this machine."""

from __future__ import annotations

import itertools
import random
import socket

from streaming.embedded.properties import LOOPBACK

# These ports are below the kernel's range for outgoing connections (32768 and above). In the kernel's range, a client
# that reconnects to a stopped broker can get the broker's port as its own port. Then the client connects to itself, and
# the broker cannot use its port again.
_FREE_PORTS = range(20_000, 32_000)

# The order is random, so two processes rarely choose the same port. The order contains every port once, so two servers
# of one process never get the same port.
_candidates = itertools.cycle(random.sample(_FREE_PORTS, len(_FREE_PORTS)))


def free_port() -> int:
    """Return a port that is free now on the loopback address. The next call returns a different port.

    A different process can take the port before the caller uses it.
    """
    for port in itertools.islice(_candidates, len(_FREE_PORTS)):
        if not is_taken(port):
            return port
    raise OSError(f"no free port between {_FREE_PORTS.start} and {_FREE_PORTS.stop}")


def is_taken(port: int) -> bool:
    """Return True if a process already listens on the port."""
    with socket.socket() as probe:
        # Kafka sets this option, too. With this option, a port with only closed connections counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return True
    return False
