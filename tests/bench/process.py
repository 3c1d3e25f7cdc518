"""Runs a cold process for the benchmark, and measures memory and processor time of it and its children."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import psutil
from typing_extensions import Self

from streaming.child_process import ChildProcess
from streaming.config.environment import ENVIRONMENT_PREFIX
from tests.bench.fill import BenchError

_SAMPLE_SECONDS = 0.5
_GRACE_SECONDS = 30.0
_ORPHAN_SECONDS = 5.0
_SHOWN_LINES = 5

MONITOR = (str(Path(sys.executable).with_name("rebalance-monitor")), "run", "--log-level", "DEBUG")
BASELINE = (sys.executable, "-m", "tests.bench.baseline")


def monitor_environment(bootstrap_servers: str, folder: Path, port: int) -> Mapping[str, str]:
    """Return the environment of a monitor with all its files in `folder`. Other settings of the environment stay."""
    settings = {
        "KAFKA__BOOTSTRAP_SERVERS": bootstrap_servers,
        "KAFKA__CLUSTER": "bench",
        "PATHS__CHECKPOINT": str(folder / "checkpoint"),
        "PATHS__TABLES": str(folder / "tables"),
        "METRICS__HOST": "127.0.0.1",
        "METRICS__PORT": str(port),
        "METRICS__INCLUDE": '["rebalance_monitor_group_generation"]',  # the probe compares it with the written records
    }
    return {**os.environ, **{ENVIRONMENT_PREFIX + name: value for name, value in settings.items()}}


@dataclass(frozen=True, slots=True)
class Cost:
    """The peak memory and the total processor time of a process and all its descendants.

    Processor time hardly depends on other processes. Use it to compare runs on a busy machine.
    """

    peak_memory_bytes: int
    cpu_seconds: float


class MeasuredProcess:
    """Runs a command until the end of the `with` block, and measures its cost. `started_seconds` is since the epoch."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log_path = folder / "process.log"
        self.started_seconds = time.time()
        self._process = ChildProcess(command, self.log_path, environment)
        self._watch = ProcessTreeMeter(self._process.pid)

    @property
    def pid(self) -> int:
        """Return the process id of the command."""
        return self._process.pid

    def cost(self) -> Cost:
        """Return the cost of the process and its descendants until now."""
        return self._watch.cost()

    def check(self) -> None:
        """Raise BenchError with the last lines of the log if the process has ended."""
        if self._process.exit_code is not None:
            last = self.log_path.read_text(errors="replace").splitlines()[-_SHOWN_LINES:]
            ended = f"the measured process ended with code {self._process.exit_code}"
            raise BenchError(f"{ended}: {' / '.join(last)} (log: {self.log_path})")

    def __enter__(self) -> Self:
        """Start measuring."""
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the process, and wait until its descendants have ended, so that they do not slow the next process."""
        self._watch.stop()
        children = process_tree(self._process.pid)[1:]
        self._process.stop(_GRACE_SECONDS)
        left = psutil.wait_procs(children, timeout=_ORPHAN_SECONDS)[1]
        for orphan in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                orphan.kill()
        psutil.wait_procs(left, timeout=_ORPHAN_SECONDS)


class ProcessTreeMeter:
    """Samples memory and processor time of a process and all its descendants."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak_memory_bytes = 0
        self._cpu_seconds: dict[psutil.Process, float] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Start sampling."""
        self._thread.start()

    def stop(self) -> None:
        """Stop sampling."""
        self._stop.set()
        self._thread.join()

    def cost(self) -> Cost:
        """Return the cost until now. A process that has ended counts with its last sample."""
        with self._lock:
            tree = process_tree(self._pid)
            self._peak_memory_bytes = max(self._peak_memory_bytes, memory_bytes(tree))
            for process in tree:
                with contextlib.suppress(psutil.Error):  # the process ended in between
                    used = process.cpu_times()
                    self._cpu_seconds[process] = used.user + used.system
            return Cost(self._peak_memory_bytes, sum(self._cpu_seconds.values()))

    def _run(self) -> None:
        while not self._stop.is_set():
            self.cost()
            self._stop.wait(_SAMPLE_SECONDS)


def memory_bytes(tree: Iterable[psutil.Process]) -> int:
    """Return the sum of the proportional set sizes (PSS) in bytes. A page that n processes share counts 1/n in each.

    Python's workers are forked and share most of their pages. Resident sizes would count these pages several times. On
    systems without PSS, the result is the unique set size, which does not contain shared pages.
    """
    total = 0
    for process in tree:
        with contextlib.suppress(psutil.Error):  # the process ended in between
            memory = process.memory_full_info()
            total += getattr(memory, "pss", memory.uss)
    return total


def anonymous_bytes(pid: int) -> int | None:
    """Return the memory in bytes that a process has allocated itself, or None if the system does not report it.

    The proportional set size also contains mapped files. It grows when a different process that maps them ends.
    """
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Anonymous:")), None)


def process_tree(pid: int) -> list[psutil.Process]:
    """Return a process and all its descendants, or an empty list if the process has ended."""
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
