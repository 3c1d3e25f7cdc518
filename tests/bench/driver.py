"""The part `driver`: the cost of the driver's own work for growing numbers of groups, without broker and Spark.

The driver is one Python process, so its work is the limit of a monitor. Each size runs in a process of its own, so that
its memory can be measured. The state is the one of the part `scrape`: each group has five members and ten partitions.

Not included: decoding of records and evaluation (these run in Spark's workers), requests to brokers, and Delta tables.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import psutil

from streaming.config.settings import MetricsSettings
from tests.bench.figures import Figure, median
from tests.bench.metrics_text import Scraper, SyntheticMonitor
from tests.bench.synthetic_groups import SyntheticGroups

SIZES = (1_000, 5_000, 10_000, 20_000, 50_000)
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class DriverCost:
    """The cost for a number of groups. Times are seconds of processor time for one sample and for one scrape.

    `memory_bytes` is the memory of the process after these rounds, without the memory before the first group.
    """

    synthetic_groups: SyntheticGroups
    sample_seconds: float
    scrape_seconds: float
    series: int
    memory_bytes: int


def driver_figures(sizes: Iterable[int] = SIZES) -> Iterator[Figure]:
    """Measure each size. The figures of a size come as soon as it is measured."""
    for groups in sizes:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            yield from _figures(process.submit(measure_driver, groups).result())


def measure_driver(groups: int) -> DriverCost:
    """Measure samples and scrapes with default settings. One of 80 groups rebalances between two scrapes."""
    before_bytes = _memory_bytes()
    monitor = SyntheticMonitor(SyntheticGroups(groups))
    scraper = Scraper(monitor, MetricsSettings())
    scraper.scrape()
    samples, scrapes = [], []
    for _ in range(_ROUNDS):
        samples.append(monitor.advance())
        scrapes.append(scraper.scrape())
    gc.collect()
    return DriverCost(
        SyntheticGroups(groups),
        median(samples),
        median([one.written_seconds + one.gzip_seconds for one in scrapes]),
        scrapes[-1].series,
        _memory_bytes() - before_bytes,
    )


def _memory_bytes() -> int:
    return int(psutil.Process().memory_full_info().uss)


def _figures(cost: DriverCost) -> Iterator[Figure]:
    groups, partitions = cost.synthetic_groups.groups, cost.synthetic_groups.commit_keys
    yield Figure(f"{groups:,} groups, {partitions:,} partitions: a sample", "CPU s", cost.sample_seconds)
    yield Figure("- for each partition", "CPU µs", cost.sample_seconds / partitions * 1e6)
    yield Figure(f"- a scrape with {cost.series:,} series, with gzip", "CPU s", cost.scrape_seconds)
    yield Figure("- for each group", "CPU µs", cost.scrape_seconds / groups * 1e6)
    yield Figure("- memory", "MiB", cost.memory_bytes / (1 << 20))
    yield Figure("- memory for each partition", "bytes", cost.memory_bytes / partitions)
