"""Types of settings that are paths. A local path becomes absolute, and `~` at its start is the home folder."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlparse

from pydantic import AfterValidator

from streaming.config.secret_settings import ADDRESS


def absolute_path(path: str | Path) -> Path:
    """Return the absolute path of a local path.

    Raises ValueError if the system does not know the home folder. The message does not contain the path, because a user
    can write a secret into the wrong setting by mistake.
    """
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError:
        raise ValueError("the system does not know the home folder (~): set an absolute path") from None


def local_path(uri: str) -> Path | None:
    """Return the local path of a path or a `file:` URI. Return None for other storage.

    >>> local_path("/var/lib/a b#1"), local_path("file:///var/lib/a%20b%231"), local_path("s3a://bucket/checkpoint")
    (PosixPath('/var/lib/a b#1'), PosixPath('/var/lib/a b#1'), None)
    """
    if uri.startswith("file:"):
        return Path(unquote(urlparse(uri).path))
    return None if "://" in uri else Path(uri)


def canonical_location(uri: str) -> str:
    """Return the canonical name of a folder or URI. Symbolic links are resolved."""
    path = local_path(uri)
    return uri.rstrip("/") if path is None else os.path.realpath(path)  # Path.resolve() fails for a loop of links


def are_disjoint(first: str, second: str) -> bool:
    """Return True if two folders are different and neither folder contains the other.

    The function follows symbolic links, and converts `file:` URIs to paths.

    >>> are_disjoint("/x/a", "/x/ab"), are_disjoint("/x", "/x/a"), are_disjoint("/x/", "file:///y/../x")
    (True, False, False)
    """
    first, second = (f"{canonical_location(one).rstrip('/')}/" for one in (first, second))
    return not first.startswith(second) and not second.startswith(first)


def _make_absolute(path: str) -> str:
    if "://" in path:
        return path
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path):
        raise ValueError(
            "a path with a scheme must start with SCHEME://, and the first folder of a local path must not contain a"
            " colon"
        )
    return str(absolute_path(path))


def check_tables_path(path: str) -> str:
    """Return the path. Raises ValueError if delta-rs could not write to it, or would write to the wrong folder."""
    local = local_path(path)
    if local is None:
        return path
    if re.search(r"[\x00-\x1f\x7f\[\]\\^|]|%[0-9A-Fa-f]{2}", str(local)) or (path.startswith("file:") and "#" in path):
        raise ValueError(
            r"the path must not contain control characters, one of the characters [ ] \ ^ |, or % and two hexadecimal"
            " digits, because delta-rs cannot write tables to such a path. A URI must also not contain #"
        )
    return path


AbsolutePath = Annotated[str, AfterValidator(_make_absolute), ADDRESS]
"""A path that Spark can access: a local path or a URI."""
TablesPath = Annotated[AbsolutePath, AfterValidator(check_tables_path)]
"""A path to which delta-rs can write tables. Only local paths are checked."""
OptionalFile = Annotated[str, AfterValidator(lambda file: str(absolute_path(file)) if file else "")]
"""A local file. An empty text means that the setting is not set."""
