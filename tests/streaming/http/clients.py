"""Connections to the port that do not behave."""

from __future__ import annotations

import socket

from streaming.http.port import MetricsServer


def connected(server: MetricsServer, source: str = "127.0.0.1") -> socket.socket:
    """A connection from an address of this machine."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=10, source_address=(source, 0))


def is_hung_up_on(connection: socket.socket) -> bool:
    """Wait for the end of what the server sends; it sends nothing."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def still_waits(connection: socket.socket) -> bool:
    """Whether the server neither answered nor hung up."""
    connection.setblocking(False)
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        pass
    return False


def answer_to(connection: socket.socket, path: str) -> bytes:
    """Ask on an open connection and read the whole answer."""
    connection.settimeout(30)
    connection.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    answer = b""
    while heard := connection.recv(1 << 20):
        answer += heard
    return answer
