"""Start child processes that always end when this process ends, even if this process is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from streaming.config.environment import without_settings

_LAUNCHER = Path(__file__).with_name("die_with_parent.py")


def with_parent_death_signal(command: Sequence[str]) -> list[str]:
    """Return a command line that runs `command`. The kernel kills the process when its parent thread ends."""
    return [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), *command]


class ChildProcess:
    """A child process. When this process ends, the kernel kills the child, even after `kill -9` of this process.

    Its output is appended to the file `output`. Ctrl-C does not stop the child, because it has a separate session. So
    this process can stop its children in any order. By default, the child gets the environment variables of this
    process without the monitor's settings, because a setting can contain a secret.
    """

    def __init__(self, command: Sequence[str], output: Path, environment: Mapping[str, str] | None = None) -> None:
        self.output = output
        self._command = with_parent_death_signal(command)
        self._environment = without_settings(os.environ) if environment is None else dict(environment)
        self._process: subprocess.Popen[bytes]
        self._error: Exception | None = None
        started = threading.Event()
        # The kernel kills the child when the thread that started the child ends. The caller's thread might end too
        # early. So a separate thread starts the child, and runs until the child or this process ends.
        self._parent_thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._parent_thread.start()
        started.wait()
        if self._error is not None:
            raise self._error

    @property
    def pid(self) -> int:
        """The process id of the command. The command replaces the launcher, so both have the same process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, or None while the process runs. If a signal ended the process, the code is negative."""
        return self._process.poll()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the process ends. Return False if the process still runs after the timeout."""
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ask_to_end(self) -> None:
        """Send SIGTERM to the process, and do not wait."""
        self._process.terminate()

    def stop(self, grace_seconds: float) -> None:
        """Send SIGTERM. Kill the process if it still runs after `grace_seconds`. Wait until the process has ended."""
        self.ask_to_end()
        if not self.wait(grace_seconds):
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL and wait until the process has ended."""
        self._process.kill()
        self.wait()

    def _run(self, started: threading.Event) -> None:
        try:
            with self.output.open("ab") as output:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=self._environment,
                    start_new_session=True,
                )
        except Exception as error:  # noqa: BLE001 - the constructor raises it in the caller's thread
            self._error = error
            return
        finally:
            started.set()
        self._process.wait()
