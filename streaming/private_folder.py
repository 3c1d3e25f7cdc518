"""A folder in the temporary folder (TMPDIR) that nobody else may enter, and that outlives no kill for long.

1. It is removed when its block ends. If its owner is killed, the next one to make a folder of that prefix removes it.
2. Its owner holds the lock of a file in it. A child that is given `lock` holds the same lock: the folder stays until
   both are gone.
3. Anybody may put anything of such a name into the temporary folder. So only a folder that nobody else can write is
   entered, and only a regular file is taken for its lock: to open a FIFO would wait for a writer for ever.
4. A folder without a lock is left alone. It is somebody's who is making it just now.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_LOCK = "lock"
_CONTENT = "content"


@dataclass(frozen=True, slots=True)
class PrivateFolder:
    """`path` is empty at first. `lock` is the descriptor for children that use the folder, too."""

    path: Path
    lock: int


@contextmanager
def private_folder(prefix: str) -> Iterator[PrivateFolder]:
    """Keep a folder while the block runs, by rules 1 and 2."""
    _remove_leftovers(Path(tempfile.gettempdir()), prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix))  # made so that nobody else may enter
    try:
        with os.fdopen(os.open(folder / "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / _CONTENT).mkdir(mode=0o700)
            (folder / "new").rename(folder / _LOCK)  # not before it is locked, or it would be taken for a leftover
            yield PrivateFolder(folder / _CONTENT, lock.fileno())
    finally:
        _remove(folder)


def _remove_leftovers(temporary: Path, prefix: str) -> None:
    """Rules 1 to 4."""
    for leftover in temporary.glob(f"{prefix}*"):
        with suppress(OSError), _opened(leftover, os.O_DIRECTORY) as place:  # its owner lives, or is somebody else
            if not _is_private(os.fstat(place)):
                continue
            with _opened(_LOCK, os.O_NONBLOCK, place) as lock:
                if stat.S_ISREG(os.fstat(lock).st_mode):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(leftover)


def _remove(folder: Path) -> None:
    """The lock goes last: whoever is killed meanwhile leaves what the next one removes."""
    shutil.rmtree(folder / _CONTENT, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _opened(path: Path | str, flags: int, folder: int | None = None) -> Iterator[int]:
    """A descriptor of something that is there and no link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_private(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
