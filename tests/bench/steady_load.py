"""Writes a steady load into `__consumer_offsets` until SIGTERM: `python -m tests.bench.steady_load`.

The load consists of commits and rebalances of `SyntheticGroups` at a given pace, in small steps. After each step the
program prints its progress. If it falls behind, it catches up, so the average pace is exact.

The broker accepts records in its own topics only from clients with the id `__admin_client`. The coordinator's memory
does not contain these records. For readers of the topic they look like any other record.
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict

import click
from confluent_kafka import KafkaError, KafkaException, Producer

from assignors.coordinator import coordinator_partition
from streaming.events import OFFSETS_TOPIC
from tests.bench.synthetic_groups import (
    BEHIND_RECORDS,
    FIRST_GENERATION,
    FIRST_OFFSET,
    LoadProgress,
    SyntheticGroups,
    commit_value,
)

STEP_SECONDS = 0.1
OFFSETS_TOPIC_PARTITIONS = 50
"""Kafka's default number of partitions of `__consumer_offsets`, and that of the embedded broker."""

_FLUSH_SECONDS = 60.0


class SyntheticWriter:
    """Writes the records of synthetic groups into the partitions of their coordinators.

    Raises KafkaException if the broker rejects a record.
    """

    def __init__(self, bootstrap_servers: str, synthetic_groups: SyntheticGroups) -> None:
        self._synthetic_groups = synthetic_groups
        errors: list[KafkaError] = []
        # The callback below must not refer to the writer. Otherwise the producer ends only at a garbage collection.
        self._errors = errors
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "client.id": "__admin_client",
                # A retry must not change the order of a key's records. Idempotence would ensure this, too. But a
                # coordinator treats commits of a producer with an id as commits of an open transaction when it loads
                # them.
                "max.in.flight": 1,
                "linger.ms": 50,
                "queue.buffering.max.messages": 1_000_000,
                "delivery.report.only.error": True,
                "on_delivery": lambda error, _: errors.append(error),
            }
        )
        self._group_partitions = [
            coordinator_partition(synthetic_groups.group_id(at), OFFSETS_TOPIC_PARTITIONS)
            for at in range(synthetic_groups.groups)
        ]
        self._keys = [
            (synthetic_groups.commit_key(number, partition), self._group_partitions[number])
            for number in range(synthetic_groups.groups)
            for partition in synthetic_groups.partitions(number)
        ]

    def grow_topics(self, records: int = 1) -> None:
        """Write `records` records to every partition that the groups read."""
        for topic, partitions in self._synthetic_groups.topics.items():
            for partition, _ in itertools.product(range(partitions), range(records)):
                self._producer.produce(topic, b"record", partition=partition)

    def rebalance(self, number: int, generation_id: int) -> None:
        """Write the record of a group's new generation."""
        key, value = self._synthetic_groups.generation(number, generation_id, _now_ms())
        self._producer.produce(OFFSETS_TOPIC, value, key, self._group_partitions[number])

    def commit(self, first: int, until: int) -> None:
        """Write the commits with the numbers `first` to `until` - 1 (rule 4 of `synthetic_groups`)."""
        produce, now_ms = self._producer.produce, _now_ms()
        for at_round, numbers in _by_round(first, until, len(self._keys)):
            if numbers.start == 0:
                self.grow_topics()
            value = commit_value(FIRST_OFFSET + 1 + at_round, now_ms)
            for key, partition in self._keys[numbers.start : numbers.stop]:
                produce(OFFSETS_TOPIC, value, key, partition)

    def write_first_records(self, on_records: Callable[[int], object]) -> None:
        """Write the first generation and the first commits of all groups, and the records that they read."""
        self.grow_topics(FIRST_OFFSET + BEHIND_RECORDS)
        for number in range(self._synthetic_groups.groups):
            self.rebalance(number, FIRST_GENERATION)
            on_records(1)
        value = commit_value(FIRST_OFFSET, _now_ms())
        for key, partition in self._keys:
            self._producer.produce(OFFSETS_TOPIC, value, key, partition)
        self.finish()
        on_records(len(self._keys))

    def check(self) -> None:
        """Raise KafkaException if the broker has rejected a record."""
        self._producer.poll(0)
        if self._errors:
            raise KafkaException(self._errors[0])

    def finish(self) -> None:
        """Wait until the broker has all records."""
        if left := self._producer.flush(_FLUSH_SECONDS):
            raise KafkaException(f"the broker did not accept {left} records within {_FLUSH_SECONDS:g} s")
        self.check()


def _by_round(first: int, until: int, keys: int) -> Iterator[tuple[int, range]]:
    """Split commit numbers by round. Yields each round with the positions in it.

    >>> list(_by_round(8, 25, 10))
    [(0, range(8, 10)), (1, range(0, 10)), (2, range(0, 5))]
    """
    while first < until:
        at_round, start = divmod(first, keys)
        stop = min(keys, start + until - first)
        yield at_round, range(start, stop)
        first += stop - start


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def run_load(
    writer: SyntheticWriter,
    synthetic_groups: SyntheticGroups,
    commits_per_second: float,
    rebalances_per_minute: float,
    stop: threading.Event,
) -> Iterator[LoadProgress]:
    """Write step by step until `stop` is set. Yields the progress after each step."""
    started_seconds, commits, rebalances = time.monotonic(), 0, 0
    for step in itertools.count(1):
        due_seconds = step * STEP_SECONDS
        writer.commit(commits, commits := int(due_seconds * commits_per_second))
        rebalances_before, rebalances = rebalances, int(due_seconds * rebalances_per_minute / 60)
        for k in range(rebalances_before, rebalances):
            next_one = synthetic_groups.rebalance(k)
            writer.rebalance(next_one.number, next_one.generation_id)
        writer.check()
        late_seconds = time.monotonic() - started_seconds - due_seconds
        yield LoadProgress(_now_ms(), commits, rebalances, max(0.0, late_seconds))
        if stop.wait(max(0.0, -late_seconds)):
            return


@click.command()
@click.option("--bootstrap-servers", required=True)
@click.option("--groups", type=int, required=True)
@click.option("--commits-per-second", type=float, required=True)
@click.option("--rebalances-per-minute", type=float, required=True)
def main(bootstrap_servers: str, groups: int, commits_per_second: float, rebalances_per_minute: float) -> None:
    """Write until SIGTERM, then wait until the broker has all records."""
    stop, synthetic_groups = threading.Event(), SyntheticGroups(groups)
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    writer = SyntheticWriter(bootstrap_servers, synthetic_groups)
    for written in run_load(writer, synthetic_groups, commits_per_second, rebalances_per_minute, stop):
        sys.stdout.write(json.dumps(asdict(written)) + "\n")
        sys.stdout.flush()
    writer.finish()


if __name__ == "__main__":
    main()
