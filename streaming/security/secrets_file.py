"""Create the file with the secrets for Kafka's Java client. Only the user account of the monitor can read it.

The file exists while the monitor runs. The file is in a private folder inside the temporary folder TMPDIR (see
`private_folder`). Executors on other machines must find the file at the same path. Each cluster has a separate file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from streaming.private_folder import private_folder
from streaming.temporary_folder import raising_temporary_folder_error

_FOLDER_PREFIX = "kafka-rebalance-monitor-secrets-"


@contextmanager
def secrets_file(secrets: Mapping[str, str]) -> Iterator[Path | None]:
    """Create the file for the duration of the `with` block. Without secrets, create no file and yield None."""
    if not secrets:
        yield None
        return
    with private_folder(_FOLDER_PREFIX) as folder:
        file = folder.path / "client.properties"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with raising_temporary_folder_error(), os.fdopen(os.open(file, flags, 0o600), "w") as output:
            output.write(java_properties(secrets))
        yield file


def java_properties(values: Mapping[str, str]) -> str:
    r"""Return the text of a Java properties file.

    Every character of a value is escaped, so no character has a special meaning.

    >>> print(java_properties({"ssl.key.password": "a="}), end="")
    ssl.key.password=\u0061\u003d
    """
    return "".join(f"{name}={_escape(value)}\n" for name, value in values.items())


def _escape(value: str) -> str:
    units = value.encode("utf-16-be").hex()
    return "".join(f"\\u{units[position : position + 4]}" for position in range(0, len(units), 4))
