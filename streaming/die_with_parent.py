"""Become a command that the kernel kills with its parent: `die_with_parent.py PARENT_PID COMMAND...`.

A program of its own and not a function run between fork and exec: our process has threads, and Python code run there
can deadlock. The kernel keeps the setting across exec. Run with `-I -S`: only the standard library, some 15 ms.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>


def main() -> None:
    """Tie this process to its parent and become the command."""
    parent_pid, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:  # it died before the kernel knew of the tie
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main()
