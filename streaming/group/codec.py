"""The stored form of what is known of a group: a version and bytes.

A checkpoint outlives the program that wrote it. Every stored value says which version wrote it; each codec has, for
every older version of its type, the function from its bytes to the next version's. A newer version is refused by name;
guessing is not an option.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

import msgspec
import pyarrow as pa

from streaming.errors import STAYS, RemedyError

Stored = TypeVar("Stored")

Migrations = Mapping[int, Callable[[bytes], bytes]]
"""By version n, the function from bytes of version n to bytes of version n + 1."""

_NONE: Migrations = MappingProxyType({})


class StateVersionError(RemedyError):
    """The stored value was written by a version of the monitor that this one cannot read."""

    exit_code = STAYS


class StateCodec(Generic[Stored]):
    """Values of one type to (version, bytes) and back, older versions included.

    `is_compressed`: member ids and topic names are said over and over in a group; Zstandard brings them to a tenth. Not
    worth it for bytes that are compressed already.
    """

    def __init__(
        self, stored_type: type[Stored], version: int, migrations: Migrations = _NONE, *, is_compressed: bool = False
    ) -> None:
        self.version = version
        self._migrations = migrations
        self._is_compressed = is_compressed
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(stored_type)

    def encode(self, value: Stored) -> tuple[int, bytes]:
        """The value in today's version."""
        encoded = self._encoder.encode(value)
        return self.version, _compressed(encoded) if self._is_compressed else encoded

    def decode(self, version: int, encoded: bytes) -> Stored:
        """The value, migrated step by step where it is older. Raises StateVersionError where no way leads here."""
        while version != self.version:
            if version not in self._migrations:
                raise StateVersionError(
                    f"the checkpoint's state has version {version}, this monitor reads {self.version}: "
                    "run `rebalance-monitor rebuild`, or the version of the monitor that wrote it"
                )
            encoded = self._migrations[version](encoded)
            version += 1
        return self._decoder.decode(_decompressed(encoded) if self._is_compressed else encoded)


def _compressed(encoded: bytes) -> bytes:
    """The length in four bytes, then one Zstandard frame."""
    frame: bytes = pa.compress(encoded, codec="zstd", asbytes=True)
    return len(encoded).to_bytes(4, "big") + frame


def _decompressed(compressed: bytes) -> bytes:
    length = int.from_bytes(compressed[:4], "big")
    encoded: bytes = pa.decompress(compressed[4:], decompressed_size=length, codec="zstd", asbytes=True)
    return encoded
