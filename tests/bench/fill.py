"""A real `__consumer_offsets` filled by commits of many simple groups."""

from __future__ import annotations

import itertools
import math
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedReader

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError, for_code

from streaming.errors import RemedyError
from streaming.events import OFFSETS_TOPIC
from tests.bench.offset_commits import commit_error_codes, commit_request

TOPIC = "bench-orders"
BEHIND_RECORDS = 1
"""How far each group's last commit stays behind the end of each partition: a lag that can be checked."""

_IN_FLIGHT = 32
_ANSWER_SECONDS = 30.0
_LEADERS_SECONDS = 60.0

OnRecords = Callable[[int], object]
"""Hears of records committed since it was last called."""


class BenchError(RemedyError):
    """The benchmark cannot be run, or its figures would mean nothing."""


@dataclass(frozen=True, slots=True)
class Fill:
    """What is written: in each round every group commits every partition of one topic once.

    Example: `Fill(groups=2_000, partitions=50, rounds=20).records` is 2,000,000.
    """

    groups: int = 2_000
    partitions: int = 50
    rounds: int = 20

    @property
    def records(self) -> int:
        """Commits in all."""
        return self.groups * self.partitions * self.rounds

    @property
    def group_ids(self) -> tuple[str, ...]:
        """Every group."""
        return tuple(f"bench-group-{number:05}" for number in range(self.groups))

    @property
    def group_lag(self) -> int:
        """Lag of each group when all is committed."""
        return self.partitions * BEHIND_RECORDS

    @property
    def in_words(self) -> str:
        """Its size."""
        return f"{self.groups:,} groups x {self.partitions} partitions x {self.rounds} rounds"

    def with_records(self, records: int) -> Fill:
        """As many rounds as it takes for at least so many records."""
        return Fill(self.groups, self.partitions, math.ceil(records / (self.groups * self.partitions)))


def fill_offsets_topic(bootstrap_servers: str, fill: Fill, on_records: OnRecords) -> int:
    """Fill the log; return how many records it then holds. Raises KafkaError where a commit is refused."""
    _make_topic(bootstrap_servers, fill)
    host, _, port = bootstrap_servers.partition(":")
    with socket.create_connection((host, int(port)), _ANSWER_SECONDS) as connection:
        committer = _Committer(connection, fill, on_records)
        # One by one: the first commits of all find partitions whose leader is still loading.
        for group_id in fill.group_ids:
            committer.commit_until_taken(group_id, committed_offset=1)
        for committed_offset, group_id in itertools.product(range(2, fill.rounds + 1), fill.group_ids):
            committer.commit(group_id, committed_offset)
        committer.finish()
    return sum(offsets_topic_ends(bootstrap_servers).values())


def offsets_topic_ends(bootstrap_servers: str) -> dict[int, int]:
    """The end of every partition of `__consumer_offsets`."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers, group_id=None)
    try:
        partitions = [TopicPartition(OFFSETS_TOPIC, number) for number in consumer.partitions_for_topic(OFFSETS_TOPIC)]
        ends = consumer.end_offsets(partitions)
        return {partition.partition: int(end) for partition, end in ends.items()}
    finally:
        consumer.close()


def _make_topic(bootstrap_servers: str, fill: Fill) -> None:
    """The topic the groups commit, with as many records as they need to have a lag; and `__consumer_offsets`."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        admin.create_topics([NewTopic(TOPIC, num_partitions=fill.partitions, replication_factor=1)])
        ask_for_coordinator(admin, fill.group_ids[0])
    finally:
        admin.close()
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=50)
    try:
        for number in range(fill.partitions * (fill.rounds + BEHIND_RECORDS)):
            producer.send(TOPIC, partition=number % fill.partitions, value=b"record")
        producer.flush()
    finally:
        producer.close()


def ask_for_coordinator(admin: KafkaAdminClient, group_id: str) -> None:
    """The first question for a group's coordinator makes the broker create `__consumer_offsets`."""
    deadline = time.monotonic() + _LEADERS_SECONDS
    while True:
        try:
            admin.list_group_offsets(group_id)
        except KafkaError as error:  # noqa: PERF203 - it waits anyway
            if not error.retriable or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


class _Committer:
    """Commits over one connection, many requests under way at once; answers come in the order of the requests."""

    def __init__(self, connection: socket.socket, fill: Fill, on_records: OnRecords) -> None:
        self._connection = connection
        self._answers: BufferedReader = connection.makefile("rb")
        self._fill = fill
        self._on_records = on_records
        self._correlation_ids = itertools.count()
        self._under_way: deque[int] = deque()

    def commit_until_taken(self, group_id: str, committed_offset: int) -> None:
        """Commit and wait for the answer; again while the coordinator is not there yet."""
        deadline = time.monotonic() + _LEADERS_SECONDS
        while True:
            self._send(group_id, committed_offset)
            error = self._next_error()
            if error is None:
                return
            if not error.retriable or time.monotonic() > deadline:
                raise error
            time.sleep(0.1)

    def commit(self, group_id: str, committed_offset: int) -> None:
        """Commit without waiting, as long as not too many requests are under way."""
        self._send(group_id, committed_offset)
        if len(self._under_way) >= _IN_FLIGHT:
            self._expect_taken()

    def finish(self) -> None:
        """Wait for every answer."""
        while self._under_way:
            self._expect_taken()

    def _send(self, group_id: str, committed_offset: int) -> None:
        correlation_id = next(self._correlation_ids)
        self._connection.sendall(
            commit_request(correlation_id, group_id, TOPIC, self._fill.partitions, committed_offset)
        )
        self._under_way.append(correlation_id)

    def _expect_taken(self) -> None:
        if (error := self._next_error()) is not None:
            raise error

    def _next_error(self) -> KafkaError | None:
        (size,) = struct.unpack(">i", self._read(4))
        codes = commit_error_codes(self._read(size), self._under_way.popleft(), TOPIC, self._fill.partitions)
        if codes:
            error: KafkaError = for_code(codes[0])(f"a commit was refused, error codes {codes}")
            return error
        self._on_records(self._fill.partitions)
        return None

    def _read(self, size: int) -> bytes:
        answer = self._answers.read(size)
        if len(answer) < size:
            raise BenchError("the broker hung up while the log was filled: see its log, then run the benchmark again")
        return answer
