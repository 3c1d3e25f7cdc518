"""Check the brokers of one cluster: their advertised addresses, the monitor's permissions, and the brokers' clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing

import numpy as np
from kafka.admin import OffsetSpec
from kafka.errors import BrokerNotAvailableError, KafkaError, NoError
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from streaming.config.load import Settings
from streaming.config.settings import ADMIN_API_SOURCE
from streaming.doctor.ask_permissions import request_permissions
from streaming.doctor.brokers import BROKERS, CLOCKS, MeasuredClocks, broker_findings, clock_findings
from streaming.doctor.finding import Finding, from_error, not_checked, note, ok
from streaming.doctor.permissions import READ_LOG, Permissions, permission_findings, used_permissions
from streaming.errors import RemedyError
from streaming.evaluation.lag.broker_clocks import BrokerClocks, OffsetsTopicEnds, ReceivedRecords
from streaming.evaluation.lag.next_offsets import TailFetch
from streaming.events import OFFSETS_TOPIC
from streaming.group.listing import Unanswered
from streaming.sampling.brokers import Brokers, OffsetsTopicMissingError
from streaming.sampling.connection import Connection, DifferentClusterError, Message
from streaming.sampling.tails import read_batch_times
from streaming.spark.checkpoint import local_cluster_id

ROUNDS = 8
ROUND_SECONDS = 2.0
CHECK_SECONDS = 20.0
"""After this time, the check of a cluster starts no new round of clock measurements."""
_MAX_CONNECT_SECONDS = 8.0
_MAX_REQUEST_SECONDS = 5.0


class ClusterCheck:
    """Checks the brokers of one cluster.

    1. Each broker receives one request. All further requests go only to brokers that have answered.
    2. The brokers are asked in parallel. So all unreachable brokers together delay the check only once, by the
       connection timeout of the client (about 10 s).
    3. The measurement of clocks ends `CHECK_SECONDS` after the start of the check.
    """

    def __init__(self, settings: Settings, now_ms: Callable[[], int], pause: Callable[[float], None]) -> None:
        self._settings = settings
        self._now_ms = now_ms
        self._pause = pause

    def findings(self) -> Iterator[Finding]:
        """Connect to the cluster and yield one finding for each point."""
        kafka, sampling = self._settings.kafka, self._settings.sampling
        end_ms = self._now_ms() + int(1000 * CHECK_SECONDS)
        seconds = min(kafka.connect_timeout_seconds, _MAX_CONNECT_SECONDS)
        try:
            connection = Connection(
                kafka.model_copy(update={"connect_timeout_seconds": seconds}),
                min(sampling.request_timeout_seconds, _MAX_REQUEST_SECONDS),
            )
        except RemedyError as error:
            yield from_error(BROKERS, error)
            yield from self._all_unchecked("no broker answered")
            return
        with closing(connection):
            addresses, errors = _ask_all(connection)
            yield from broker_findings(addresses, errors, connection.kafka_version)
            yield from cluster_findings(connection, self._settings.paths.checkpoint)
            answering = [broker for broker in addresses if broker not in errors]
            if not answering:
                yield from self._all_unchecked("no broker answered at its advertised address")
                return
            permissions = request_permissions(connection, self._settings.source.kind, answering[0])
            yield from permission_findings(permissions, kafka)
            yield from self._log(connection, permissions, answering, end_ms)

    def _log(
        self, connection: Connection, permissions: Permissions, answering: Sequence[int], end_ms: int
    ) -> Iterator[Finding]:
        """Check `__consumer_offsets`, and the clocks of the brokers that write its records."""
        if self._settings.source.kind == ADMIN_API_SOURCE:
            yield not_checked(
                CLOCKS, f'with source.kind = "{ADMIN_API_SOURCE}", the monitor reads no timestamps of records'
            )
            return
        if isinstance(permissions[READ_LOG], Unanswered):
            yield not_checked(CLOCKS, f"it is unknown whether the monitor can read {OFFSETS_TOPIC}")
            return
        if not permissions[READ_LOG]:
            yield not_checked(CLOCKS, f"the monitor cannot read {OFFSETS_TOPIC}")
            return
        brokers = Brokers(self._settings.kafka.cluster, connection, self._now_ms)
        try:
            yield ok(OFFSETS_TOPIC, f"{len(brokers.offsets_topic_partitions())} partitions")
            clocks = measure_clocks(connection, answering, end_ms, self._now_ms, self._pause)
        except OffsetsTopicMissingError as missing:
            text, _, remedy = str(missing).partition(". ")
            yield note(OFFSETS_TOPIC, text, remedy)
            yield not_checked(CLOCKS, text)
        except (KafkaError, RemedyError) as error:
            yield not_checked(CLOCKS, f"the brokers did not answer ({error})")
        else:
            yield from clock_findings(clocks)

    def _all_unchecked(self, reason: str) -> Iterator[Finding]:
        for permission in used_permissions(self._settings.source.kind):
            yield not_checked(f"permission {permission.text}", reason)
        yield not_checked(CLOCKS, reason)


def cluster_findings(connection: Connection, checkpoint: str) -> Iterator[Finding]:
    """Yield a finding if the brokers do not belong to the Kafka cluster of the checkpoint.

    A checkpoint on remote storage is not compared, because the check does not start Spark.
    """
    try:
        connection.expect_cluster(local_cluster_id(checkpoint))
    except DifferentClusterError as error:
        yield from_error(BROKERS, error)


def _ask_all(connection: Connection) -> tuple[Mapping[int, str], Mapping[int, str]]:
    """Send one request to each broker. Return the advertised addresses and the errors, by broker id."""
    addresses = connection.broker_addresses()
    answers = connection.ask_each([(broker, MetadataRequest(topics=[])) for broker in addresses])
    errors = {
        broker: str(answer) or type(answer).__name__
        for broker, answer in zip(addresses, answers, strict=True)
        if isinstance(answer, KafkaError)
    }
    return addresses, errors


def measure_clocks(
    connection: Connection,
    answering: Sequence[int],
    end_ms: int,
    now_ms: Callable[[], int],
    pause: Callable[[float], None],
) -> MeasuredClocks:
    """Estimate the clock offset of each leader of a `__consumer_offsets` partition.

    Raises KafkaError. `answering` contains the brokers that have answered. A broker that does not answer a request
    receives no further requests. Each round compares the timestamps of new records with the time of this machine
    (`broker_clocks`). The measurement ends when all clock offsets are known, at `end_ms`, or after `ROUNDS` rounds.
    """
    start_ms, clocks, asked = now_ms(), BrokerClocks(), set(answering)
    ends = _request_ends(connection, asked, now_ms)
    for _ in range(ROUNDS):
        if now_ms() + 1000 * ROUND_SECONDS > end_ms or clocks.offsets(now_ms()).keys() >= _leaders(ends) & asked:
            break
        clocks.add_ends(ends)
        pause(ROUND_SECONDS)
        before, ends = ends, _request_ends(connection, asked, now_ms)
        clocks.add_records(_new_records(connection, before, ends, now_ms))
    leaders = _leaders(ends)
    return MeasuredClocks(clocks.offsets(now_ms()), leaders, leaders - asked, (now_ms() - start_ms) / 1000)


def _leaders(ends: OffsetsTopicEnds) -> frozenset[int]:
    return frozenset(ends.leaders.values())


def _request_ends(connection: Connection, asked: set[int], now_ms: Callable[[], int]) -> OffsetsTopicEnds:
    """Request the leaders and the end offsets of `__consumer_offsets` from the brokers in `asked`.

    A broker that does not answer is removed from `asked`. Raises KafkaError if no broker answers.
    """
    asked_ms, leaders = now_ms(), _request_leaders(connection, asked)
    partitions_by_leader = {
        broker: sorted(partition for partition, leader in leaders.items() if leader == broker)
        for broker in sorted(asked & set(leaders.values()))
    }
    requests = [(broker, _end_offsets(partitions)) for broker, partitions in partitions_by_leader.items()]
    end_offsets = {}
    for (broker, _), answer in zip(requests, connection.ask_each(requests), strict=True):
        if isinstance(answer, KafkaError):
            asked.remove(broker)
            continue
        for topic in answer.topics:
            for one in topic.partitions:
                if one.error_code == NoError.errno:
                    end_offsets[one.partition_index] = one.offset
    return OffsetsTopicEnds(asked_ms, end_offsets, leaders)


def _request_leaders(connection: Connection, asked: set[int]) -> Mapping[int, int]:
    topics = [MetadataRequest.MetadataRequestTopic(name=OFFSETS_TOPIC)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    error: KafkaError = BrokerNotAvailableError()
    for broker in sorted(asked):
        (answer,) = connection.ask_each([(broker, request)])
        if not isinstance(answer, KafkaError):
            partitions = [one for topic in answer.topics for one in topic.partitions]
            return {one.partition_index: one.leader_id for one in partitions if one.leader_id >= 0}
        error = answer
        asked.remove(broker)
    raise error


def _end_offsets(partitions: Sequence[int]) -> Message:
    topic = ListOffsetsRequest.ListOffsetsTopic
    asked = [topic.ListOffsetsPartition(partition_index=one, timestamp=OffsetSpec.LATEST.value) for one in partitions]
    return ListOffsetsRequest(topics=[topic(name=OFFSETS_TOPIC, partitions=asked)], min_version=1)


def _new_records(
    connection: Connection, before: OffsetsTopicEnds, ends: OffsetsTopicEnds, now_ms: Callable[[], int]
) -> ReceivedRecords:
    looks = [
        TailFetch(OFFSETS_TOPIC, partition, end, end)
        for partition, end in before.end_offsets.items()
        if ends.end_offsets.get(partition, end) > end
    ]
    times = read_batch_times(connection, looks, {OFFSETS_TOPIC: ends.leaders})
    rows = [
        (look.partition, offset, time_ms)
        for look, batches in times.items()
        for offset, time_ms in batches
        if offset >= look.from_offset
    ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return ReceivedRecords(now_ms(), columns[:, 0], columns[:, 1], columns[:, 2])
