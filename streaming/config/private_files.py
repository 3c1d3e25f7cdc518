"""Checks that other users cannot read or change a file with secrets, and hides secrets in messages about files.

1. A file is refused if every user of the machine can read or write the file. A file is also refused if its user group
   can write the file.
2. The user group of the file may read the file. For example, Kubernetes mounts a secret for the user group of a pod
   (mode 0440).
3. Exception: on a read-only file system, a file that every user can read is accepted with a warning. Nobody can change
   the mode of a file on a read-only file system. Kubernetes and Docker mount secrets on a read-only file system. By
   default, the mode of a mounted secret is 0644 in Kubernetes and 0444 in Docker.

The rules are for the target of a symbolic link, not for the link.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OPEN_TO_OTHERS = stat.S_IRWXO | stat.S_IWGRP


def refusal_reason(file: Path) -> str | None:
    """Return the reason why a file is refused, and the remedy. Return None if the file is accepted.

    Raises OSError if the file does not exist.
    """
    mode = file.stat().st_mode
    if not mode & _OPEN_TO_OTHERS or is_tolerated(file):
        return None
    return f"{file} is accessible to other users (mode {stat.S_IMODE(mode):04o}): chmod 600 {file}"


def shown_file(file: str | Path, otherwise: str) -> str:
    """Return the absolute path `file` for a message. If the path is possibly a secret, return `otherwise`.

    A user can write a password, or a whole private key, into a setting that needs the path of a file. Such a text is
    not absolute, so it becomes a path in the working folder. A path is shown if the file exists. If the file is
    missing, the path is shown only if its folder exists and is neither the root folder nor the working folder.
    """
    folder = os.path.dirname(file)  # noqa: PTH120 - no error for a text that is too long for a path
    is_path = folder != "/" and os.path.isdir(folder) and not os.path.samefile(folder, os.curdir)  # noqa: PTH112, PTH121
    return str(file) if is_path or os.path.lexists(file) else otherwise


def is_tolerated(file: Path) -> bool:
    """Return True if a file is accepted because of rule 3."""
    return bool(file.stat().st_mode & _OPEN_TO_OTHERS) and bool(os.statvfs(file).f_flag & os.ST_RDONLY)
