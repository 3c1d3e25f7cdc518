"""Connections to the port from slow or faulty clients."""

from __future__ import annotations

import socket

from streaming.http.routes import MetricsServer


def connect_to(server: MetricsServer, source: str = "127.0.0.1") -> socket.socket:
    """Open a connection from an address of this machine."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=10, source_address=(source, 0))


def is_closed_by_server(connection: socket.socket) -> bool:
    """Return True if the server closes the connection without sending data."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def still_waits(connection: socket.socket) -> bool:
    """Return True if the server has not answered and has not closed the connection."""
    connection.setblocking(False)
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        pass
    return False


def answer_to(connection: socket.socket, path: str) -> bytes:
    """Send a request on an open connection and return the complete response."""
    connection.settimeout(30)
    connection.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    answer = b""
    while received := connection.recv(1 << 20):
        answer += received
    return answer
