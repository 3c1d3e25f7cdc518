"""Copy jars between folders, for machines without internet access. The hash of each jar must match jars.lock."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.jars.ivy import JarsError

if TYPE_CHECKING:
    from collections.abc import Collection

    from streaming.jars.lockfile import LockedJar

_REMEDY = (
    "on a machine with internet access, run `rebalance-monitor jars --to FOLDER` with the same version of the monitor, "
    "and copy the folder again"
)


def copy_jars(source: Path, jars: Collection[LockedJar], into: Path) -> None:
    """Copy jars from one folder into another folder. Existing files are replaced atomically.

    Raises JarsError if a jar in `source` is missing, damaged or not readable. Raises OSError if `into` is not writable.
    """
    names = sorted(jar.coordinate.file_name for jar in jars if not _exists(source, jar))
    if names:
        raise JarsError(f"{len(names)} of {len(jars)} jars are not in {source}, for example {names[0]}: {_REMEDY}")
    into.mkdir(parents=True, exist_ok=True)
    for jar in jars:
        _write(into / jar.coordinate.file_name, _read_verified(source, jar))


def _exists(source: Path, jar: LockedJar) -> bool:
    try:
        return (source / jar.coordinate.file_name).is_file()
    except OSError:  # the folder is not accessible; `_read_verified` reports this error
        return True


def _read_verified(source: Path, jar: LockedJar) -> bytes:
    path = source / jar.coordinate.file_name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise JarsError(f"{path} cannot be read ({error.strerror}): make it readable for this user") from error
    if hashlib.sha256(content).hexdigest() != jar.sha256:
        raise JarsError(f"{path} does not match its hash in jars.lock: {_REMEDY}")
    return content


def _write(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
