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

from streaming.errors import RemedyError

Stored = TypeVar("Stored")

Migrations = Mapping[int, Callable[[bytes], bytes]]
"""By version n, the function from bytes of version n to bytes of version n + 1."""

_NONE: Migrations = MappingProxyType({})


class StateVersionError(RemedyError):
    """The stored value was written by a version of the monitor that this one cannot read."""


class StateCodec(Generic[Stored]):
    """Values of one type to (version, bytes) and back, older versions included."""

    def __init__(self, stored_type: type[Stored], version: int, migrations: Migrations = _NONE) -> None:
        self.version = version
        self._migrations = migrations
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(stored_type)

    def encode(self, value: Stored) -> tuple[int, bytes]:
        """The value in today's version."""
        return self.version, self._encoder.encode(value)

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
        return self._decoder.decode(encoded)
