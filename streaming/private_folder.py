"""Create a private folder in TMPDIR.

1. The folder is removed when its `with` block ends. If the owner process is killed, the next process that uses the same
   prefix removes the folder.
2. The owner locks a file in the folder. A child process that inherits the file descriptor `lock` shares the lock. So
   the folder remains until all processes with the lock have ended.
3. Every user can create a file or folder with the same prefix in TMPDIR. So this module opens only folders that no
   other user can access. The lock must be a regular file, because opening a FIFO can block.
4. A folder without a lock file is not removed, because a different process may still be creating the folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from streaming.temporary_folder import raising_temporary_folder_error

_LOCK = "lock"
_CONTENT = "content"


@dataclass(frozen=True, slots=True)
class PrivateFolder:
    """A private folder. Child processes that use the folder must inherit the file descriptor `lock`."""

    path: Path
    lock: int


@contextmanager
def private_folder(prefix: str) -> Iterator[PrivateFolder]:
    """Create a folder that exists until the `with` block ends (rules 1 and 2). Raises TemporaryFolderError."""
    remove_leftovers(prefix)
    with raising_temporary_folder_error():
        folder = Path(tempfile.mkdtemp(prefix=prefix))  # mkdtemp sets mode 0700
    try:
        with ExitStack() as stack:
            with raising_temporary_folder_error():
                new = os.open(folder / "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                lock = stack.enter_context(os.fdopen(new, "w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
                (folder / _CONTENT).mkdir(mode=0o700)
                (folder / "new").rename(folder / _LOCK)  # after flock: an unlocked file marks an old folder
            yield PrivateFolder(folder / _CONTENT, lock.fileno())
    finally:
        _remove(folder)


def remove_leftovers(prefix: str) -> None:
    """Remove the folders of processes that have ended (rules 1 to 4). Raises TemporaryFolderError."""
    with raising_temporary_folder_error():
        leftovers = list(Path(tempfile.gettempdir()).glob(f"{prefix}*"))
    for leftover in leftovers:
        # An OSError means that the owner is alive or that the folder belongs to a different user.
        with suppress(OSError), _open(leftover, os.O_DIRECTORY) as folder:
            status = os.fstat(folder)
            if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                continue
            with _open(_LOCK, os.O_NONBLOCK, folder) as lock:
                if stat.S_ISREG(os.fstat(lock).st_mode):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(leftover)


def _remove(folder: Path) -> None:
    """Remove the lock last. If this process is killed before that, a later process can remove the folder."""
    shutil.rmtree(folder / _CONTENT, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _open(path: Path | str, flags: int, folder: int | None = None) -> Iterator[int]:
    """Open an existing file or folder, and yield its file descriptor. Raises OSError for a symbolic link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
