"""Manages the folder of a demo. A demo clears and locks the folder at its start, and keeps the files at its end.

- `kafka-rebalance-monitor-demo` marks a folder of the demo, and is locked while a demo runs.
- `monitor.toml`: settings of the monitor.
- `logs/`: logs of the monitor and the clients.
- `broker/`: log and topics of Kafka.
- `tables/` and `checkpoint/`: output of the monitor.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.config.types.paths import check_tables_path
from streaming.demo.load import DemoError

MARKER = "kafka-rebalance-monitor-demo"


@contextmanager
def demo_folder(folder: Path) -> Iterator[Path]:
    """Create or clear the folder and lock it. Yield its absolute path.

    Raises DemoError if a different demo runs in the folder, or if the folder cannot be used. If the folder contains
    files that no demo created, the function raises DemoError and does not change the files.
    """
    folder = folder.absolute()
    with _convert_errors(folder):
        check_tables_path(str(folder / "tables"))
        marker = _lock_marker(folder)
    try:
        with _convert_errors(folder):
            _clear(folder)
            (folder / "logs").mkdir()
        yield folder
    finally:
        os.close(marker)


@contextmanager
def _convert_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise DemoError(f"the folder {folder} cannot be used ({error}): set --folder to a different folder") from error


def _lock_marker(folder: Path) -> int:
    """Lock the marker file. The kernel releases the lock when this process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MARKER).is_file() and any(folder.iterdir()):
        raise DemoError(
            f"the folder {folder} contains files that no demo created, so it was not cleared: set --folder to a"
            " different folder"
        )
    marker = os.open(folder / MARKER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner_pid = os.pread(marker, 20, 0).decode()
        os.close(marker)
        raise DemoError(
            f"another demo runs in {folder} (process {owner_pid}): stop the other demo, or set --folder and"
            " --metrics-port"
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
