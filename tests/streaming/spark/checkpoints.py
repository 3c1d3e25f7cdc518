"""A real checkpoint that tests damage: `samples/checkpoint.tar.gz`.

Its monitor watched two groups and was killed with `kill -9` during batch 21. The archive lacks the log entries of most
old batches, and most checksums of state changes.
"""

from __future__ import annotations

import binascii
import json
import multiprocessing
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

from streaming.spark.checkpoint import CHECKPOINT_VERSION

SAMPLE = Path(__file__).with_name("samples") / "checkpoint.tar.gz"
NOBODY = 65534


def unpack_checkpoint(into: Path) -> Path:
    """Unpack the checkpoint into a folder, add the positions that its tables had, and return its path."""
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(into, filter="data")
    checkpoint = into / "checkpoint"
    (checkpoint / "feedback").mkdir()
    name = "origin/rebalances.positions"
    (checkpoint / name).write_bytes(bytes(range(24)))
    identity = json.loads((checkpoint / "monitor.json").read_bytes())
    identity["version"] = CHECKPOINT_VERSION
    identity["origin"][name] = binascii.crc32(bytes(range(24)))
    (checkpoint / "monitor.json").write_text(json.dumps(identity))
    for path in (checkpoint / name, checkpoint / "monitor.json"):
        forget_checksums(path)
    return checkpoint


def empty(path: Path) -> None:
    """Empty the file, as a power failure does."""
    path.write_bytes(b"")


def truncate(path: Path) -> None:
    """Keep only the first half of the file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def fill_with_garbage(path: Path) -> None:
    """Replace every byte of the file."""
    path.write_bytes(bytes((7 * at + 13) % 256 for at in range(max(40, path.stat().st_size))))


def remove(path: Path) -> None:
    """Remove the file and its checksums."""
    path.unlink()
    forget_checksums(path)


def forget_checksums(path: Path) -> None:
    """Remove the checksum file. A manual copy often lacks it."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def as_nobody(action: Callable[[], object], folder: Path) -> str:
    """Run `action` as the user `nobody` and return the error that it raises, or an empty string.

    Root may open every file. So a child process gives up root's permissions first.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe()

    def child() -> None:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            action()
            sender.send("")
        except Exception as error:  # noqa: BLE001 - the test compares every error
            sender.send(f"{type(error).__name__}: {error}")

    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    process = context.Process(target=child)
    process.start()
    raised: str = receiver.recv()
    process.join()
    return raised
