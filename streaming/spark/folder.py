"""A folder of this machine, read without Spark: what can be checked of a checkpoint before a JVM starts."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlparse

ROOM_BYTES = 1 << 20
"""With less free space a disk counts as full: not even a batch's own notes would fit for long."""


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """A file by its name below the folder, and what is wrong with it: "is empty"."""

    name: str
    what: str

    def __str__(self) -> str:
        """The name first: it is what an operator looks for."""
        return f"{self.name} {self.what}"


class Folder(Protocol):
    """Names and bytes of the files below one root. Names are relative, with `/`."""

    def uri(self, name: str) -> str:
        """The full URI of a name."""

    def names(self, folder: str) -> list[str]:
        """Names of the entries of a folder, sorted; none if the folder does not exist."""

    def read(self, name: str) -> bytes | None:
        """The file's bytes; None if the file does not exist."""


class LocalFolder:
    """A folder on a local disk. Every failure other than "does not exist" is an OSError."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self, folder: str) -> list[str]:
        """Names of the entries of a folder, sorted; none if the folder does not exist."""
        try:
            return sorted(entry.name for entry in (self.root / folder).iterdir())
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes | None:
        """The file's bytes; None if the file does not exist."""
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def uri(self, name: str) -> str:
        """The full path of a name."""
        return f"{self.root}/{name}"

    def refusal(self) -> OSError | None:
        """Why this process cannot list, enter or write one of the folders; None if it can everywhere.

        If the root does not exist, the nearest folder above it is asked: the root will be made in it.
        """
        top = self.root
        while not top.exists() and top != top.parent:
            top = top.parent
        below = [Path(found) for found, _, _ in os.walk(top)] if top == self.root else []
        return next((refused for folder in (top, *below) if (refused := folder_refusal(folder))), None)


def folder_refusal(folder: Path) -> OSError | None:
    """Why this process cannot list, enter or write a folder that exists; None if it can."""
    number = None
    disk = os.statvfs(folder)
    if not folder.is_dir():
        number = errno.ENOTDIR
    elif disk.f_flag & os.ST_RDONLY:
        number = errno.EROFS
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        number = errno.EACCES
    elif disk.f_bavail * disk.f_frsize < ROOM_BYTES:
        number = errno.ENOSPC
    return None if number is None else OSError(number, os.strerror(number), str(folder))


def local_folder(uri: str) -> LocalFolder | None:
    """The folder of a path or a `file:` URI; None for storage of another kind.

    >>> local_folder("file:///var/lib/checkpoint").root, local_folder("s3a://bucket/checkpoint")
    (PosixPath('/var/lib/checkpoint'), None)
    """
    parsed = urlparse(uri)
    if parsed.scheme == "":
        return LocalFolder(Path(uri))
    return LocalFolder(Path(unquote(parsed.path))) if parsed.scheme == "file" else None
