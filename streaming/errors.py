"""What an operator can put right: one line that names the remedy, and no traceback."""

from __future__ import annotations

import errno
import os
from typing import ClassVar, Final

MAY_PASS: Final = 1
STAYS: Final = 78
"""EX_CONFIG of sysexits.h."""


class RemedyError(Exception):
    """Something the operator can put right. Its text is one line: what is missing or wrong, then the remedy.

    Commands print it and exit with a code other than 0. Example: `Java 11 found at /usr/bin/java, but 17 or 21 is
    wanted: apt install openjdk-17-jre-headless, or set JAVA_HOME`.

    `exit_code` is what `rebalance-monitor run` ends with, for what supervises it: `MAY_PASS` where another start may
    go well (a broker that does not answer yet), `STAYS` where none will until somebody changes something here.
    """

    exit_code: ClassVar[int] = MAY_PASS


def storage_remedy(error: OSError) -> str:
    """What to do about a file or folder that the system refused, to stand behind a colon.

    >>> storage_remedy(OSError(errno.ENOSPC, "No space left on device"))
    'free some space on its disk'
    """
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return "free some space on its disk"
    if error.errno == errno.EROFS:
        return "mount its disk writable"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"let the user of the monitor (id {os.geteuid()}) read and write it"
    return "check its disk"
