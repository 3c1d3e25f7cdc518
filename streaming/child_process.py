"""Processes we start that never outlive us, however we end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.config.environment import without_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LAUNCHER = Path(__file__).with_name("die_with_parent.py")


def tied_to_us(command: Sequence[str]) -> list[str]:
    """Return the command line that runs a command such that the kernel kills it when the thread that starts it ends."""
    return [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), *command]


class ChildProcess:
    """A running process that the kernel kills when this one ends, even by `kill -9`.

    Its standard output and error are appended to a file. It has a session of its own: a Ctrl-C meant for us doesn't
    reach it, so that we stop our children in the order we choose. Unless an environment is given, it has ours without
    the settings: any of them may hold a secret.
    """

    def __init__(self, command: Sequence[str], output: Path, environment: Mapping[str, str] | None = None) -> None:
        self.output = output
        self._command = tied_to_us(command)
        self._environment = without_settings(os.environ) if environment is None else dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._error: OSError | None = None
        started = threading.Event()
        # The kernel's "parent" is the thread that forked. This one lives as long as the child or as our process,
        # whichever ends first; a caller's own thread might end long before the child should.
        self._parent_thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._parent_thread.start()
        started.wait()
        if self._error is not None:
            raise self._error

    @property
    def pid(self) -> int:
        """The process id of the command itself: the launcher becomes it."""
        return self._started().pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs, else its exit code (negative: the signal that ended it)."""
        return self._started().poll()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait for its end; False if it still runs after that long."""
        try:
            self._started().wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ask_to_end(self) -> None:
        """Send SIGTERM and return at once."""
        self._started().terminate()

    def stop(self, grace_seconds: float) -> None:
        """Ask it to end, kill it if it hasn't after `grace_seconds`, and return when it is gone."""
        self.ask_to_end()
        if not self.wait(grace_seconds):
            self.kill()

    def kill(self) -> None:
        """End it at once (SIGKILL) and return when it is gone."""
        self._started().kill()
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
        except OSError as error:
            self._error = error
        finally:
            started.set()
        if self._process is not None:
            self._process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the process was never started")  # unreachable: __init__ has raised
        return self._process
