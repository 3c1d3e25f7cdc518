"""Errors that an operator can fix.

For such an error, the monitor prints one line with the remedy and no traceback.
"""

from __future__ import annotations

import errno
import os
from typing import ClassVar, Final

MAY_PASS: Final = 1
"""Exit code if a restart can succeed."""
STAYS: Final = 78
"""Exit code if every restart fails until an operator changes something (EX_CONFIG of sysexits.h)."""

REPAIR_REMEDY: Final = "run `rebalance-monitor rebuild --repair-tables` (damaged files are moved, not deleted)"
"""The remedy for damaged files of a table."""


class RemedyError(Exception):
    """An error that the operator can fix. The message is one line with the error and the remedy.

    Example: `Java 11 found at /usr/bin/java, but 17 or 21 is required: apt install openjdk-17-jre-headless, or set
    JAVA_HOME`.

    `exit_code` is the exit code of `rebalance-monitor run`. With `MAY_PASS`, a supervisor restarts the monitor, because
    the problem can end without a change. With `STAYS`, a supervisor does not restart it, because an operator must first
    change something on this machine.
    """

    exit_code: ClassVar[int] = MAY_PASS


def storage_remedy(error: OSError) -> str:
    """Return the remedy for a failed access to a file or folder.

    >>> storage_remedy(OSError(errno.ENOSPC, "No space left on device"))
    'make space on its disk'
    """
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return "make space on its disk"
    if error.errno == errno.EROFS:
        return "mount its disk as writable"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"let the user of the monitor (id {os.geteuid()}) read and write it"
    return "check its storage"
