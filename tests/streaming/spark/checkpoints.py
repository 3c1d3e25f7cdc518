"""A real checkpoint to damage, in `samples/checkpoint.tar.gz`: two groups, killed with -9 while it ran batch 21.

Left out of the archive: notes of most batches long done, and most checksums of changes.
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
    """A copy of the checkpoint below a folder, with positions that tables had when it was made."""
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
    """Leave a file of no bytes, as a power failure does."""
    path.write_bytes(b"")


def truncate(path: Path) -> None:
    """Leave the first half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def fill_with_garbage(path: Path) -> None:
    """Replace each byte."""
    path.write_bytes(bytes((7 * at + 13) % 256 for at in range(max(40, path.stat().st_size))))


def remove(path: Path) -> None:
    """Remove the file and its checksums."""
    path.unlink()
    forget_checksums(path)


def forget_checksums(path: Path) -> None:
    """Remove the checksums, as a copy made by hand leaves them behind."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def as_nobody(ask: Callable[[], object], folder: Path) -> str:
    """What is raised when a process without rights of its own asks. Root passes every mode, so a child gives it up."""
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()

    def child() -> None:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            ask()
            theirs.send("")
        except Exception as error:  # noqa: BLE001 - whatever it is, the test compares it
            theirs.send(f"{type(error).__name__}: {error}")

    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    process = context.Process(target=child)
    process.start()
    raised: str = mine.recv()
    process.join()
    return raised
