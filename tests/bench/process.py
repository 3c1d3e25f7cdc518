"""A cold process of the benchmark, and what it and its children take together."""

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
PLAIN_READ = (sys.executable, "-m", "tests.bench.baseline")


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


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process and all below it took: the most memory at one time, and processor time in all.

    Processor time hardly depends on what else the machine does: where runs on a busy machine differ, compare that.
    """

    peak_memory_bytes: int
    cpu_seconds: float


class MeasuredProcess:
    """Runs a command until the end of the `with` block and watches what it takes.

    `started_seconds` is since the epoch.
    """

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log_path = folder / "process.log"
        self.started_seconds = time.time()
        self._process = ChildProcess(command, self.log_path, environment)
        self._watch = TreeWatch(self._process.pid)

    @property
    def pid(self) -> int:
        """The process id of the command itself."""
        return self._process.pid

    def cost(self) -> Cost:
        """What it and its children have taken until now."""
        return self._watch.cost()

    def check(self) -> None:
        """Raise BenchError with the end of its log if it has ended by itself."""
        if self._process.exit_code is not None:
            last = self.log_path.read_text(errors="replace").splitlines()[-_SHOWN_LINES:]
            ended = f"the measured process ended with code {self._process.exit_code}"
            raise BenchError(f"{ended}: {' / '.join(last)} (log: {self.log_path})")

    def __enter__(self) -> Self:
        """Start watching what it takes."""
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ask it to end and wait until its children are gone too: the next one is to have the machine for itself."""
        self._watch.stop()
        children = process_tree(self._process.pid)[1:]
        self._process.stop(_GRACE_SECONDS)
        left = psutil.wait_procs(children, timeout=_ORPHAN_SECONDS)[1]
        for orphan in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                orphan.kill()
        psutil.wait_procs(left, timeout=_ORPHAN_SECONDS)


class TreeWatch:
    """Samples what a process and all below it take."""

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
        """The peak and the sum until now. Of a process that has ended, what the last sample saw."""
        with self._lock:
            tree = process_tree(self._pid)
            self._peak_memory_bytes = max(self._peak_memory_bytes, memory_bytes(tree))
            for process in tree:
                with contextlib.suppress(psutil.Error):  # it ended in between
                    used = process.cpu_times()
                    self._cpu_seconds[process] = used.user + used.system
            return Cost(self._peak_memory_bytes, sum(self._cpu_seconds.values()))

    def _run(self) -> None:
        while not self._stop.is_set():
            self.cost()
            self._stop.wait(_SAMPLE_SECONDS)


def memory_bytes(tree: Iterable[psutil.Process]) -> int:
    """The proportional set size of some processes together: a page that n processes share counts 1/n in each.

    Python's workers are forked and share most of their pages: adding up their resident sizes would count those twice.
    Where the system has no such figure it is the unique set size, which leaves shared pages out.
    """
    total = 0
    for process in tree:
        with contextlib.suppress(psutil.Error):  # it ended in between
            memory = process.memory_full_info()
            total += getattr(memory, "pss", memory.uss)
    return total


def anonymous_bytes(pid: int) -> int | None:
    """What a process has allocated itself and holds in memory; None where the system does not report it.

    The proportional set size counts files that are mapped, too, and grows when another process that maps them ends.
    """
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Anonymous:")), None)


def process_tree(pid: int) -> list[psutil.Process]:
    """A process and all below it; nothing where it is gone."""
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
