"""A steady load on `__consumer_offsets`: `python -m tests.bench.steady_load`, a program of its own, until SIGTERM.

It writes commits and rebalances of `SyntheticGroups` at a given pace, in small steps. After each step it prints what
it has written by then. If it falls behind it makes up for it: the pace is that of the whole.

The broker lets nobody write to its own topics but clients of one id. What the coordinator keeps in its memory does not
follow; readers of the topic see no difference.
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
    SyntheticGroups,
    Written,
    commit_value,
)

STEP_SECONDS = 0.1
OFFSETS_TOPIC_PARTITIONS = 50
"""As Kafka has it unless told otherwise, and as the embedded broker does."""

_FLUSH_SECONDS = 60.0


class SyntheticWriter:
    """Writes a crowd's records where their coordinator would. Raises KafkaException for a record that is refused."""

    def __init__(self, bootstrap_servers: str, synthetic_groups: SyntheticGroups) -> None:
        self._synthetic_groups = synthetic_groups
        refused: list[KafkaError] = []
        self._refused = (
            refused  # no bound method below: the producer ends with the writer, not with a garbage collection
        )
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "client.id": "__admin_client",
                # A retry must not change the order of a key's records. Idempotence would see to that, too, but a
                # coordinator that loads commits of a producer with an id takes them for those of an open transaction.
                "max.in.flight": 1,
                "linger.ms": 50,
                "queue.buffering.max.messages": 1_000_000,
                "delivery.report.only.error": True,
                "on_delivery": lambda error, _: refused.append(error),
            }
        )
        self._places = [
            coordinator_partition(synthetic_groups.group_id(at), OFFSETS_TOPIC_PARTITIONS)
            for at in range(synthetic_groups.groups)
        ]
        self._keys = [
            (synthetic_groups.commit_key(number, partition), self._places[number])
            for number in range(synthetic_groups.groups)
            for partition in synthetic_groups.partitions(number)
        ]

    def grow_topics(self, records: int = 1) -> None:
        """Write so many records to every partition that is read."""
        for topic, partitions in self._synthetic_groups.topics.items():
            for partition, _ in itertools.product(range(partitions), range(records)):
                self._producer.produce(topic, b"record", partition=partition)

    def rebalance(self, number: int, generation_id: int) -> None:
        """Write a group's generation."""
        key, value = self._synthetic_groups.generation(number, generation_id, _now_ms())
        self._producer.produce(OFFSETS_TOPIC, value, key, self._places[number])

    def commit(self, first: int, until: int) -> None:
        """Write the commits of these numbers, counted from the first of all; 0 begins round 0 (rule 4 of the crowd)."""
        produce, now_ms = self._producer.produce, _now_ms()
        for at_round, numbers in _by_round(first, until, len(self._keys)):
            if numbers.start == 0:
                self.grow_topics()
            value = commit_value(FIRST_OFFSET + 1 + at_round, now_ms)
            for key, place in self._keys[numbers.start : numbers.stop]:
                produce(OFFSETS_TOPIC, value, key, place)

    def found(self, on_records: Callable[[int], object]) -> None:
        """Write everybody's first generation and first commits, and what they have to read."""
        self.grow_topics(FIRST_OFFSET + BEHIND_RECORDS)
        for number in range(self._synthetic_groups.groups):
            self.rebalance(number, FIRST_GENERATION)
            on_records(1)
        value = commit_value(FIRST_OFFSET, _now_ms())
        for key, place in self._keys:
            self._producer.produce(OFFSETS_TOPIC, value, key, place)
        self.finish()
        on_records(len(self._keys))

    def check(self) -> None:
        """Raise KafkaException if a record was refused by now."""
        self._producer.poll(0)
        if self._refused:
            raise KafkaException(self._refused[0])

    def finish(self) -> None:
        """Wait until the broker has everything."""
        if left := self._producer.flush(_FLUSH_SECONDS):
            raise KafkaException(f"{left} records were not taken within {_FLUSH_SECONDS:g} s")
        self.check()


def _by_round(first: int, until: int, keys: int) -> Iterator[tuple[int, range]]:
    """Numbers split by round: each round with the places in it.

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
) -> Iterator[Written]:
    """Write step by step until stopped; yield what was written after each."""
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
        yield Written(_now_ms(), commits, rebalances, max(0.0, late_seconds))
        if stop.wait(max(0.0, -late_seconds)):
            return


@click.command()
@click.option("--bootstrap-servers", required=True)
@click.option("--groups", type=int, required=True)
@click.option("--commits-per-second", type=float, required=True)
@click.option("--rebalances-per-minute", type=float, required=True)
def main(bootstrap_servers: str, groups: int, commits_per_second: float, rebalances_per_minute: float) -> None:
    """Write until told to end, then wait until the broker has all of it."""
    stop, synthetic_groups = threading.Event(), SyntheticGroups(groups)
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    writer = SyntheticWriter(bootstrap_servers, synthetic_groups)
    for written in run_load(writer, synthetic_groups, commits_per_second, rebalances_per_minute, stop):
        sys.stdout.write(json.dumps(asdict(written)) + "\n")
        sys.stdout.flush()
    writer.finish()


if __name__ == "__main__":
    main()
