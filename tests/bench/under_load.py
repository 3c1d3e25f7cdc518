"""Runs a steady load in addition to a process, and measures the process, the load, the broker and the batches."""

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
from tests.bench.process import Cost, MeasuredProcess, ProcessTreeMeter, monitor_environment
from tests.bench.synthetic_groups import LoadProgress, SyntheticGroups

_POLL_SECONDS = 0.25

OnPoll = Callable[[float, Sequence[LoadProgress], Sequence[Batch]], object]
"""Receives, at each poll, the seconds since the start of the load, its progress and the batches since its start."""


@dataclass(frozen=True, slots=True)
class SteadyLoad:
    """The size, pace and duration of a load, and the trigger interval of the measured process."""

    synthetic_groups: SyntheticGroups
    commits_per_second: float = 20_000
    rebalances_per_minute: float = 500
    seconds: float = 180
    trigger_seconds: float = 10

    @property
    def in_words(self) -> str:
        """Return size, pace and duration in words."""
        pace = f"{self.commits_per_second:,.0f} commits/s and {self.rebalances_per_minute:,.0f} rebalances/min"
        groups = self.synthetic_groups
        return f"{groups.groups:,} groups with {groups.commit_keys:,} partitions, {pace} for {self.seconds:g} s"

    def command(self, bootstrap_servers: str) -> list[str]:
        """Return the command that writes the load."""
        module = [sys.executable, "-m", "tests.bench.steady_load", "--bootstrap-servers", bootstrap_servers]
        pace = ["--commits-per-second", str(self.commits_per_second)]
        pace += ["--rebalances-per-minute", str(self.rebalances_per_minute)]
        return [*module, "--groups", str(self.synthetic_groups.groups), *pace]

    def environment(self, bootstrap_servers: str, folder: Path, port: int) -> Mapping[str, str]:
        """Return the environment of the monitor and of the baseline. Only the trigger differs from the default."""
        trigger = {f"{ENVIRONMENT_PREFIX}SOURCE__TRIGGER_SECONDS": f"{self.trigger_seconds:g}"}
        return {**monitor_environment(bootstrap_servers, folder, port), **trigger}


@dataclass(frozen=True, slots=True)
class LoadMeasurement:
    """The measurement of a process under load. Processor times cover `seconds`. The peak covers its whole life."""

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
        """Return the durations of the batches that ended under the load."""
        return [batch.seconds for batch in self.batches]


class LoadProgressLog:
    """The progress that the load prints on its standard output."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0
        self._written: list[LoadProgress] = []

    def read(self) -> Sequence[LoadProgress]:
        """Return the progress after each step until now. An incomplete line is read later."""
        with suppress(FileNotFoundError), self._path.open("rb") as output:
            output.seek(self._read_bytes)
            for line in output:
                if not line.endswith(b"\n"):
                    break
                self._read_bytes += len(line)
                if line.startswith(b"{"):
                    self._written.append(LoadProgress(**json.loads(line)))
        return self._written


def run_under_load(  # noqa: PLR0913 - the measured process, the load and the broker
    broker: EmbeddedBroker,
    folder: Path,
    steady: SteadyLoad,
    *,
    process: MeasuredProcess,
    batches: BatchLog,
    on_poll: OnPoll,
) -> tuple[LoadMeasurement, LoadProgress]:
    """Run the load in addition to a running process. Returns the measurement and the last progress of the load.

    Raises BenchError if one of the two processes ends.
    """
    done_before = len(batches.read())
    with MeasuredProcess(steady.command(broker.bootstrap_servers), folder, os.environ) as load:
        log = LoadProgressLog(load.log_path)
        while not (first := log.read()):  # the load creates its keys first
            load.check()
            time.sleep(_POLL_SECONDS)
        meter = _LoadMeter(process.cost, load.cost, ProcessTreeMeter(broker.pid or 0).cost)
        while meter.seconds < steady.seconds:
            process.check()
            load.check()
            on_poll(meter.seconds, log.read(), batches.read()[done_before:])
            time.sleep(_POLL_SECONDS)
        under_load = _load_measurement(meter, first[0], log.read(), batches.read()[done_before:])
    return under_load, log.read()[-1]


class _LoadMeter:
    """Measures time and processor time since its creation."""

    def __init__(self, *costs: Callable[[], Cost]) -> None:
        self._costs = costs
        self._before = [cost() for cost in costs]
        self._started_seconds = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return the seconds since the creation."""
        return time.monotonic() - self._started_seconds

    def read(self) -> list[Cost]:
        """Return the peaks, and the processor time since the creation."""
        return [
            Cost(now.peak_memory_bytes, now.cpu_seconds - before.cpu_seconds)
            for now, before in zip((cost() for cost in self._costs), self._before, strict=True)
        ]


def _load_measurement(
    meter: _LoadMeter, first: LoadProgress, written: Sequence[LoadProgress], batches: Sequence[Batch]
) -> LoadMeasurement:
    seconds, (process, load, broker) = meter.seconds, meter.read()
    last = written[-1]
    return LoadMeasurement(
        seconds=seconds,
        batches=tuple(batches),
        peak_memory_bytes=process.peak_memory_bytes,
        cpu_seconds=process.cpu_seconds,
        load_cpu_seconds=load.cpu_seconds,
        broker_cpu_seconds=broker.cpu_seconds,
        commits_per_second=(last.commits - first.commits) * 1000 / (last.at_ms - first.at_ms),
        late_seconds=max(step.late_seconds for step in written),
    )
