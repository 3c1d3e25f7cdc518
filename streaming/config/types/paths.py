"""Types of settings that are paths. A local path becomes absolute, and `~` at its start is the home folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

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


def _make_absolute(path: str) -> str:
    if "://" in path:
        return path
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path):
        raise ValueError(
            "a path with a scheme must start with SCHEME://, and the first folder of a local path must not contain a"
            " colon"
        )
    return str(absolute_path(path))


AbsolutePath = Annotated[str, AfterValidator(_make_absolute), ADDRESS]
"""A path that Spark can access: a local path or a URI."""
OptionalFile = Annotated[str, AfterValidator(lambda file: str(absolute_path(file)) if file else "")]
"""A local file. An empty text means that the setting is not set."""
