"""A file that only we can read, with what Kafka's Java client has to know and nobody else.

It lies in a folder of its own in the temporary folder (TMPDIR) while the monitor runs. Executors on other machines must
see it at the same path. A monitor that is killed leaves it behind; the next one to start removes it. Several clusters
have a file each.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

_FOLDER_PREFIX = "kafka-rebalance-monitor-secrets-"
_FILE_NAME = "client.properties"


@contextmanager
def secrets_file(secrets: Mapping[str, str]) -> Iterator[Path | None]:
    """Keep the file while the block runs; no file, and None, where there are no secrets."""
    if not secrets:
        yield None
        return
    _remove_leftovers(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX))  # made so that nobody else may enter
    try:
        with os.fdopen(os.open(folder / "new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            (folder / "new").rename(folder / _FILE_NAME)  # without a lock it would be taken for a leftover
            file.write(java_properties(secrets))
            file.flush()
            yield folder / _FILE_NAME
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def java_properties(values: Mapping[str, str]) -> str:
    r"""Write a Java properties file in which every letter of a value is escaped: none can mean anything.

    >>> print(java_properties({"ssl.key.password": "a="}), end="")
    ssl.key.password=\u0061\u003d
    """
    return "".join(f"{name}={_escaped(value)}\n" for name, value in values.items())


def _escaped(value: str) -> str:
    units = value.encode("utf-16-be").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed monitors of ours left: files whose lock nobody holds any more.

    Anybody may put anything of such a name into the temporary folder. So only a folder that nobody else can write is
    entered, and only a regular file is looked at: to open a FIFO would wait for a writer for ever.
    """
    for leftover in folder.glob(f"{_FOLDER_PREFIX}*"):
        with suppress(OSError), _opened(leftover, os.O_DIRECTORY) as place:  # its owner lives, or is somebody else
            if not _is_private(os.fstat(place)):
                continue
            with _opened(_FILE_NAME, os.O_NONBLOCK, place) as file:
                if stat.S_ISREG(os.fstat(file).st_mode):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(leftover, ignore_errors=True)


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
