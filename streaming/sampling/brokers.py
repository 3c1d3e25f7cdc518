"""Ask the brokers about topics: their partitions, offsets and racks."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from kafka import TopicPartition
from kafka.admin import ACLOperation, OffsetSpec
from kafka.errors import KafkaError, NoError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError
from kafka.protocol.consumer.offsets import IsolationLevel

from streaming.config.settings import ADMIN_API_SOURCE
from streaming.errors import RemedyError
from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.evaluation.lag.next_offsets import FetchResult, TailFetch
from streaming.events import OFFSETS_TOPIC, TopicMetadata
from streaming.group.topic_names import TopicNames
from streaming.protocol.primitives import uuid_text
from streaming.sampling.connection import Connection
from streaming.sampling.tails import read_log_tails

_log = logging.getLogger(__name__)

Offsets = Mapping[tuple[str, int], int]


class OffsetsTopicMissingError(RemedyError):
    """Error: `__consumer_offsets` does not exist, or the monitor has no permission to see this topic."""


class OffsetsTopicUnreadableError(RemedyError):
    """Error: the monitor has no permission to read `__consumer_offsets`."""


class Brokers:
    """Requests about topics. If a broker does not return a value, the value is missing in the result."""

    def __init__(
        self, cluster: str, connection: Connection, now_ms: Callable[[], int], *, samples_offsets_topic: bool = True
    ) -> None:
        """If `samples_offsets_topic` is False, samples omit `__consumer_offsets`, and need no permission on it."""
        self._cluster = cluster
        self._admin = connection.admin
        self._now_ms = now_ms
        self._connection = connection
        self._own_topics = {OFFSETS_TOPIC} if samples_offsets_topic else set()
        self._leaders: Mapping[str, Mapping[int, int]] = {}
        self._missing_topics: frozenset[str] = frozenset()
        self._failed: dict[str, KafkaError] = {}
        self._failed_before: frozenset[str] = frozenset()

    def offsets_topic_partitions(self) -> list[int]:
        """Return the partition numbers. Raises OffsetsTopicMissingError or OffsetsTopicUnreadableError."""
        [topic] = self._admin.describe_topics([OFFSETS_TOPIC])
        if not _is_readable(topic):
            raise OffsetsTopicUnreadableError(
                f"the monitor has no permission to read {OFFSETS_TOPIC}: grant READ and DESCRIBE on it, or set"
                f' source.kind = "{ADMIN_API_SOURCE}" to poll the brokers instead (polling shows fewer values)'
            )
        if topic["error_code"] != NoError.errno or not topic["partitions"]:
            raise OffsetsTopicMissingError(
                f"the cluster has no topic {OFFSETS_TOPIC}. Kafka creates this topic at the first commit of a consumer"
                f' group. If a managed cluster hides the topic, set source.kind = "{ADMIN_API_SOURCE}"'
            )
        return list(range(len(topic["partitions"])))

    def topic_names(self) -> TopicNames:
        """Return the name of each topic by topic id. Empty if the brokers do not use topic ids. Raises KafkaError."""
        asked_at_ms = self._now_ms()
        described = self._admin.describe_topics()
        ids = ((_topic_id(topic["topic_id"]), topic["name"]) for topic in described if topic["name"])
        return TopicNames(asked_at_ms, {topic_id: name for topic_id, name in ids if topic_id is not None})

    def sample(self, topics: Iterable[str]) -> ClusterSample:
        """Take a sample: metadata and offsets of the topics, and the ends of `__consumer_offsets`.

        The caller must read the commits before this call. Raises KafkaError if no broker answers.
        """
        self._failed = {}  # forget the failures of a sample that was not completed
        sampled_at_ms = self._now_ms()
        asked = {*topics}
        topic_names = sorted(asked | self._own_topics)
        brokers = [each for each in self._admin.describe_cluster()["brokers"] if not each.get("is_fenced")]
        known = self._describe(topic_names, brokers)
        partitions = [
            TopicPartition(topic, partition)
            for topic, sampled in known.items()
            if topic in asked
            for partition in range(sampled.partitions or 0)
        ]
        has_offsets_topic = OFFSETS_TOPIC in self._own_topics and OFFSETS_TOPIC in known
        offsets_topic = known[OFFSETS_TOPIC] if has_offsets_topic else TopicMetadata(None, sampled_at_ms)
        offsets_topic_partitions = offsets_topic.partitions or 0
        sample = ClusterSample(
            sampled_at_ms=sampled_at_ms,
            topics={topic: sampled for topic, sampled in known.items() if topic in asked},
            end_offsets=self._offsets(partitions, OffsetSpec.LATEST),
            log_start_offsets=self._offsets(partitions, OffsetSpec.EARLIEST),
            offsets_topic=self._offsets_topic_ends(offsets_topic_partitions),
            offsets_topic_partitions=offsets_topic_partitions,
            brokers=len(brokers),
            offsets_topic_id=offsets_topic.topic_id,
            offsets_topic_leaders=self._leaders.get(OFFSETS_TOPIC, {}) if has_offsets_topic else {},
            missing_topics=self._missing_topics,
        )
        self._report_failed()
        return sample

    def last_stable_offsets(self, partitions: Iterable[tuple[str, int]]) -> Offsets:
        """Return the last stable offset of each partition that has an answer."""
        asked = [TopicPartition(topic, partition) for topic, partition in partitions]
        return self._offsets(asked, OffsetSpec.LATEST, IsolationLevel.READ_COMMITTED)

    def look(self, looks: Sequence[TailFetch]) -> Mapping[TailFetch, FetchResult]:
        """Send one fetch request per element, to the leader that the last sample shows."""
        return read_log_tails(self._connection, looks, self._leaders)

    def _offsets_topic_ends(self, partitions: int) -> Mapping[int, LogEnds]:
        """Request the high watermarks before the last stable offsets.

        In the opposite order, a new record between the two requests would look like an open transaction.
        """
        asked = [TopicPartition(OFFSETS_TOPIC, partition) for partition in range(partitions)]
        high_watermarks = self._offsets(asked, OffsetSpec.LATEST)
        stable = self._offsets(asked, OffsetSpec.LATEST, IsolationLevel.READ_COMMITTED)
        starts = self._offsets(asked, OffsetSpec.EARLIEST)
        return {
            topic_partition[1]: LogEnds(
                high_watermark, min(stable[topic_partition], high_watermark), starts.get(topic_partition)
            )
            for topic_partition, high_watermark in high_watermarks.items()
            if topic_partition in stable
        }

    def _describe(self, topics: Iterable[str], brokers: Iterable[Mapping[str, Any]]) -> Mapping[str, TopicMetadata]:
        """Describe topics. If a topic does not exist, its partition count is None. Omit topics with other errors."""
        sampled_at_ms = self._now_ms()
        racks = {broker["broker_id"]: broker["rack"] for broker in brokers}
        described = self._admin.describe_topics(list(topics))
        self._leaders = {topic["name"]: _leaders(topic) for topic in described}
        self._missing_topics = frozenset(topic["name"] for topic in described if _is_missing(topic))
        return {
            topic["name"]: _topic_metadata(topic, racks, sampled_at_ms)
            if topic["error_code"] == NoError.errno
            else TopicMetadata(None, sampled_at_ms)
            for topic in described
            if topic["error_code"] in (NoError.errno, UnknownTopicOrPartitionError.errno)
        }

    def _offsets(
        self,
        partitions: Iterable[TopicPartition],
        spec: OffsetSpec,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> Offsets:
        """Omit partitions without a leader, because they cause an error for the whole request.

        If the request fails, send one request per topic. So an error of one partition affects only one topic.
        """
        asked = {at: spec for at in partitions if at.partition in self._leaders.get(at.topic, ())}
        try:
            return self._ask_offsets(asked, isolation_level) if asked else {}
        except KafkaError as error:
            if not error.retriable and len({partition.topic for partition in asked}) == 1:
                raise
        by_topic: dict[str, dict[TopicPartition, OffsetSpec]] = defaultdict(dict)
        for partition, one_spec in asked.items():
            by_topic[partition.topic][partition] = one_spec
        answers: dict[tuple[str, int], int] = {}
        for topic, one_topic in by_topic.items():
            try:
                answers.update(self._ask_offsets(one_topic, isolation_level))
            except KafkaError as error:  # noqa: PERF203 - one bad topic must not hide the others
                self._failed[topic] = error
        return answers

    def _report_failed(self) -> None:
        """Log the topics whose offsets are unknown. Only the first line about a topic is a warning."""
        for topic, error in self._failed.items():
            level = logging.DEBUG if topic in self._failed_before else logging.WARNING
            _log.log(level, "%s: offsets of topic %s are unknown for now: %s", self._cluster, topic, error)
        self._failed_before = frozenset(self._failed)

    def _ask_offsets(self, asked: dict[TopicPartition, OffsetSpec], isolation_level: IsolationLevel) -> Offsets:
        answers = self._admin.list_partition_offsets(asked, isolation_level=isolation_level)
        return {(at.topic, at.partition): answer.offset for at, answer in answers.items()}


def _is_readable(topic: Mapping[str, Any]) -> bool:
    """Return True if the monitor may read the topic, or if the broker (before Kafka 2.3) reports no permissions."""
    if topic["error_code"] == TopicAuthorizationFailedError.errno:
        return False
    operations = topic.get("authorized_operations")
    return topic["error_code"] != NoError.errno or operations is None or ACLOperation.READ.name in operations


def _is_missing(topic: Mapping[str, Any]) -> bool:
    """Return True if the topic provably does not exist.

    If the monitor does not have DESCRIBE on a topic, some brokers return the error "unknown topic", even if the topic
    exists. So the error is proof only if the response also shows that the monitor has DESCRIBE.
    """
    permissions = topic.get("authorized_operations") or ()
    return topic["error_code"] == UnknownTopicOrPartitionError.errno and ACLOperation.DESCRIBE.name in permissions


def _leaders(topic: Mapping[str, Any]) -> Mapping[int, int]:
    leaders = {partition["partition_index"]: partition.get("leader_id", -1) for partition in topic["partitions"]}
    return {partition: leader for partition, leader in leaders.items() if leader >= 0}


def _topic_metadata(topic: Mapping[str, Any], racks: Mapping[int, str | None], sampled_at_ms: int) -> TopicMetadata:
    ordered = sorted(topic["partitions"], key=lambda partition: int(partition["partition_index"]))
    replica_racks = tuple(tuple(racks.get(node) for node in partition["replica_nodes"]) for partition in ordered)
    has_racks = any(rack for replicas in replica_racks for rack in replicas)
    topic_id = _topic_id(topic["topic_id"])
    return TopicMetadata(len(ordered), sampled_at_ms, replica_racks if has_racks else (), topic_id)


def _topic_id(described: str | None) -> str | None:
    """Convert kafka-python's hexadecimal topic id to URL-safe base64. None if the broker does not use topic ids."""
    topic_id = UUID(described or "0" * 32)
    return uuid_text(topic_id.bytes) if topic_id.int else None
