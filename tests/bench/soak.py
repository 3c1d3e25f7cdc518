"""The soak: runs the monitor for hours, and measures all values that could grow, once per interval.

Memory is the proportional set size (PSS) by role: Python driver, JVM, Spark's Python workers. PSS also depends on other
processes that map the same files. So the memory that the driver has allocated is a separate value. The append time
comes from the monitor's own log. The soak counts the files in each folder. Spark's temporary files are included.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil

from streaming.embedded.ports import free_port
from tests.bench.figures import median
from tests.bench.growth import Reading
from tests.bench.process import (
    MONITOR,
    MeasuredProcess,
    anonymous_bytes,
    memory_bytes,
    monitor_environment,
    process_tree,
)
from tests.bench.rebalances import await_ready

_APPENDED = re.compile(rb"appended to .* in (\d+\.\d) ms")
_MIB = 1 << 20

OnReading = Callable[[Reading], object]


def soak(
    bootstrap_servers: str, folder: Path, hours: float, every_seconds: float, on_reading: OnReading
) -> list[Reading]:
    """Run the monitor for `hours` from ready on. Raises BenchError if it ends or does not become ready."""
    temporary = folder / "temporary"
    temporary.mkdir(parents=True)
    port = free_port()
    environment = monitor_environment(bootstrap_servers, folder / "monitor", port)
    # Spark's own folders, so that their files can be counted.
    with_temporary = {**environment, "SPARK_LOCAL_DIRS": str(temporary), "TMPDIR": str(temporary)}
    readings: list[Reading] = []
    with MeasuredProcess(MONITOR, folder / "monitor", with_temporary) as process:
        await_ready(process, port)
        for reading in _readings(process, folder, hours, every_seconds):
            process.check()
            readings.append(reading)
            on_reading(reading)
    return readings


def _readings(process: MeasuredProcess, folder: Path, hours: float, every_seconds: float) -> Iterator[Reading]:
    appends = AppendTimes(process.log_path)
    started = time.monotonic()
    while True:
        at_hours = (time.monotonic() - started) / 3600
        yield Reading(at_hours, {**process_values(process.pid), **file_values(folder), **appends.values()})
        if at_hours >= hours:
            return
        time.sleep(min(every_seconds, max(0.0, hours * 3600 - (time.monotonic() - started))))


def process_values(pid: int) -> Mapping[str, float]:
    """Return memory by role, threads and open files. The driver is the process itself. Its JVM starts the workers."""
    tree = process_tree(pid)
    roles: dict[str, list[psutil.Process]] = {"driver": [], "JVM": [], "workers": []}
    for process in tree:
        with contextlib.suppress(psutil.Error):  # the process ended in between
            is_java = "java" in process.name()
            roles["driver" if process.pid == pid else "JVM" if is_java else "workers"].append(process)
    values = {f"memory of the {role}, MiB": memory_bytes(found) / _MIB for role, found in roles.items()}
    if (allocated_bytes := anonymous_bytes(pid)) is not None:
        values["allocated by the driver, MiB"] = allocated_bytes / _MIB
    values["threads of the driver"] = _total(roles["driver"], psutil.Process.num_threads)
    values["threads of the JVM"] = _total(roles["JVM"], psutil.Process.num_threads)
    values["processes"] = len(tree)
    values["open files"] = _total(tree, psutil.Process.num_fds)
    return values


def _total(processes: list[psutil.Process], number: Callable[[psutil.Process], int]) -> float:
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += number(process)
    return total


def file_values(folder: Path) -> Mapping[str, float]:
    """Return the number of files by folder, and the size of the checkpoint and of the tables in MiB."""
    monitor = folder / "monitor"
    counted: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for path in _files(monitor / "tables"):
        counted["files: log entries of the tables" if "_delta_log" in path.parts else "files: tables"] += 1
        size["MiB: tables"] += _size(path)
    for path in _files(monitor / "checkpoint"):
        inner = path.relative_to(monitor / "checkpoint").parts
        counted[f"files: checkpoint/{'/'.join(inner[: 2 if inner[0] == 'query' else 1][: len(inner) - 1]) or '.'}"] += 1
        size["MiB: checkpoint"] += _size(path)
    counted["files: temporary"] = sum(1 for _ in _files(folder / "temporary"))
    return {**dict(sorted(counted.items())), **{name: total / _MIB for name, total in sorted(size.items())}}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # the file was deleted in between
        return 0


class AppendTimes:
    """The times of the appends from the monitor's log. Each read starts where the previous one ended."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read_bytes = 0

    def values(self) -> Mapping[str, float]:
        """Return the median time of the appends since the last read. Empty if there was no append."""
        with self._log.open("rb") as log:
            log.seek(self._read_bytes)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        milliseconds = [float(found) for found in _APPENDED.findall(whole)]
        return {"append, ms": median(milliseconds)} if milliseconds else {}
