"""Read a local folder without Spark. So a checkpoint can be checked before a JVM starts."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streaming.config.types.paths import local_path

MIN_FREE_BYTES = 1 << 20
"""A disk with less free space than this number of bytes counts as full. Spark would fill it with a few batches."""


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """The name of a damaged file, and the damage as a verb phrase, for example "is empty"."""

    name: str
    what: str

    def __str__(self) -> str:
        """Return the name of the file, and its damage."""
        return f"{self.name} {self.what}"


class Folder(Protocol):
    """The files below one root, for reading only. Names are relative to the root and use `/` as the separator."""

    def uri(self, name: str) -> str:
        """Return the full URI of a name."""

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the entries of a folder. The result is empty if the folder does not exist."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a file. Return None if the file does not exist."""


class LocalFolder:
    """A folder on a local disk. Raises OSError for all errors, except for a missing file or folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the entries of a folder. The result is empty if the folder does not exist."""
        try:
            return sorted(entry.name for entry in (self.root / folder).iterdir())
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes | None:
        """Return the content of a file. Return None if the file does not exist."""
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def uri(self, name: str) -> str:
        """Return the full path of a name."""
        return f"{self.root}/{name}"

    def refusal(self) -> OSError | None:
        """Return an error if this process cannot list, enter or write one of the folders. Otherwise, return None.

        If the root does not exist, only the nearest existing parent folder is checked. If the process cannot enter a
        parent folder, the error contains the path of the root.
        """
        try:
            top = nearest_existing(self.root)
            below = [Path(found) for found, _, _ in os.walk(top)] if top == self.root else []
            return next((refused for folder in (top, *below) if (refused := folder_refusal(folder))), None)
        except OSError as error:
            return error


def nearest_existing(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists. Raises PermissionError if a parent cannot be entered."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def folder_refusal(folder: Path) -> OSError | None:
    """Return an error if this process cannot list, enter or write an existing folder. Otherwise, return None."""
    number = None
    disk = os.statvfs(folder)
    if not folder.is_dir():
        number = errno.ENOTDIR
    elif disk.f_flag & os.ST_RDONLY:
        number = errno.EROFS
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        number = errno.EACCES
    elif _is_full(disk):
        number = errno.ENOSPC
    return None if number is None else OSError(number, os.strerror(number), str(folder))


def full_folders(folders: Mapping[str, str]) -> Mapping[str, str]:
    """Return the folders whose disk is full. The keys of `folders` are names of settings."""
    full = {}
    for name, folder in folders.items():
        with suppress(OSError):
            if _is_full(os.statvfs(nearest_existing(Path(folder)))):
                full[name] = folder
    return full


def _is_full(disk: os.statvfs_result) -> bool:
    return disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES


def local_folder(uri: str) -> LocalFolder | None:
    """Return the folder of a path or a `file:` URI. Return None for other storage.

    >>> local_folder("file:///var/lib/checkpoint").root, local_folder("s3a://bucket/checkpoint")
    (PosixPath('/var/lib/checkpoint'), None)
    """
    path = local_path(uri)
    return None if path is None else LocalFolder(path)
