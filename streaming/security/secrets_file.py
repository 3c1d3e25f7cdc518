"""A file that only we can read, with what Kafka's Java client has to know and nobody else.

It lies in a folder of its own in the temporary folder (TMPDIR) while the monitor runs. Executors on other machines must
see it at the same path. A monitor that is killed leaves it behind; the next one to start removes it. Several clusters
have a file each.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
    """Remove what killed monitors of ours left: files whose lock nobody holds any more."""
    for file in folder.glob(f"{_FOLDER_PREFIX}*/{_FILE_NAME}"):
        try:
            with file.open() as left:
                fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(file.parent, ignore_errors=True)
        except OSError:  # noqa: PERF203 - its owner lives, or is somebody else
            continue
