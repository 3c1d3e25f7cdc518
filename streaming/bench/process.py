"""A cold process of the benchmark, and the memory it and its children take together."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import psutil
from typing_extensions import Self

from streaming.bench.fill import BenchError
from streaming.child_process import ChildProcess
from streaming.config.load import ENVIRONMENT_PREFIX

_SAMPLE_SECONDS = 0.5
_GRACE_SECONDS = 30.0
_SHOWN_LINES = 5

MONITOR = (str(Path(sys.executable).with_name("rebalance-monitor")), "run", "--log-level", "DEBUG")
PLAIN_READ = (sys.executable, "-m", "streaming.bench.plain_read")


def monitor_environment(bootstrap_servers: str, folder: Path, port: int) -> Mapping[str, str]:
    """Settings for a monitor with all its files in a new folder. Other settings of the caller's environment stay."""
    settings = {
        "KAFKA__BOOTSTRAP_SERVERS": bootstrap_servers,
        "KAFKA__CLUSTER": "bench",
        "PATHS__CHECKPOINT": str(folder / "checkpoint"),
        "PATHS__TABLES": str(folder / "tables"),
        "METRICS__HOST": "127.0.0.1",
        "METRICS__PORT": str(port),
    }
    return {**os.environ, **{ENVIRONMENT_PREFIX + name: value for name, value in settings.items()}}


class MeasuredProcess:
    """Runs a command until the end of the `with` block and watches its memory. `started_seconds` is since the epoch."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log_path = folder / "process.log"
        self.started_seconds = time.time()
        self._process = ChildProcess(command, self.log_path, environment)
        self._memory = MemoryWatch(self._process.pid)

    @property
    def peak_memory_bytes(self) -> int:
        """The most that all its processes took at one time so far."""
        return self._memory.peak_bytes

    def check(self) -> None:
        """Raise BenchError with the end of its log if it has ended by itself."""
        if self._process.exit_code is not None:
            last = self.log_path.read_text(errors="replace").splitlines()[-_SHOWN_LINES:]
            ended = f"the measured process ended with code {self._process.exit_code}"
            raise BenchError(f"{ended}: {' / '.join(last)} (log: {self.log_path})")

    def __enter__(self) -> Self:
        """Start watching its memory."""
        self._memory.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ask it to end and wait until its children are gone too: the next one is to have the machine for itself."""
        self._memory.stop()
        children = _tree(self._process.pid)[1:]
        self._process.stop(_GRACE_SECONDS)
        for left in psutil.wait_procs(children, timeout=_GRACE_SECONDS)[1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                left.kill()


class MemoryWatch:
    """Samples the memory of a process and all below it."""

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)

    def start(self) -> None:
        """Start sampling."""
        self._thread.start()

    def stop(self) -> None:
        """Sample a last time and stop."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, memory_bytes(self._pid))
            if self._stop.wait(_SAMPLE_SECONDS):
                return


def memory_bytes(pid: int) -> int:
    """The proportional set size of a process and all below it: a page that n of them share counts 1/n in each.

    Python's workers are forked and share most of their pages: adding up their resident sizes would count those twice.
    Where the system has no such figure it is the unique set size, which leaves shared pages out.
    """
    total = 0
    for process in _tree(pid):
        with contextlib.suppress(psutil.Error):  # it ended in between
            memory = process.memory_full_info()
            total += getattr(memory, "pss", memory.uss)
    return total


def _tree(pid: int) -> list[psutil.Process]:
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
