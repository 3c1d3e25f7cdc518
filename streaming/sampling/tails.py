"""Read the log of users' topics at given offsets (`TailFetch`), with one fetch request per offset.

Each request is for one partition only, for the following reason. A broker returns the first batch of the first
partition even if the batch exceeds the size limit. For the other partitions of a request, the broker omits such a batch
(KIP-74). So an empty response means that no batch exists between the requested offset and the last stable offset.
Tiered storage (KIP-405) is an exception: if the broker does not read a batch from tiered storage in time, the response
is also empty. The newest segment of a log is always on the broker's disk. So an empty response is used only if the
requested offset is at most EMPTY_WITHIN offsets before the last stable offset.

Only the batch headers are read. With read_committed, the response lists the aborted transactions. The requests need
READ on the topic. Without READ, it stays unknown which record a group reads next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka.errors import KafkaError, NoError, TopicAuthorizationFailedError
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.consumer.offsets import IsolationLevel

from streaming.evaluation.lag.next_offsets import FetchFailure, FetchResult, TailFetch
from streaming.protocol.record_batches import AbortedTransaction, Tail, batch_times, next_record
from streaming.sampling.connection import BrokerRequest, Connection, Message

_MAX_BYTES = 4096
"""The size limit of a response, in bytes. A response of this size can contain several transaction markers."""

_MAX_BYTES_OF_NEXT = 65_536
"""Size limit in bytes after a fetch without a record, because many records of aborted transactions can follow."""

EMPTY_WITHIN = 1_000

_LAST_VERSION_WITH_NAMES = 12
_NO_SESSION_EPOCH = -1


def read_log_tails(
    connection: Connection, looks: Sequence[TailFetch], leaders: Mapping[str, Mapping[int, int]]
) -> Mapping[TailFetch, FetchResult]:
    """Return one result for each element of `looks`. If one request fails, the other results are still valid."""
    answers: dict[TailFetch, FetchResult] = dict.fromkeys(looks, FetchFailure.FAILED)
    return answers | {look: _seen(look, response) for look, response in _fetch_each(connection, looks, leaders)}


def read_batch_times(
    connection: Connection, looks: Sequence[TailFetch], leaders: Mapping[str, Mapping[int, int]]
) -> Mapping[TailFetch, Sequence[tuple[int, int]]]:
    """For each successful fetch, return the first offset and the timestamp of each batch in the response."""
    return {
        look: [
            times
            for topic in response.responses
            for partition in topic.partitions
            for times in batch_times(bytes(partition.records or b""))
        ]
        for look, response in _fetch_each(connection, looks, leaders)
        if not isinstance(response, KafkaError)
    }


def _fetch_each(
    connection: Connection, looks: Sequence[TailFetch], leaders: Mapping[str, Mapping[int, int]]
) -> Sequence[tuple[TailFetch, Message | KafkaError]]:
    with_leaders = [(look, leaders.get(look.topic, {}).get(look.partition)) for look in looks]
    requested = [(look, leader) for look, leader in with_leaders if leader is not None]
    requests: list[BrokerRequest] = []
    for look, leader in requested:
        max_bytes = _MAX_BYTES if look.from_offset == look.committed_offset else _MAX_BYTES_OF_NEXT
        requests.append((leader, fetch_request(look.topic, look.partition, look.from_offset, max_bytes)))
    responses = connection.ask_each(requests)
    return [(look, response) for (look, _), response in zip(requested, responses, strict=True)]


def fetch_request(topic: str, partition: int, from_offset: int, max_bytes: int) -> Message:
    """Return a fetch request for one partition."""
    topic_class = FetchRequest.FetchTopic
    of_partition = topic_class.FetchPartition(
        partition=partition, fetch_offset=from_offset, partition_max_bytes=max_bytes
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=max_bytes,
        isolation_level=IsolationLevel.READ_COMMITTED,
        session_epoch=_NO_SESSION_EPOCH,
        topics=[topic_class(topic=topic, partitions=[of_partition])],
        max_version=_LAST_VERSION_WITH_NAMES,
    )


def _seen(look: TailFetch, response: Message | KafkaError) -> FetchResult:
    if isinstance(response, KafkaError):
        return FetchFailure.FAILED
    for topic in response.responses:
        for partition in topic.partitions:
            if partition.error_code == TopicAuthorizationFailedError.errno:
                return FetchFailure.REFUSED
            if partition.error_code == NoError.errno:
                return _tail(look, partition) or FetchFailure.FAILED
    return FetchFailure.FAILED


def _tail(look: TailFetch, partition: Message) -> Tail | None:
    if not partition.records:
        end = max(look.from_offset, partition.last_stable_offset)
        return Tail(end, is_record=False, read_to=end) if end - look.from_offset <= EMPTY_WITHIN else None
    aborted = [AbortedTransaction(one.producer_id, one.first_offset) for one in partition.aborted_transactions or ()]
    return next_record(bytes(partition.records), look.from_offset, aborted)
