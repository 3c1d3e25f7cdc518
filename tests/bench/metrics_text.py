"""The part `scrape`: measures size and processor time of a scrape of 10,000 groups with 100,000 partitions.

The state of a monitor is filled with the synthetic groups (`synthetic_groups.py`), with commits, samples, shares of
work and commit gaps. No broker and no Spark are needed. Between two scrapes there is a new sample, and some groups have
rebalanced: 125 of 10,000, which are 500 per minute in 15 s. For comparison, prometheus-client writes the same samples
from existing objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import process_time
from typing import TypeVar

import numpy as np
import pyarrow as pa
from prometheus_client import Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from assignors import AS_JAVA_LEADER
from streaming.combine.big_endian import Int64Array
from streaming.combine.gaps import GapTotals
from streaming.combine.partition_state import GapsClosed
from streaming.config.links import LinkSettings
from streaming.config.settings import MetricsSettings
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LogEnds, lag_report
from streaming.evaluation.lag.lag_evaluation import LagEvaluation, evaluate_lag
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.rates import known_produce_rates
from streaming.evaluation.lag.retention.lost_records import LOG_START_POINTS
from streaming.evaluation.lag.stored.commit_windows import CommitWindows
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets
from streaming.events import Position, TopicMetadata, TopicsSampled
from streaming.events.from_records import log_event
from streaming.group.listing import GroupListing, ListedGroup
from streaming.group.snapshot import STABLE, GroupSnapshot
from streaming.http.compression import compress_gzip
from streaming.prometheus.metric_selection import export_options
from streaming.prometheus.metrics import Exporter
from streaming.protocol import decode
from streaming.run.samples.lag.work_watch import WorkWatch
from streaming.state.monitor_state import MonitorState
from tests.bench.figures import Figure, Target, median
from tests.bench.fill import BenchError
from tests.bench.latency_probe import SCRAPE_TARGET_SECONDS
from tests.bench.synthetic_groups import BEHIND_RECORDS, FIRST_GENERATION, FIRST_OFFSET, SyntheticGroups

REBALANCED_OF_A_THOUSAND = 12.5
"""Groups that rebalance between two scrapes, per thousand groups."""
_STARTED_MS = 1_795_300_000_000
_SAMPLE_MS = 30_000
_STALE_AFTER_MS = 60_000
_OFFSETS_TOPIC_PARTITIONS = 50
_OFFSETS_A_ROUND = 1_234_567
_ROUNDS = 3
MOST_SERIES, MOST_BYTES = Target(250_000, "at most"), Target(30_000_000, "at most")
"""Limits of a scrape of 10,000 groups with 100,000 partitions and default settings."""
_DEFAULT = "default settings"
_SETTINGS = {
    _DEFAULT: MetricsSettings(),
    "every detail and every exporter's names, no limit": MetricsSettings(
        granularity="partition", compatible_with=("kafka_exporter", "kafka_lag_exporter"), max_series=10**9
    ),
}

Result = TypeVar("Result")


class SyntheticMonitor:
    """The state of a monitor of synthetic groups. Each `advance` adds a sample, and a rebalance of some groups."""

    def __init__(self, synthetic_groups: SyntheticGroups) -> None:
        self._synthetic_groups = synthetic_groups
        self._strategies = tuple(AS_JAVA_LEADER.values())
        self._samples = 0
        self._rebalances = 0
        self._ends, self._starts = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS)
        self._windows = CommitWindows()
        self._work = WorkWatch("bench")
        self._keys = [
            (synthetic_groups.group_id(number), topic, partition)
            for number in range(synthetic_groups.groups)
            for topic, partition in synthetic_groups.partitions(number)
        ]
        self.monitor_state = MonitorState()
        self.monitor_state.put_batch(
            [self._evaluate(number, FIRST_GENERATION) for number in range(synthetic_groups.groups)], []
        )
        totals = GapTotals((1, 2, 0, 1, *[0] * 7), 40_500)
        self.monitor_state.put_gap_totals([GapsClosed((), dict.fromkeys(self.monitor_state.view().groups, totals))])
        self.monitor_state.put_health(ready=True, was_ready=True)
        self.monitor_state.put_batch_end(1.0, self.now_ms)
        for _ in range(_ROUNDS):
            self._sample()

    @property
    def now_ms(self) -> int:
        """Return the time of the last sample."""
        return _STARTED_MS + _SAMPLE_MS * self._samples

    def advance(self) -> float:
        """Rebalance some groups, and add a sample. Return the processor time of the sample, in seconds."""
        first = self._rebalances
        self._rebalances += max(1, round(self._synthetic_groups.groups * REBALANCED_OF_A_THOUSAND / 1000))
        changes = map(self._synthetic_groups.rebalance, range(first, self._rebalances))
        self.monitor_state.put_batch([self._evaluate(one.number, one.generation_id) for one in changes], [])
        return self._sample()

    def _evaluate(self, number: int, generation_id: int) -> GroupState:
        """Return a group after its record of a new generation."""
        group_id = self._synthetic_groups.group_id(number)
        known = self.monitor_state.view().groups.get(group_id) or GroupState(GroupSnapshot(group_id))
        key, value = self._synthetic_groups.generation(number, generation_id, self.now_ms)
        reported = log_event(decode(key, value), Position(0, generation_id, self.now_ms))
        events = [] if reported is None else [reported[1]]
        topics = {topic: self._synthetic_groups.topics[topic] for topic in self._synthetic_groups.subscription(number)}
        sampled = TopicsSampled({topic: TopicMetadata(count, self.now_ms) for topic, count in topics.items()})
        return apply_batch(apply_batch(known, events, self._strategies).record, [sampled], self._strategies).record

    def _sample(self) -> float:
        """Commit in all groups, then sample the brokers. Return the processor time of the sample, in seconds."""
        self._samples += 1
        end_offset = FIRST_OFFSET + BEHIND_RECORDS + _OFFSETS_A_ROUND * self._samples
        sample = self._cluster_sample(end_offset)
        offsets = end_offset - BEHIND_RECORDS - np.arange(len(self._keys)) % 1_000
        commits = self._commits(offsets, end_offset)
        listed = dict.fromkeys(self.monitor_state.view().groups, ListedGroup("classic", "consumer", STABLE, 1))
        seconds, _ = measure_cpu(lambda: self._put_sample(sample, commits, GroupListing(self.now_ms, listed)))
        return seconds

    def _put_sample(self, sample: ClusterSample, commits: pa.Table, listing: GroupListing) -> None:
        """Do the work of the driver for a sample of the brokers."""
        self._ends.add(sample.end_offsets, self.now_ms)
        self._starts.add(sample.log_start_offsets, self.now_ms)
        lag = self._lag(sample, commits)
        self.monitor_state.put_sample(sample, lag, listing)
        rates = known_produce_rates(self._ends, self.now_ms)
        work, _ = self._work.measure(self.monitor_state.view(), lag, rates)
        self.monitor_state.put_work(work)

    def _cluster_sample(self, end_offset: int) -> ClusterSample:
        topics, now_ms = self._synthetic_groups.topics, self.now_ms
        partitions = [(topic, at) for topic, count in topics.items() for at in range(count)]
        return ClusterSample(
            sampled_at_ms=now_ms,
            topics={topic: TopicMetadata(count, now_ms) for topic, count in topics.items()},
            end_offsets=dict.fromkeys(partitions, end_offset),
            log_start_offsets=dict.fromkeys(partitions, FIRST_OFFSET + self._samples),
            offsets_topic={at: LogEnds(1_000, 1_000) for at in range(_OFFSETS_TOPIC_PARTITIONS)},
            offsets_topic_partitions=_OFFSETS_TOPIC_PARTITIONS,
            offsets_topic_leaders={at: at % 3 for at in range(_OFFSETS_TOPIC_PARTITIONS)},
            brokers=3,
        )

    def _commits(self, offsets: Int64Array, end_offset: int) -> pa.Table:
        """Commit an offset in each partition. Return the last commits."""
        rows = np.arange(len(offsets))
        commit_ms, at = np.full(len(rows), self.now_ms - 500), np.full(len(rows), self._samples)
        self._windows.put(rows, offsets, commit_ms, at)
        self._windows.observe(rows, at, offsets, np.full(len(rows), end_offset))
        columns = [pa.array(column) for column in (*zip(*self._keys, strict=True), offsets, commit_ms)]
        return pa.table(columns, schema=pa.schema(list(LAG_SCHEMA)[:5]))

    def _lag(self, sample: ClusterSample, commits: pa.Table) -> LagEvaluation:
        rows = np.arange(len(commits))
        at = np.full(len(rows), self._samples)
        report = lag_report(commits, sample)
        read_up_to_ms = pa.array(np.full(len(rows), self.now_ms))
        return evaluate_lag(report, self._ends, self._starts, self._windows.as_of(rows, at), read_up_to_ms)


def metrics_text_figures(synthetic_groups: SyntheticGroups) -> list[Figure]:
    """Measure the processor time of the first scrape and of later scrapes.

    Raises BenchError if prometheus-client writes a different text for the same samples.
    """
    monitor = SyntheticMonitor(synthetic_groups)
    scrapers = {words: Scraper(monitor, settings) for words, settings in _SETTINGS.items()}
    first = {words: scraper.scrape() for words, scraper in scrapers.items()}
    at_work: dict[str, list[ScrapeResult]] = {words: [] for words in scrapers}
    for _ in range(_ROUNDS):
        monitor.advance()
        for words, scraper in scrapers.items():
            at_work[words].append(scraper.scrape())
    return [figure for words in scrapers for figure in _figures(synthetic_groups, words, first[words], at_work[words])]


@dataclass(frozen=True, slots=True)
class ScrapeResult:
    """One response, and the processor time to write and to compress it."""

    text: bytes
    written_seconds: float
    gzipped_bytes: int
    gzip_seconds: float

    @property
    def series(self) -> int:
        """The number of series in the response."""
        return self.text.count(b"\n") - self.text.count(b"\n# ") - 1


class Scraper:
    """Scrapes a synthetic monitor with one set of settings."""

    def __init__(self, monitor: SyntheticMonitor, settings: MetricsSettings) -> None:
        clusters, options = [("bench", monitor.monitor_state)], export_options(settings, LinkSettings())
        self._exporter = Exporter(clusters, lambda: monitor.now_ms, _STALE_AFTER_MS, options)

    def scrape(self) -> ScrapeResult:
        """Write and compress one response."""
        seconds, pieces = measure_cpu(lambda: self._exporter.exposition(generate_latest))
        gzip_seconds, compressed = measure_cpu(lambda: compress_gzip(pieces))
        return ScrapeResult(b"".join(pieces), seconds, len(compressed), gzip_seconds)


def _figures(
    synthetic_groups: SyntheticGroups, settings: str, first: ScrapeResult, at_work: Sequence[ScrapeResult]
) -> Iterator[Figure]:
    last = at_work[-1]
    seconds = median([one.written_seconds for one in at_work])
    gzip_seconds = median([one.gzip_seconds for one in at_work])
    library_seconds = _library_seconds(last.text)
    name = f"scrape of {synthetic_groups.groups:,} groups, {synthetic_groups.commit_keys:,} partitions, {settings}"
    is_lean = synthetic_groups == SyntheticGroups() and settings == _DEFAULT
    most_series, most_bytes = (MOST_SERIES, MOST_BYTES) if is_lean else (None, None)
    yield Figure(f"{name}: series", "series", last.series, target=most_series)
    yield Figure("- bytes (baseline: gzipped)", "bytes", len(last.text), last.gzipped_bytes, most_bytes)
    yield Figure("- CPU to write it (baseline: prometheus-client)", "s", seconds, library_seconds)
    target = Target(SCRAPE_TARGET_SECONDS, "at most") if synthetic_groups == SyntheticGroups() else None
    yield Figure("- CPU to write and gzip it", "s", seconds + gzip_seconds, target=target)
    yield Figure("- CPU to write it for the first time", "s", first.written_seconds)


def _library_seconds(text: bytes) -> float:
    families = _FixedCollector([*text_string_to_metric_families(text.decode())])
    seconds, of_library = measure_cpu(lambda: generate_latest(families))
    if of_library != text:
        raise BenchError("prometheus-client writes a different text for the same samples")
    return seconds


class _FixedCollector(Collector):
    """Metric families of prometheus-client that already exist."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        return self._families


def measure_cpu(work: Callable[[], Result]) -> tuple[float, Result]:
    started = process_time()
    result = work()
    return process_time() - started, result
