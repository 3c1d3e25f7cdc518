"""Messages between a guard and its child: four bytes of length, then the body."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

_LENGTH = struct.Struct(">I")


def write_frame(stream: BinaryIO, body: bytes) -> None:
    """Send one message. Raises OSError where the other side is gone."""
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """Wait for one message; None where the other side ended before it was whole."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    length: int = _LENGTH.unpack(head)[0]
    body = stream.read(length)
    return body if len(body) == length else None
