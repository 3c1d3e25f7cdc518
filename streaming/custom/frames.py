"""Read and write the messages between a guard and its child process: four bytes of length, then the body."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

_LENGTH = struct.Struct(">I")


def write_frame(stream: BinaryIO, body: bytes) -> None:
    """Send one message. Raises OSError if the other process has ended."""
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """Wait for one message. Return None if the other process ended before the message was complete."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    length: int = _LENGTH.unpack(header)[0]
    body = stream.read(length)
    return body if len(body) == length else None
