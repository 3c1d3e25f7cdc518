"""Run a command that the kernel kills when its parent ends: `die_with_parent.py PARENT_PID COMMAND...`.

The monitor has threads. In a process with threads, Python code between fork and exec can cause a deadlock. So a
separate program sets the parent-death signal and then calls exec. The call of exec does not change the signal. With
`python -I -S`, this program starts in about 15 ms.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # from <sys/prctl.h>


def main() -> None:
    """Set the parent-death signal of this process. Then replace the process with the command."""
    parent_pid, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:  # the parent ended before the signal was set
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - no shell is intended


if __name__ == "__main__":
    main()
