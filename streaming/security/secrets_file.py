"""A file that only we can read, with what Kafka's Java client has to know and nobody else.

It lies in a folder of its own in the temporary folder (TMPDIR) while the monitor runs (`private_folder`). Executors on
other machines must see it at the same path. Several clusters have a file each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from streaming.private_folder import private_folder

_FOLDER_PREFIX = "kafka-rebalance-monitor-secrets-"


@contextmanager
def secrets_file(secrets: Mapping[str, str]) -> Iterator[Path | None]:
    """Keep the file while the block runs; no file, and None, where there are no secrets."""
    if not secrets:
        yield None
        return
    with private_folder(_FOLDER_PREFIX) as folder:
        file = folder.path / "client.properties"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
            written.write(java_properties(secrets))
        yield file


def java_properties(values: Mapping[str, str]) -> str:
    r"""Write a Java properties file in which every letter of a value is escaped: none can mean anything.

    >>> print(java_properties({"ssl.key.password": "a="}), end="")
    ssl.key.password=\u0061\u003d
    """
    return "".join(f"{name}={_escaped(value)}\n" for name, value in values.items())


def _escaped(value: str) -> str:
    units = value.encode("utf-16-be").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
