"""Encodes each state value as a version number and bytes, and decodes it again.

So the monitor can read a checkpoint that an earlier version of the monitor wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

import msgspec

from streaming.errors import STAYS, RemedyError
from streaming.events.compression import compressed, decompressed

Stored = TypeVar("Stored")

Migrations = Mapping[int, Callable[[bytes], bytes]]
"""Maps each version n to the function that converts bytes of version n to bytes of version n + 1."""

_NONE: Migrations = MappingProxyType({})


class StateVersionError(RemedyError):
    """Error: a stored value has a version that this monitor cannot read."""

    exit_code = STAYS


class StateCodec(Generic[Stored]):
    """Converts values of one type to (version, bytes) and back. A codec can also decode older versions.

    `is_compressed` selects Zstandard. Compression reduces the bytes of a group to a tenth, because names and ids repeat
    often. Do not use compression for bytes that are already compressed.
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
        """Encode a value in the current version."""
        encoded = self._encoder.encode(value)
        return self.version, compressed(encoded) if self._is_compressed else encoded

    def check(self, version: int) -> None:
        """Raise StateVersionError if this codec cannot decode bytes of this version."""
        if version > self.version or not all(older in self._migrations for older in range(version, self.version)):
            raise StateVersionError(
                f"the checkpoint's state has version {version}, but this monitor reads version {self.version}: "
                "run `rebalance-monitor rebuild`, or start the monitor version that wrote the checkpoint"
            )

    def decode(self, version: int, encoded: bytes) -> Stored:
        """Decode a value. Bytes of an older version are converted step by step first. Raises StateVersionError."""
        self.check(version)
        for older in range(version, self.version):
            encoded = self._migrations[older](encoded)
        return self._decoder.decode(decompressed(encoded) if self._is_compressed else encoded)
