"""A process under a steady load: what it, the load and the broker take meanwhile, and how its batches fare."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.embedded import EmbeddedBroker
from tests.bench.batches import Batch, BatchLog
from tests.bench.process import Cost, MeasuredProcess, TreeWatch, monitor_environment
from tests.bench.synthetic_groups import SyntheticGroups, Written

_LOOK_SECONDS = 0.25

OnLook = Callable[[float, Sequence[Written], Sequence[Batch]], object]
"""Hears, again and again, how long the load has been running, what it has written and which batches are done since."""


@dataclass(frozen=True, slots=True)
class Steady:
    """What is written while something is measured, and how often that is to start a batch."""

    synthetic_groups: SyntheticGroups
    commits_per_second: float = 20_000
    rebalances_per_minute: float = 500
    seconds: float = 180
    trigger_seconds: float = 10

    @property
    def in_words(self) -> str:
        """Its size."""
        pace = f"{self.commits_per_second:,.0f} commits/s and {self.rebalances_per_minute:,.0f} rebalances/min"
        groups = self.synthetic_groups
        return f"{groups.groups:,} groups with {groups.commit_keys:,} partitions, {pace} for {self.seconds:g} s"

    def command(self, bootstrap_servers: str) -> list[str]:
        """The program that writes it."""
        module = [sys.executable, "-m", "tests.bench.steady_load", "--bootstrap-servers", bootstrap_servers]
        pace = ["--commits-per-second", str(self.commits_per_second)]
        pace += ["--rebalances-per-minute", str(self.rebalances_per_minute)]
        return [*module, "--groups", str(self.synthetic_groups.groups), *pace]

    def environment(self, bootstrap_servers: str, folder: Path, port: int) -> Mapping[str, str]:
        """Settings of the monitor and of the plain read: only the trigger is not the default."""
        trigger = {f"{ENVIRONMENT_PREFIX}SOURCE__TRIGGER_SECONDS": f"{self.trigger_seconds:g}"}
        return {**monitor_environment(bootstrap_servers, folder, port), **trigger}


@dataclass(frozen=True, slots=True)
class UnderLoad:
    """How a process fared in the `seconds` of the load. Processor times are of those seconds, peaks of all its life."""

    seconds: float
    batches: tuple[Batch, ...]
    peak_memory_bytes: int
    cpu_seconds: float
    load_cpu_seconds: float
    broker_cpu_seconds: float
    commits_per_second: float
    late_seconds: float

    @property
    def batch_seconds(self) -> list[float]:
        """Of the batches that were done meanwhile."""
        return [batch.seconds for batch in self.batches]


class WrittenLog:
    """What the load says of itself on its standard output."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0
        self._written: list[Written] = []

    def read(self) -> Sequence[Written]:
        """All it has written by now, step by step. A line that is still being written waits."""
        with suppress(FileNotFoundError), self._path.open("rb") as output:
            output.seek(self._read_bytes)
            for line in output:
                if not line.endswith(b"\n"):
                    break
                self._read_bytes += len(line)
                if line.startswith(b"{"):
                    self._written.append(Written(**json.loads(line)))
        return self._written


def put_under_load(  # noqa: PLR0913 - the measured one and all that is beside it
    broker: EmbeddedBroker,
    folder: Path,
    steady: Steady,
    *,
    process: MeasuredProcess,
    batches: BatchLog,
    on_look: OnLook,
) -> tuple[UnderLoad, Written]:
    """Run the load beside a process that is up already; return how it fared, and what was written in all.

    Raises BenchError where one of them ends by itself.
    """
    done_before = len(batches.read())
    with MeasuredProcess(steady.command(broker.bootstrap_servers), folder, os.environ) as load:
        log = WrittenLog(load.log_path)
        while not (first := log.read()):  # it makes its keys first
            load.check()
            time.sleep(_LOOK_SECONDS)
        meter = _Meter(process.cost, load.cost, TreeWatch(broker.pid or 0).cost)
        while meter.seconds < steady.seconds:
            process.check()
            load.check()
            on_look(meter.seconds, log.read(), batches.read()[done_before:])
            time.sleep(_LOOK_SECONDS)
        under_load = _fared(meter, first[0], log.read(), batches.read()[done_before:])
    return under_load, log.read()[-1]


class _Meter:
    """Time, and the processor time that some took since the meter was made."""

    def __init__(self, *costs: Callable[[], Cost]) -> None:
        self._costs = costs
        self._before = [cost() for cost in costs]
        self._started_seconds = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since it was made."""
        return time.monotonic() - self._started_seconds

    def read(self) -> list[Cost]:
        """Peaks, and processor time since it was made."""
        return [
            Cost(now.peak_memory_bytes, now.cpu_seconds - before.cpu_seconds)
            for now, before in zip((cost() for cost in self._costs), self._before, strict=True)
        ]


def _fared(meter: _Meter, first: Written, written: Sequence[Written], batches: Sequence[Batch]) -> UnderLoad:
    seconds, (process, load, broker) = meter.seconds, meter.read()
    last = written[-1]
    return UnderLoad(
        seconds=seconds,
        batches=tuple(batches),
        peak_memory_bytes=process.peak_memory_bytes,
        cpu_seconds=process.cpu_seconds,
        load_cpu_seconds=load.cpu_seconds,
        broker_cpu_seconds=broker.cpu_seconds,
        commits_per_second=(last.commits - first.commits) * 1000 / (last.at_ms - first.at_ms),
        late_seconds=max(step.late_seconds for step in written),
    )
