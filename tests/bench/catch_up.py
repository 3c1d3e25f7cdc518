"""The part `catch-up`: cold processes read a full log from its start, first the monitor, then the baseline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from streaming.embedded.ports import free_port
from streaming.spark.checkpoint_files import QUERY
from tests.bench.batches import Batch, BatchLog, records_per_second, second_half_per_second, seconds_at
from tests.bench.figures import Figure, Target, median, percentile
from tests.bench.fill import BenchError, Fill
from tests.bench.process import BASELINE, MONITOR, Cost, MeasuredProcess, monitor_environment
from tests.bench.scrape import Scrape, scrape

COLD_RECORDS = 2_000_000
WARM_RECORDS = 10_000_000
COMPLETE_TARGET = Target(16, "at most")
RESTART_TARGET = Target(9, "at most")
PROCESSOR_RATIO_TARGET = Target(1.3, "at most")
WARM_TARGET, WARM_RATIO_TARGET = Target(560_000, "at least"), Target(0.45, "at least")
COLD_MEMORY_TARGET, WARM_MEMORY_TARGET = Target(1.3 * 1024, "at most"), Target(1.6 * 1024, "at most")

_SCRAPES = 5
_POLL_SECONDS = 0.25
_START_SECONDS = 180.0
_SLOWEST_RECORDS_PER_SECOND = 20_000

OnPosition = Callable[[int], object]
"""Receives the total number of records read."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The measurement of one process that reads the log. Times are seconds since the epoch."""

    started_seconds: float
    batches: tuple[Batch, ...]
    cost: Cost

    def rate(self, records: int) -> float:
        """Return the records per second for the first `records`, from the start of the first batch."""
        return records_per_second(self.batches, records, since_seconds=self.batches[0].started_seconds)

    def rate_from_start(self, records: int) -> float:
        """Return the same rate from the start of the process."""
        return records_per_second(self.batches, records, since_seconds=self.started_seconds)

    @property
    def batch_seconds(self) -> list[float]:
        """Return the durations of the batches that read records."""
        before = (0, *(batch.position for batch in self.batches))
        return [batch.seconds for batch, reached in zip(self.batches, before, strict=False) if batch.position > reached]


@dataclass(frozen=True, slots=True)
class MonitorReading:
    """The measurement of the monitor, with its first complete response and the duration of later responses.

    `restart_seconds` is the time from a restart with the checkpoint until the first complete response.
    """

    reading: Reading
    complete_at_seconds: float
    restart_seconds: float
    restart_cpu_seconds: float
    scrape_seconds: float
    scrape_bytes: int


def read_by_monitor(
    bootstrap_servers: str, folder: Path, fill: Fill, records: int, on_position: OnPosition
) -> MonitorReading:
    """Run the monitor until its metrics are complete, and start it again with its checkpoint.

    Raises BenchError if the metrics are wrong or not ready in time.
    """
    port = free_port()
    environment = monitor_environment(bootstrap_servers, folder, port)
    batches = BatchLog(folder / "checkpoint" / QUERY)
    with MeasuredProcess(MONITOR, folder, environment) as process:
        polls = _poll(process, batches, records, on_position)
        answer = _first_complete(process, port, fill, polls)
        cost = process.cost()
        scrapes = [scraped for _ in range(_SCRAPES) if (scraped := scrape(port)) is not None]
        _wait_until_read(process, polls, records)  # metrics are published before Spark completes the batch
        reading = Reading(
            process.started_seconds, batches.read(), replace(cost, peak_memory_bytes=process.cost().peak_memory_bytes)
        )
    with MeasuredProcess(MONITOR, folder, environment) as restarted:
        again = _first_complete(restarted, port, fill, _poll(restarted, batches, records, on_position))
        restart_cpu_seconds = restarted.cost().cpu_seconds
    return MonitorReading(
        reading,
        answer.at_seconds,
        again.at_seconds - restarted.started_seconds,
        restart_cpu_seconds,
        median([scraped.seconds for scraped in scrapes]),
        len(answer.text.encode()),
    )


def _first_complete(process: MeasuredProcess, port: int, fill: Fill, polls: Iterable[object]) -> Scrape:
    """Return the first response of a monitor that is ready. Raises BenchError if it is wrong or late."""
    for _ in polls:
        answer = scrape(port)
        if answer is not None and answer.value("rebalance_monitor_ready") == 1:
            _check_complete(answer, fill)
            return answer
    raise BenchError(f"the monitor was not ready in time (log: {process.log_path})")


def read_by_baseline(bootstrap_servers: str, folder: Path, records: int, on_position: OnPosition) -> Reading:
    """Run the baseline until it has read all records. Raises BenchError if this takes too long."""
    batches = BatchLog(folder / "checkpoint" / QUERY)
    with MeasuredProcess(BASELINE, folder, monitor_environment(bootstrap_servers, folder, free_port())) as process:
        _wait_until_read(process, _poll(process, batches, records, on_position), records)
        return Reading(process.started_seconds, batches.read(), process.cost())


def _wait_until_read(process: MeasuredProcess, positions: Iterable[int], records: int) -> None:
    """Return when the batches that read all records are complete. Raises BenchError if this takes too long."""
    if not any(position >= records for position in positions):
        raise BenchError(f"not all records were read in time (log: {process.log_path})")


def _poll(process: MeasuredProcess, batches: BatchLog, records: int, on_position: OnPosition) -> Iterator[int]:
    """Yield the position of the process until the time limit. Raises BenchError if the process ends."""
    deadline = time.monotonic() + _START_SECONDS + records / _SLOWEST_RECORDS_PER_SECOND
    while time.monotonic() < deadline:
        process.check()
        done = batches.read()
        position = done[-1].position if done else 0
        on_position(position)
        yield position
        time.sleep(_POLL_SECONDS)


def _check_complete(answer: Scrape, fill: Fill) -> None:
    """Raise BenchError if a group is missing in /metrics or has a wrong lag."""
    lag = answer.by_label("rebalance_monitor_group_lag", "group")
    expected = dict.fromkeys(fill.group_ids, fill.group_lag)
    wrong = sorted(group_id for group_id in expected.keys() | lag.keys() if lag.get(group_id) != expected.get(group_id))
    if wrong:
        raise BenchError(
            f"the monitor reports ready, but the lag of {len(wrong)} of {fill.groups} groups is wrong: "
            f"{wrong[0]} has {lag.get(wrong[0])}, not {expected.get(wrong[0])}"
        )


def catch_up_figures(records: int, monitor: MonitorReading, baseline: Reading) -> list[Figure]:
    """Return the figures of this part. A figure has a target only in runs of the size that the target is for."""
    ours = monitor.reading
    cold = min(records, COLD_RECORDS)
    is_cold_run, is_warm_run = COLD_RECORDS <= records < WARM_RECORDS, records >= WARM_RECORDS
    figures = [
        _start_to_first_batch(ours, baseline),
        Figure(
            f"first {cold:,} records, from the first batch",
            "records/s",
            ours.rate(cold),
            baseline.rate(cold),
        ),
        Figure(
            f"first {cold:,} records, from process start",
            "records/s",
            ours.rate_from_start(cold),
            baseline.rate_from_start(cold),
        ),
        Figure("all records read, from process start", "s", _seconds(ours, records), _seconds(baseline, records)),
        Figure(
            "first complete /metrics, from process start",
            "s",
            monitor.complete_at_seconds - ours.started_seconds,
            target=COMPLETE_TARGET if is_cold_run else None,
        ),
        *_restart(monitor, RESTART_TARGET if is_cold_run else None),
    ]
    if is_warm_run:
        half, baseline_half = (second_half_per_second(reading.batches, records) for reading in (ours, baseline))
        name = f"second half of {records:,} records"
        figures.append(Figure(name, "records/s", half, baseline_half, WARM_TARGET, WARM_RATIO_TARGET))
    memory, baseline_memory = (reading.cost.peak_memory_bytes / (1 << 20) for reading in (ours, baseline))
    return [
        *figures,
        Figure(
            f"batch p50 (of {len(ours.batch_seconds)})", "s", median(ours.batch_seconds), median(baseline.batch_seconds)
        ),
        Figure("batch p95", "s", percentile(ours.batch_seconds, 95), percentile(baseline.batch_seconds, 95)),
        Figure(
            f"scrape of {monitor.scrape_bytes / (1 << 20):.1f} MiB, median of {_SCRAPES}", "s", monitor.scrape_seconds
        ),
        Figure(
            "processor time until complete /metrics",
            "CPU s",
            ours.cost.cpu_seconds,
            baseline.cost.cpu_seconds,
            ratio_target=PROCESSOR_RATIO_TARGET if is_cold_run else None,
        ),
        Figure(
            "peak memory of all processes (PSS)",
            "MiB",
            memory,
            baseline_memory,
            WARM_MEMORY_TARGET if is_warm_run else COLD_MEMORY_TARGET if is_cold_run else None,
        ),
    ]


def _restart(monitor: MonitorReading, target: Target | None) -> list[Figure]:
    return [
        Figure("restart with the checkpoint until complete /metrics", "s", monitor.restart_seconds, target=target),
        Figure("processor time of the restart", "CPU s", monitor.restart_cpu_seconds),
    ]


def _start_to_first_batch(ours: Reading, baseline: Reading) -> Figure:
    first, baseline_first = (
        reading.batches[0].started_seconds - reading.started_seconds for reading in (ours, baseline)
    )
    return Figure("process start to first batch", "s", first, baseline_first)


def _seconds(reading: Reading, records: int) -> float:
    return seconds_at(reading.batches, records) - reading.started_seconds
