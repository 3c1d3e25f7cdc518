"""Decide whether a file with secrets is private enough. The same rules apply to all such files.

1. A file is refused if every user of the machine can read or write it, or if its group can write it.
2. The file's group is allowed to read the file, because Kubernetes mounts a secret for the group of a pod (mode 0440).
3. Exception: on a read-only file system, the monitor accepts a file that every user can read, and logs a warning. The
   reason is that no user can change the mode there. Containers have their secrets on such a file system. The mode is
   0644 in Kubernetes (unless `defaultMode` is set), and 0444 in Docker.

For a symbolic link, the rules apply to its target.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OPEN_TO_OTHERS = stat.S_IRWXO | stat.S_IWGRP


def refusal_reason(file: Path) -> str | None:
    """Return the reason and the remedy if a file is refused, or None if it is accepted.

    Raises OSError if no file exists.
    """
    mode = file.stat().st_mode
    if not mode & _OPEN_TO_OTHERS or is_tolerated(file):
        return None
    return f"{file} is open to others (mode {stat.S_IMODE(mode):04o}): chmod 600 {file}"


def is_tolerated(file: Path) -> bool:
    """Return whether a file is accepted although other users can read it (rule 3)."""
    return bool(file.stat().st_mode & _OPEN_TO_OTHERS) and bool(os.statvfs(file).f_flag & os.ST_RDONLY)
