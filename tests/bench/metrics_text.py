"""Part five: what a scrape costs of 10,000 groups with 100,000 partitions, and what it is in.

The state of a monitor of the synthetic groups (`synthetic_groups.py`), with commits, samples, shares of work and commit
gaps; no broker, no Spark. Between two scrapes of a monitor at work there is a new sample, and some groups have
rebalanced: so many as 500 a minute are in 15 s. prometheus-client writes the same samples, made before, for comparison.
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
from streaming.combine.gaps import GapTotals
from streaming.combine.partition_state import GapsClosed
from streaming.combine.wire import Int64Array
from streaming.config.settings import MetricsSettings
from streaming.evaluation.fairness.throughput import end_offset_rates
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.lag.commit_windows import CommitWindows
from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, LogEnds, lag_report
from streaming.evaluation.lag.lag_evaluation import LagEvaluation, evaluate_lag
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.retention import LOG_START_POINTS
from streaming.evaluation.lag.sampled_offsets import SampledOffsets
from streaming.events import Position, TopicMetadata, TopicsSampled, log_event
from streaming.group.listing import GroupListing, ListedGroup
from streaming.group.snapshot import STABLE, GroupSnapshot
from streaming.http.compression import compress_gzip
from streaming.prometheus.metric_selection import select_metrics
from streaming.prometheus.metrics import Exporter
from streaming.prometheus.series_limit import Bounds
from streaming.protocol import decode
from streaming.run.samples.work_watch import WorkWatch
from streaming.state.monitor_state import MonitorState
from tests.bench.figures import Bar, Figure, median
from tests.bench.fill import BenchError
from tests.bench.latency_probe import SCRAPE_BAR_SECONDS
from tests.bench.synthetic_groups import BEHIND_RECORDS, FIRST_GENERATION, FIRST_OFFSET, SyntheticGroups

REBALANCED_OF_A_THOUSAND = 12.5
"""Groups that have rebalanced since the last scrape."""
_STARTED_MS = 1_795_300_000_000
_SAMPLE_MS = 10_000
_STALE_AFTER_MS = 60_000
_OFFSETS_TOPIC_PARTITIONS = 50
_OFFSETS_A_ROUND = 1_234_567
_ROUNDS = 3
_SETTINGS = {
    "default settings": MetricsSettings(),
    "every exporter's names, no limit": MetricsSettings(
        compatible_with=("kafka_exporter", "kafka_lag_exporter"), max_series=10**9
    ),
}

Result = TypeVar("Result")


class ShownSyntheticGroups:
    """A registry of the crowd that goes on: each `go_on` is a sample later, and some groups a rebalance."""

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
            [self._evaluated(number, FIRST_GENERATION) for number in range(synthetic_groups.groups)], []
        )
        totals = GapTotals((1, 2, 0, 1, 0, 0), 40_500)
        self.monitor_state.put_gap_totals([GapsClosed((), dict.fromkeys(self.monitor_state.view().groups, totals))])
        self.monitor_state.put_health(ready=True, was_ready=True, batch_seconds=1.0)
        for _ in range(_ROUNDS):
            self._sample()

    @property
    def now_ms(self) -> int:
        """The moment of the last sample."""
        return _STARTED_MS + _SAMPLE_MS * self._samples

    def go_on(self) -> None:
        """Let some groups rebalance, and sample."""
        first = self._rebalances
        self._rebalances += max(1, round(self._synthetic_groups.groups * REBALANCED_OF_A_THOUSAND / 1000))
        changes = map(self._synthetic_groups.rebalance, range(first, self._rebalances))
        self.monitor_state.put_batch([self._evaluated(one.number, one.generation_id) for one in changes], [])
        self._sample()

    def _evaluated(self, number: int, generation_id: int) -> GroupState:
        """A group after one record more."""
        group_id = self._synthetic_groups.group_id(number)
        known = self.monitor_state.view().groups.get(group_id) or GroupState(GroupSnapshot(group_id))
        key, value = self._synthetic_groups.generation(number, generation_id, self.now_ms)
        reported = log_event(decode(key, value), Position(0, generation_id, self.now_ms))
        events = [] if reported is None else [reported[1]]
        topics = {topic: self._synthetic_groups.topics[topic] for topic in self._synthetic_groups.subscription(number)}
        sampled = TopicsSampled({topic: TopicMetadata(count, self.now_ms) for topic, count in topics.items()})
        return apply_batch(apply_batch(known, events, self._strategies).record, [sampled], self._strategies).record

    def _sample(self) -> None:
        """Everybody commits, then brokers are sampled."""
        self._samples += 1
        end_offset = FIRST_OFFSET + BEHIND_RECORDS + _OFFSETS_A_ROUND * self._samples
        sample = self._cluster_sample(end_offset)
        self._ends.add(sample.end_offsets, self.now_ms)
        self._starts.add(sample.log_start_offsets, self.now_ms)
        offsets = end_offset - BEHIND_RECORDS - np.arange(len(self._keys)) % 1_000
        lag = self._lag(sample, offsets, end_offset)
        listed = dict.fromkeys(self.monitor_state.view().groups, ListedGroup("classic", "consumer", STABLE, 1))
        self.monitor_state.put_sample(sample, lag, GroupListing(self.now_ms, listed))
        rates = end_offset_rates(self._ends, self.now_ms)
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
            brokers=3,
        )

    def _lag(self, sample: ClusterSample, offsets: Int64Array, end_offset: int) -> LagEvaluation:
        rows = np.arange(len(offsets))
        commit_ms, at = np.full(len(rows), self.now_ms - 500), np.full(len(rows), self._samples)
        self._windows.put(rows, offsets, commit_ms, at)
        self._windows.observe(rows, at, offsets, np.full(len(rows), end_offset))
        columns = [pa.array(column) for column in (*zip(*self._keys, strict=True), offsets, commit_ms)]
        report = lag_report(pa.table(columns, schema=pa.schema(list(LAG_SCHEMA)[:5])), sample)
        read_up_to_ms = pa.array(np.full(len(rows), self.now_ms))
        return evaluate_lag(report, self._ends, self._starts, self._windows.as_of(rows, at), read_up_to_ms)


def metrics_text_figures(synthetic_groups: SyntheticGroups) -> list[Figure]:
    """Measure the first scrape and those of a monitor at work, in processor time: other processes hardly change it.

    Raises BenchError where prometheus-client writes another text of the same samples.
    """
    shown = ShownSyntheticGroups(synthetic_groups)
    scrapers = {words: _Scraper(shown, settings) for words, settings in _SETTINGS.items()}
    first = {words: scraper.scrape() for words, scraper in scrapers.items()}
    at_work: dict[str, list[_Scraped]] = {words: [] for words in scrapers}
    for _ in range(_ROUNDS):
        shown.go_on()
        for words, scraper in scrapers.items():
            at_work[words].append(scraper.scrape())
    return [figure for words in scrapers for figure in _figures(synthetic_groups, words, first[words], at_work[words])]


@dataclass(frozen=True, slots=True)
class _Scraped:
    """An answer, and the processor time it took to write and to compress."""

    text: bytes
    written_seconds: float
    zipped_bytes: int
    zip_seconds: float


class _Scraper:
    def __init__(self, shown: ShownSyntheticGroups, settings: MetricsSettings) -> None:
        clusters, bounds = [("bench", shown.monitor_state)], Bounds(settings.top_k, settings.max_series)
        self._exporter = Exporter(clusters, lambda: shown.now_ms, _STALE_AFTER_MS, select_metrics(settings), bounds)

    def scrape(self) -> _Scraped:
        seconds, pieces = _timed(lambda: self._exporter.exposition(generate_latest))
        zip_seconds, as_zipped = _timed(lambda: compress_gzip(pieces))
        return _Scraped(b"".join(pieces), seconds, len(as_zipped), zip_seconds)


def _figures(
    synthetic_groups: SyntheticGroups, settings: str, first: _Scraped, at_work: Sequence[_Scraped]
) -> Iterator[Figure]:
    last = at_work[-1]
    seconds = median([one.written_seconds for one in at_work])
    zip_seconds = median([one.zip_seconds for one in at_work])
    library_seconds = _library_seconds(last.text)
    name = f"scrape of {synthetic_groups.groups:,} groups, {synthetic_groups.commit_keys:,} partitions, {settings}"
    yield Figure(f"{name}: series", "series", last.text.count(b"\n") - last.text.count(b"\n# ") - 1)
    yield Figure("- its bytes; right: gzipped", "bytes", len(last.text), last.zipped_bytes)
    yield Figure("- CPU to write it; right: prometheus-client, of samples made before", "s", seconds, library_seconds)
    bar = Bar(SCRAPE_BAR_SECONDS, "at most") if synthetic_groups == SyntheticGroups() else None
    yield Figure("- CPU to write and gzip it", "s", seconds + zip_seconds, bar=bar)
    yield Figure("- CPU to write it for the first time", "s", first.written_seconds)


def _library_seconds(text: bytes) -> float:
    families = _Made([*text_string_to_metric_families(text.decode())])
    seconds, of_library = _timed(lambda: generate_latest(families))
    if of_library != text:
        raise BenchError("prometheus-client writes the same samples as another text")
    return seconds


class _Made(Collector):
    """Families of the library's own, ready to be written."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        return self._families


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    started = process_time()
    result = work()
    return process_time() - started, result
