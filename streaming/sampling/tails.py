"""Looks at the log of users' topics: one fetch for each, of which only the headers of the batches are read.

A request is about one partition: a broker returns the first batch of the first partition whatever its size, and leaves
the batches of further partitions out if they are larger than the limit (KIP-74). So an empty answer means that nothing
follows before the last stable offset. Under read_committed the answer names the transactions that were aborted. READ on
the topic is needed, and optional.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka.errors import KafkaError, NoError, TopicAuthorizationFailedError
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.consumer.offsets import IsolationLevel

from streaming.evaluation.lag.next_offsets import FetchFailure, FetchResult, TailFetch
from streaming.protocol.record_batches import AbortedTransaction, Tail, next_record
from streaming.sampling.connection import Connection, Message

_MAX_BYTES = 4096
"""Room for some markers. A larger first batch comes whole."""

_LAST_VERSION_WITH_NAMES = 12
_NO_SESSION_EPOCH = -1


def seen_at(
    connection: Connection, looks: Sequence[TailFetch], leaders: Mapping[str, Mapping[int, int]]
) -> Mapping[TailFetch, FetchResult]:
    """What each look shows. One that fails costs no other one."""
    answers: dict[TailFetch, FetchResult] = dict.fromkeys(looks, FetchFailure.FAILED)
    placed = [(look, leaders.get(look.topic, {}).get(look.partition)) for look in looks]
    asked = [(look, leader) for look, leader in placed if leader is not None]
    responses = connection.ask_each([(leader, _fetch(look)) for look, leader in asked])
    answers.update({look: _seen(look, response) for (look, _), response in zip(asked, responses, strict=True)})
    return answers


def _fetch(look: TailFetch) -> Message:
    topic_class = FetchRequest.FetchTopic
    partition = topic_class.FetchPartition(
        partition=look.partition, fetch_offset=look.from_offset, partition_max_bytes=_MAX_BYTES
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_MAX_BYTES,
        isolation_level=IsolationLevel.READ_COMMITTED,
        session_epoch=_NO_SESSION_EPOCH,
        topics=[topic_class(topic=look.topic, partitions=[partition])],
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
    """What the batches show. Where there is none, no record stands up to the last stable offset."""
    if not partition.records:
        end = max(look.from_offset, partition.last_stable_offset)
        return Tail(end, is_record=False, read_to=end)
    aborted = [AbortedTransaction(one.producer_id, one.first_offset) for one in partition.aborted_transactions or ()]
    return next_record(bytes(partition.records), look.from_offset, aborted)
