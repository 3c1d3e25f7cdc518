"""Opens the HTTP port. `run` and `doctor` use the same function."""

from __future__ import annotations

import errno
import socket
import sys

from streaming.errors import STAYS, RemedyError

_BACKLOG = 128
_MAX_UNSENT_BYTES = 128 << 10


class PortError(RemedyError):
    """Error: the HTTP port cannot be opened, but a later start can succeed.

    For example, the name of the host cannot be resolved now, or no network interface has the address yet.
    """


class PortInUseError(PortError):
    """Error: a process listens on the port already."""


class PortRefusedError(PortError):
    """Error: the operating system refuses the port until an operator changes something."""

    exit_code = STAYS


def open_listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises PortError if the port cannot be opened."""
    try:
        return _listen(host, port)
    except OSError as error:
        raise _port_error(f"cannot listen on {host}:{port} ({error.strerror})", error) from None


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit this limit. Without this limit, each connection can buffer several MB.
        if sys.platform == "linux":
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MAX_UNSENT_BYTES)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _port_error(problem: str, error: OSError) -> PortError:
    if isinstance(error, socket.gaierror):
        return PortError(f"{problem}: check DNS, or set metrics.host to an IP address of this machine")
    if error.errno == errno.EADDRINUSE:
        remedy = "stop the process that uses this port, or set metrics.port to a different port"
        return PortInUseError(f"{problem}: {remedy}")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return PortRefusedError(f"{problem}: set metrics.port to 1024 or a higher port")
    return PortError(f"{problem}: set metrics.host to an IP address of this machine")
