"""The text of `jars.lock`: every jar of every set with its size and hash. Values in, values out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from streaming.jars.coordinates import Coordinate, JarSetName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HEADER = """\
# Written by `python -m streaming.jars.lock` from coordinates.py; not by hand.
# set sha256 size_bytes organisation:module:revision
"""


@dataclass(frozen=True, order=True)
class LockedJar:
    """One jar as it must arrive: what its bytes hash to, and how many they are."""

    coordinate: Coordinate
    sha256: str
    size_bytes: int


def format_lock(sets: Mapping[JarSetName, Iterable[LockedJar]]) -> str:
    """Write the lock's text, sorted, so that the same jars always give the same text."""
    lines = [
        f"{set_name} {jar.sha256} {jar.size_bytes} {jar.coordinate}\n"
        for set_name in sorted(sets)
        for jar in sorted(sets[set_name])
    ]
    return _HEADER + "".join(lines)


def parse_lock(text: str) -> dict[JarSetName, tuple[LockedJar, ...]]:
    """Read a lock's text back. Raises ValueError for a line of another shape."""
    jars: dict[JarSetName, list[LockedJar]] = {set_name: [] for set_name in get_args(JarSetName)}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            set_name, sha256, size_bytes, address = line.split(" ")
            organisation, module, revision = address.split(":")
            if set_name not in jars:
                raise ValueError(f"jars.lock names the unknown set {set_name!r}")
            jars[set_name].append(LockedJar(Coordinate(organisation, module, revision), sha256, int(size_bytes)))
    return {set_name: tuple(sorted(found)) for set_name, found in jars.items()}


def lock_version(jars: Iterable[LockedJar]) -> str:
    """Name a set of jars by what they hold: 12 hex digits that change when any jar does."""
    reported = "".join(f"{jar.coordinate} {jar.sha256}\n" for jar in sorted(jars))
    return hashlib.sha256(reported.encode()).hexdigest()[:12]
