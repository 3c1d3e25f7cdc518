"""The demo's folder: emptied when a demo starts, its own while it runs, kept until the next one.

kafka-rebalance-monitor-demo    marks the folder as a demo's; locked while one runs
monitor.toml                    what the monitor was told
logs/                           what the monitor and the clients say
broker/                         Kafka's log and topics
tables/, checkpoint/            what the monitor writes
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.demo.load import DemoError

MARKER = "kafka-rebalance-monitor-demo"


@contextmanager
def demo_folder(folder: Path) -> Iterator[Path]:
    """Make or clear the folder and hold it. Gives its absolute path.

    Raises DemoError if another demo runs in it, if it isn't a demo's (nothing in it is touched), or can't be used.
    """
    folder = folder.absolute()
    with _said_in_one_line(folder):
        marker = _claim(folder)
    try:
        with _said_in_one_line(folder):
            _clear(folder)
            (folder / "logs").mkdir()
        yield folder
    finally:
        os.close(marker)


@contextmanager
def _said_in_one_line(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DemoError(f"the folder {folder} can't be used ({error}): choose another by --folder") from error


def _claim(folder: Path) -> int:
    """Lock the marker; the lock dies with us."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MARKER).is_file() and any(folder.iterdir()):
        raise DemoError(f"the folder {folder} is not a demo's, so it is not cleared: choose another by --folder")
    marker = os.open(folder / MARKER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(marker, 20, 0).decode()
        os.close(marker)
        raise DemoError(
            f"another demo runs in {folder} (process {holder}): stop it, or set --folder and --metrics-port"
        ) from None
    os.ftruncate(marker, 0)
    os.pwrite(marker, str(os.getpid()).encode(), 0)
    return marker


def _clear(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != MARKER:
            entry.unlink()
