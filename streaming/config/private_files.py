"""Which files with secrets are private enough: one rule for all of them.

1. A file that every user of the machine may read or write, or that its group may write, is refused.
2. The group may read it: Kubernetes mounts a secret for a pod's group (0440).
3. On a read-only file system nobody can change the mode, and containers have their secrets on one: Kubernetes with mode
   0644 unless `defaultMode` differs, Docker with 0444. There, a file that all may read is used, and warned about.

A link counts as the file that it leads to.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OF_OTHERS = stat.S_IRWXO | stat.S_IWGRP


def refusal(file: Path) -> str | None:
    """Why a file is refused, with the remedy; None if it is not. Raises OSError if it does not exist."""
    mode = file.stat().st_mode
    if not mode & _OF_OTHERS or is_tolerated(file):
        return None
    return f"{file} is open to others (mode {stat.S_IMODE(mode):04o}): chmod 600 {file}"


def is_tolerated(file: Path) -> bool:
    """Whether a file is used although others may read it (rule 3)."""
    return bool(file.stat().st_mode & _OF_OTHERS) and bool(os.statvfs(file).f_flag & os.ST_RDONLY)
