"""Fills a real `__consumer_offsets` with commits of many simple groups."""

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
"""Lag of each group in each partition after its last commit, in records."""

_IN_FLIGHT = 32
_RESPONSE_SECONDS = 30.0
_LEADERS_SECONDS = 60.0

OnRecords = Callable[[int], object]
"""Receives the number of records committed since the last call."""


class BenchError(RemedyError):
    """The benchmark cannot run, or its figures would be meaningless."""


@dataclass(frozen=True, slots=True)
class Fill:
    """The number of commits to write. In each round, every group commits every partition of one topic once.

    Example: `Fill(groups=2_000, partitions=50, rounds=20).records` is 2,000,000.
    """

    groups: int = 2_000
    partitions: int = 50
    rounds: int = 20

    @property
    def records(self) -> int:
        """Return the total number of commits."""
        return self.groups * self.partitions * self.rounds

    @property
    def group_ids(self) -> tuple[str, ...]:
        """Return the ids of all groups."""
        return tuple(f"bench-group-{number:05}" for number in range(self.groups))

    @property
    def group_lag(self) -> int:
        """Return the lag of each group in records after all commits."""
        return self.partitions * BEHIND_RECORDS

    @property
    def in_words(self) -> str:
        """Return the size in words."""
        return f"{self.groups:,} groups x {self.partitions} partitions x {self.rounds} rounds"

    def with_records(self, records: int) -> Fill:
        """Return a fill with the fewest rounds that write at least `records` records."""
        return Fill(self.groups, self.partitions, math.ceil(records / (self.groups * self.partitions)))


def fill_offsets_topic(bootstrap_servers: str, fill: Fill, on_records: OnRecords) -> int:
    """Fill the log. Returns its number of records. Raises KafkaError if the broker rejects a commit."""
    _create_topics(bootstrap_servers, fill)
    host, _, port = bootstrap_servers.partition(":")
    with socket.create_connection((host, int(port)), _RESPONSE_SECONDS) as connection:
        committer = _Committer(connection, fill, on_records)
        # The first commits are sent one by one, because the coordinators can still be loading their partitions.
        for group_id in fill.group_ids:
            committer.commit_with_retries(group_id, committed_offset=1)
        for committed_offset, group_id in itertools.product(range(2, fill.rounds + 1), fill.group_ids):
            committer.commit(group_id, committed_offset)
        committer.finish()
    return sum(offsets_topic_ends(bootstrap_servers).values())


def offsets_topic_ends(bootstrap_servers: str) -> dict[int, int]:
    """Return the end offset of each partition of `__consumer_offsets`."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers, group_id=None)
    try:
        partitions = [TopicPartition(OFFSETS_TOPIC, number) for number in consumer.partitions_for_topic(OFFSETS_TOPIC)]
        ends = consumer.end_offsets(partitions)
        return {partition.partition: int(end) for partition, end in ends.items()}
    finally:
        consumer.close()


def _create_topics(bootstrap_servers: str, fill: Fill) -> None:
    """Create `__consumer_offsets` and the committed topic. Write the records that give the groups their lag."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        admin.create_topics([NewTopic(TOPIC, num_partitions=fill.partitions, replication_factor=1)])
        request_coordinator(admin, fill.group_ids[0])
    finally:
        admin.close()
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=50)
    try:
        for number in range(fill.partitions * (fill.rounds + BEHIND_RECORDS)):
            producer.send(TOPIC, partition=number % fill.partitions, value=b"record")
        producer.flush()
    finally:
        producer.close()


def request_coordinator(admin: KafkaAdminClient, group_id: str) -> None:
    """Request the coordinator of a group, which makes the broker create `__consumer_offsets`."""
    deadline = time.monotonic() + _LEADERS_SECONDS
    while True:
        try:
            admin.list_group_offsets(group_id)
        except KafkaError as error:  # noqa: PERF203 - the loop waits anyway
            if not error.retriable or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


class _Committer:
    """Sends commits over one connection, with many requests in flight. Responses have the order of the requests."""

    def __init__(self, connection: socket.socket, fill: Fill, on_records: OnRecords) -> None:
        self._connection = connection
        self._responses: BufferedReader = connection.makefile("rb")
        self._fill = fill
        self._on_records = on_records
        self._correlation_ids = itertools.count()
        self._in_flight: deque[int] = deque()

    def commit_with_retries(self, group_id: str, committed_offset: int) -> None:
        """Commit and wait for the response. Repeats this while the coordinator is not available."""
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
        """Send a commit. If `_IN_FLIGHT` requests are in flight, wait for one response."""
        self._send(group_id, committed_offset)
        if len(self._in_flight) >= _IN_FLIGHT:
            self._check_next_response()

    def finish(self) -> None:
        """Wait for all responses."""
        while self._in_flight:
            self._check_next_response()

    def _send(self, group_id: str, committed_offset: int) -> None:
        correlation_id = next(self._correlation_ids)
        self._connection.sendall(
            commit_request(correlation_id, group_id, TOPIC, self._fill.partitions, committed_offset)
        )
        self._in_flight.append(correlation_id)

    def _check_next_response(self) -> None:
        if (error := self._next_error()) is not None:
            raise error

    def _next_error(self) -> KafkaError | None:
        (size,) = struct.unpack(">i", self._read(4))
        codes = commit_error_codes(self._read(size), self._in_flight.popleft(), TOPIC, self._fill.partitions)
        if codes:
            error: KafkaError = for_code(codes[0])(f"a commit was rejected, error codes {codes}")
            return error
        self._on_records(self._fill.partitions)
        return None

    def _read(self, size: int) -> bytes:
        response = self._responses.read(size)
        if len(response) < size:
            raise BenchError(
                "the broker closed the connection while the log was filled: see its log, then run the benchmark again"
            )
        return response
