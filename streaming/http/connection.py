"""Defines the connection of one client to the HTTP port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class Client:
    """One accepted connection. The limits apply to the client's `address`, which can be a network of several hosts."""

    connection: socket.socket
    host: str
    address: str
    task: asyncio.Task[None] | None = None
    writer: asyncio.StreamWriter | None = None

    def hang_up(self) -> None:
        """Cancel the task of this connection, even if the task is waiting."""
        if self.task is not None:
            self.task.cancel()

    def close(self) -> None:
        """Close the connection at once, without sending the rest of a response."""
        if self.writer is not None:
            self.writer.transport.abort()
        else:
            self.connection.close()

    @contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """Cancel the task of this connection if the `with` block takes longer than `seconds`."""
        timer = asyncio.get_running_loop().call_later(seconds, self.hang_up)
        try:
            yield
        finally:
            timer.cancel()
