"""The part `rebalances`: measures the delay from a completed rebalance until `/metrics` shows it.

A classic rebalance is complete when the coordinator writes the new generation into `__consumer_offsets`. The timestamp
of this record is the start. The benchmark reads these records itself, and requests `/metrics` repeatedly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

from streaming.embedded.ports import free_port
from streaming.events import OFFSETS_TOPIC
from streaming.protocol import RecordType, decode
from streaming.protocol.classic import group_metadata
from streaming.spark.checkpoint_files import QUERY
from tests.bench.batches import BatchLog
from tests.bench.figures import Figure, Target, median, percentile
from tests.bench.fill import BenchError, offsets_topic_ends
from tests.bench.process import MONITOR, MeasuredProcess, monitor_environment
from tests.bench.scrape import Scrape, scrape

SEEN_TARGET = Target(5, "at most")

_READY_SECONDS = 180.0
_SECONDS_PER_REBALANCE = 20.0
_POLL_SECONDS = 0.1
GENERATION_GAUGE = "rebalance_monitor_group_generation"

OnSeen = Callable[[int], object]
"""Receives the total number of rebalances that /metrics has shown."""


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A generation with members, and the time at which the coordinator wrote it (seconds since the epoch)."""

    group_id: str
    generation_id: int
    completed_seconds: float


@dataclass(slots=True)
class Delays:
    """The delays in seconds of rebalances that were shown, and the rebalances that were not shown yet."""

    seconds: list[float] = field(default_factory=list)
    _waiting: list[Rebalance] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)

    def add_completed(self, rebalance: Rebalance) -> None:
        """Add a record of the log. The same generation again is no rebalance, but a static member that came back."""
        if rebalance.generation_id > self._known.get(rebalance.group_id, -1):
            self._known[rebalance.group_id] = rebalance.generation_id
            self._waiting.append(rebalance)

    def add_shown(self, generations: Mapping[str, float], at_seconds: float) -> None:
        """Add the generations of a scrape. A later generation also shows the earlier ones."""
        waiting = []
        for rebalance in self._waiting:
            if generations.get(rebalance.group_id, -1) >= rebalance.generation_id:
                self.seconds.append(at_seconds - rebalance.completed_seconds)
            else:
                waiting.append(rebalance)
        self._waiting = waiting


def rebalances_in(records: Iterable[tuple[bytes | None, bytes | None, int]]) -> Iterator[Rebalance]:
    """Yield the rebalances among records of `__consumer_offsets` (key, value, timestamp in ms)."""
    for key, value, timestamp_ms in records:
        if value is None or key is None or key[:2] != RecordType.GROUP_METADATA.to_bytes(2, "big"):
            continue
        metadata = group_metadata(decode(key, value))
        if metadata.members and metadata.generation_id is not None:  # without members, the last member has left
            yield Rebalance(metadata.group_id, metadata.generation_id, timestamp_ms / 1000)


def watch_rebalances(bootstrap_servers: str, folder: Path, wanted: int, on_seen: OnSeen) -> list[Figure]:
    """Run the monitor, in addition to the running load, until /metrics has shown `wanted` rebalances.

    Raises BenchError if this takes too long.
    """
    port = free_port()
    batches = BatchLog(folder / "checkpoint" / QUERY)
    with MeasuredProcess(MONITOR, folder, monitor_environment(bootstrap_servers, folder, port)) as process:
        await_ready(process, port)
        done_before = len(batches.read())
        delays = Delays()
        for answer, completed in _poll(process, bootstrap_servers, port, _SECONDS_PER_REBALANCE * wanted):
            for rebalance in completed:
                delays.add_completed(rebalance)
            delays.add_shown(answer.by_label(GENERATION_GAUGE, "group"), answer.at_seconds)
            batches.read()
            on_seen(len(delays.seconds))
            if len(delays.seconds) >= wanted:
                break
        else:
            raise BenchError(f"only {len(delays.seconds)} of {wanted} rebalances were seen (log: {process.log_path})")
        steady = [batch.seconds for batch in batches.read()[done_before:]]
        return _figures(delays.seconds, steady, process.cost().peak_memory_bytes)


def _figures(seconds: list[float], batch_seconds: list[float], memory_bytes: int) -> list[Figure]:
    return [
        Figure(f"rebalance completed to seen, p50 (of {len(seconds)})", "s", median(seconds)),
        Figure("rebalance completed to seen, p95", "s", percentile(seconds, 95), target=SEEN_TARGET),
        Figure(f"batch p50, demo load (of {len(batch_seconds)})", "s", median(batch_seconds)),
        Figure("batch p95, demo load", "s", percentile(batch_seconds, 95)),
        Figure("peak memory of all processes (PSS)", "MiB", memory_bytes / (1 << 20)),
    ]


def await_ready(process: MeasuredProcess, port: int, within_seconds: float = _READY_SECONDS) -> None:
    """Wait until the monitor reports ready. Raises BenchError if it is not ready in time."""
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        process.check()
        answer = scrape(port)
        if answer is not None and answer.value("rebalance_monitor_ready") == 1:
            return
        time.sleep(_POLL_SECONDS)
    raise BenchError(f"the monitor was not ready in {within_seconds:g} s (log: {process.log_path})")


def _poll(
    process: MeasuredProcess, bootstrap_servers: str, port: int, within_seconds: float
) -> Iterator[tuple[Scrape, list[Rebalance]]]:
    """Yield each scrape, with the rebalances of the log since the previous poll. Starts at the end of the log."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers, group_id=None, fetch_max_wait_ms=50)
    try:
        ends = offsets_topic_ends(bootstrap_servers)
        consumer.assign([TopicPartition(OFFSETS_TOPIC, partition) for partition in sorted(ends)])
        for partition, end in sorted(ends.items()):
            consumer.seek(TopicPartition(OFFSETS_TOPIC, partition), end)
        deadline = time.monotonic() + within_seconds
        while time.monotonic() < deadline:
            process.check()
            polled = consumer.poll(timeout_ms=int(_POLL_SECONDS * 1000))
            rows = ((row.key, row.value, row.timestamp) for partition in polled.values() for row in partition)
            completed = list(rebalances_in(rows))
            if (answer := scrape(port)) is not None:
                yield answer, completed
    finally:
        consumer.close()
