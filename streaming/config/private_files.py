"""Decide whether a file with secrets is private enough. The same rules apply to all such files.

1. A file is refused if every user of the machine can read or write it, or if its group can write it.
2. Its group may read it, because Kubernetes mounts a secret for the group of a pod (mode 0440).
3. On a read-only file system, no user can change the mode. Containers have their secrets on such a file system:
   Kubernetes with mode 0644 unless `defaultMode` differs, Docker with mode 0444. There, the monitor uses a file that
   every user can read, and logs a warning.

For a symbolic link, the rules apply to its target.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OPEN_TO_OTHERS = stat.S_IRWXO | stat.S_IWGRP


def refusal_reason(file: Path) -> str | None:
    """Return why a file is refused, with the remedy, or None if it is accepted. Raises OSError if it does not exist."""
    mode = file.stat().st_mode
    if not mode & _OPEN_TO_OTHERS or is_tolerated(file):
        return None
    return f"{file} is open to others (mode {stat.S_IMODE(mode):04o}): chmod 600 {file}"


def is_tolerated(file: Path) -> bool:
    """Return whether a file is accepted although other users can read it (rule 3)."""
    return bool(file.stat().st_mode & _OPEN_TO_OTHERS) and bool(os.statvfs(file).f_flag & os.ST_RDONLY)
