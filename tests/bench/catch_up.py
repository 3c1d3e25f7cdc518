"""Part one: a full log read from its start by a cold process, the monitor first, then Spark's source alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from streaming.embedded.ports import free_port
from streaming.spark.checkpoint_files import QUERY
from tests.bench.batches import Batch, BatchLog, records_per_second, second_half_per_second, seconds_at
from tests.bench.figures import Bar, Figure, median, percentile
from tests.bench.fill import BenchError, Fill
from tests.bench.process import MONITOR, PLAIN_READ, Cost, MeasuredProcess, monitor_environment
from tests.bench.scrape import Scrape, scrape

COLD_RECORDS = 2_000_000
WARM_RECORDS = 10_000_000
COLD_BAR = Bar(120_000, "at least")
WARM_BAR = Bar(300_000, "at least")
COMPLETE_BAR = Bar(40, "at most")
MEMORY_BAR = Bar(3 * 1024, "at most")

_SCRAPES = 5
_LOOK_SECONDS = 0.25
_START_SECONDS = 180.0
_SLOWEST_RECORDS_PER_SECOND = 20_000

OnPosition = Callable[[int], object]
"""Hears how many records have been read in all."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How one process read the log. Times are seconds since the epoch."""

    started_seconds: float
    batches: tuple[Batch, ...]
    cost: Cost

    def rate(self, records: int) -> float:
        """Records a second over the first `records`, from the first batch on."""
        return records_per_second(self.batches, records, since_seconds=self.batches[0].started_seconds)

    def rate_from_start(self, records: int) -> float:
        """The same from the start of the process."""
        return records_per_second(self.batches, records, since_seconds=self.started_seconds)

    @property
    def batch_seconds(self) -> list[float]:
        """Of the batches that read records."""
        before = (0, *(batch.position for batch in self.batches))
        return [batch.seconds for batch, reached in zip(self.batches, before, strict=False) if batch.position > reached]


@dataclass(frozen=True, slots=True)
class MonitorReading:
    """What else is measured of the monitor: its first complete answer, and how long later ones took."""

    reading: Reading
    complete_at_seconds: float
    scrape_seconds: float
    scrape_bytes: int


def read_by_monitor(
    bootstrap_servers: str, folder: Path, fill: Fill, records: int, on_position: OnPosition
) -> MonitorReading:
    """Run the monitor until its metrics are complete. Raises BenchError where they are wrong or never come."""
    port = free_port()
    batches = BatchLog(folder / "checkpoint" / QUERY)
    with MeasuredProcess(MONITOR, folder, monitor_environment(bootstrap_servers, folder, port)) as process:
        for _ in _looks(process, batches, records, on_position):
            answer = scrape(port)
            if answer is not None and answer.value("rebalance_monitor_ready") == 1:
                break
        else:
            raise BenchError(f"the monitor was not ready in time (log: {process.log_path})")
        _check_complete(answer, fill)
        cost = process.cost()
        scrapes = [again for _ in range(_SCRAPES) if (again := scrape(port)) is not None]
        reading = Reading(
            process.started_seconds, batches.read(), replace(cost, peak_memory_bytes=process.cost().peak_memory_bytes)
        )
    scrape_seconds = median([again.seconds for again in scrapes])
    return MonitorReading(reading, answer.at_seconds, scrape_seconds, len(answer.text.encode()))


def read_plainly(bootstrap_servers: str, folder: Path, records: int, on_position: OnPosition) -> Reading:
    """Run the plain read until it has read everything."""
    batches = BatchLog(folder / "checkpoint" / QUERY)
    with MeasuredProcess(PLAIN_READ, folder, monitor_environment(bootstrap_servers, folder, free_port())) as process:
        for position in _looks(process, batches, records, on_position):
            if position >= records:
                return Reading(process.started_seconds, batches.read(), process.cost())
        raise BenchError(f"the plain read did not come to its end in time (log: {process.log_path})")


def _looks(process: MeasuredProcess, batches: BatchLog, records: int, on_position: OnPosition) -> Iterator[int]:
    """Look at the process again and again: how far it has read. Ends when it has had more time than it can need."""
    deadline = time.monotonic() + _START_SECONDS + records / _SLOWEST_RECORDS_PER_SECOND
    while time.monotonic() < deadline:
        process.check()
        done = batches.read()
        position = done[-1].position if done else 0
        on_position(position)
        yield position
        time.sleep(_LOOK_SECONDS)


def _check_complete(answer: Scrape, fill: Fill) -> None:
    """A quick answer that is wrong is worth nothing: every group is there, with the lag it has."""
    lag = answer.by_label("rebalance_monitor_group_lag", "group")
    expected = dict.fromkeys(fill.group_ids, fill.group_lag)
    wrong = sorted(group_id for group_id in expected.keys() | lag.keys() if lag.get(group_id) != expected.get(group_id))
    if wrong:
        raise BenchError(
            f"the monitor says it is ready, but the lag of {len(wrong)} of {fill.groups} groups is wrong: "
            f"{wrong[0]} has {lag.get(wrong[0])}, not {expected.get(wrong[0])}"
        )


def catch_up_figures(records: int, monitor: MonitorReading, plain: Reading) -> list[Figure]:
    """What part one found. A bar is only put beside a run of the size it was set for."""
    ours = monitor.reading
    cold = min(records, COLD_RECORDS)
    is_cold_run, is_warm_run = COLD_RECORDS <= records < WARM_RECORDS, records >= WARM_RECORDS
    figures = [
        _start_to_first_batch(ours, plain),
        Figure(
            f"first {cold:,} records, from the first batch",
            "records/s",
            ours.rate(cold),
            plain.rate(cold),
            COLD_BAR if records >= COLD_RECORDS else None,
        ),
        Figure(
            f"first {cold:,} records, from process start",
            "records/s",
            ours.rate_from_start(cold),
            plain.rate_from_start(cold),
        ),
        Figure("all records read, from process start", "s", _seconds(ours, records), _seconds(plain, records)),
        Figure(
            "first complete /metrics, from process start",
            "s",
            monitor.complete_at_seconds - ours.started_seconds,
            bar=COMPLETE_BAR if is_cold_run else None,
        ),
    ]
    if is_warm_run:
        half, plain_half = (second_half_per_second(reading.batches, records) for reading in (ours, plain))
        figures.append(Figure(f"second half of {records:,} records", "records/s", half, plain_half, WARM_BAR))
    memory, plain_memory = (reading.cost.peak_memory_bytes / (1 << 20) for reading in (ours, plain))
    return [
        *figures,
        Figure(
            f"batch p50 (of {len(ours.batch_seconds)})", "s", median(ours.batch_seconds), median(plain.batch_seconds)
        ),
        Figure("batch p95", "s", percentile(ours.batch_seconds, 95), percentile(plain.batch_seconds, 95)),
        Figure(
            f"scrape of {monitor.scrape_bytes / (1 << 20):.1f} MiB, median of {_SCRAPES}", "s", monitor.scrape_seconds
        ),
        Figure("processor time until then", "CPU s", ours.cost.cpu_seconds, plain.cost.cpu_seconds),
        Figure(
            "peak memory of all its processes (PSS)",
            "MiB",
            memory,
            plain_memory,
            MEMORY_BAR if records >= COLD_RECORDS else None,
        ),
    ]


def _start_to_first_batch(ours: Reading, plain: Reading) -> Figure:
    first, plain_first = (reading.batches[0].started_seconds - reading.started_seconds for reading in (ours, plain))
    return Figure("process start to first batch", "s", first, plain_first)


def _seconds(reading: Reading, records: int) -> float:
    return seconds_at(reading.batches, records) - reading.started_seconds
