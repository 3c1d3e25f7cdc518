"""The stored form of what is known of a group: a version and bytes.

A checkpoint outlives the program that wrote it. Every stored value says which version wrote it; `MIGRATIONS` holds, for
each older version, the function from its bytes to the next version's. Refusing a newer version by name is the caller's
duty towards the user; guessing is not an option.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec

Stored = TypeVar("Stored")

MIGRATIONS: Mapping[int, Callable[[bytes], bytes]] = {}
"""From version n to n + 1. Empty as long as there has been one version only."""


class StateVersionError(ValueError):
    """The stored value was written by a version of the monitor that this one cannot read."""


class StateCodec(Generic[Stored]):
    """Values of one type to (version, bytes) and back, older versions included."""

    def __init__(
        self,
        stored_type: type[Stored],
        version: int,
        migrations: Mapping[int, Callable[[bytes], bytes]] = MIGRATIONS,
    ) -> None:
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
                raise StateVersionError(f"state of version {version} cannot be read by version {self.version}")
            encoded = self._migrations[version](encoded)
            version += 1
        return self._decoder.decode(encoded)
