"""Run a command that the kernel kills when its parent ends: `die_with_parent.py PARENT_PID COMMAND...`.

This is a separate program, not a function between fork and exec. The monitor has threads, so Python code between fork
and exec can cause a deadlock. The parent-death signal stays set after exec. Run it with `-I -S`. Then Python loads only
the standard library, which takes about 15 ms.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>


def main() -> None:
    """Set the parent-death signal of this process and replace it with the command."""
    parent_pid, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:  # the parent ended before the signal was set
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - no shell is intended


if __name__ == "__main__":
    main()
