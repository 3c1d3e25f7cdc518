"""Ask the brokers which permissions the monitor has, with the requests that the monitor itself sends.

To check a permission on all topics or groups, a request names a topic or group that does not exist. A broker checks the
permissions before it searches for the topic or group. So if the broker does not refuse the request, the monitor has the
permission for all names. No request changes or creates anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka.admin import ACLOperation, ConfigResourceType
from kafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin import DescribeClusterRequest, DescribeGroupsRequest
from kafka.protocol.metadata import MetadataRequest

from streaming.doctor import permissions
from streaming.events import OFFSETS_TOPIC
from streaming.group.listing import Unanswered
from streaming.sampling.configs import configs_request
from streaming.sampling.connection import BrokerRequest, Connection, Message
from streaming.sampling.coordinators import error_name
from streaming.sampling.tails import fetch_request

UNUSED_NAME = "kafka-rebalance-monitor.check-of-permissions"
_REFUSED = {
    error.errno
    for error in (TopicAuthorizationFailedError, GroupAuthorizationFailedError, ClusterAuthorizationFailedError)
}
_NOT_REPORTED = Unanswered("brokers of this version do not report permissions")

_Answer = bool | Unanswered


def request_permissions(
    connection: Connection, source_kind: str, answering_broker: int | None = None
) -> permissions.Permissions:
    """Return a value for each permission that this source needs: True, False, or the reason why it is unknown.

    All requests go to `answering_broker`, a broker that has just answered. If `answering_broker` is None, the Kafka
    client selects the brokers. Raises KafkaError if no broker answers.
    """
    broker_id = connection.broker_ids()[0] if answering_broker is None else answering_broker
    requests: Sequence[BrokerRequest] = (
        (answering_broker, DescribeClusterRequest(include_cluster_authorized_operations=True)),
        (answering_broker, _metadata()),
        (broker_id, _fetch(OFFSETS_TOPIC)),
        (broker_id, _fetch(UNUSED_NAME)),
        (answering_broker, DescribeGroupsRequest(groups=[UNUSED_NAME], include_authorized_operations=False)),
        (broker_id, configs_request(ConfigResourceType.BROKER, [str(broker_id)], [])),
        (answering_broker, configs_request(ConfigResourceType.TOPIC, [UNUSED_NAME], [])),
    )
    cluster, metadata, log_fetch, fetch, group, broker_configs, topic_configs = connection.ask_each(requests)
    answers: permissions.Permissions = {
        permissions.READ_LOG: _may_read(OFFSETS_TOPIC, log_fetch, metadata),
        permissions.DESCRIBE_TOPICS: _may_describe_topics(metadata),
        permissions.DESCRIBE_GROUPS: _is_allowed(group, "groups"),
        permissions.DESCRIBE_CLUSTER: _is_among_permissions(ACLOperation.DESCRIBE, cluster),
        permissions.READ_TOPICS: _may_read(UNUSED_NAME, fetch, metadata),
        permissions.CLUSTER_CONFIGS: _is_allowed(broker_configs, "results"),
        permissions.TOPIC_CONFIGS: _is_allowed(topic_configs, "results"),
    }
    return {permission: answers[permission] for permission in permissions.used_permissions(source_kind)}


def _metadata() -> Message:
    topic = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(
        topics=[topic(name=OFFSETS_TOPIC), topic(name=UNUSED_NAME)],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=True,
    )


def _fetch(topic: str) -> Message:
    """Create a request that can go to any broker, because each broker checks the permission first."""
    return fetch_request(topic, 0, 0, max_bytes=1)


def _is_allowed(answer: Message | KafkaError, results: str) -> _Answer:
    """Return False if the broker refused the request. `results` is the name of the field with the error codes."""
    if isinstance(answer, KafkaError):
        return Unanswered(error_name(answer))
    return not any(one.error_code in _REFUSED for one in getattr(answer, results))


def _is_among_permissions(operation: ACLOperation, answer: Message | KafkaError) -> _Answer:
    if isinstance(answer, KafkaError):
        return Unanswered(error_name(answer))
    if answer.authorized_operations is None:
        return _NOT_REPORTED
    return operation in answer.authorized_operations


def _may_describe_topics(metadata: Message | KafkaError) -> _Answer:
    """Return True if the monitor has DESCRIBE on all topics.

    If the permission is missing, some brokers do not refuse the request. They return "unknown topic", and a list of
    permissions without DESCRIBE. So the function also checks this list.
    """
    allowed = _is_allowed(metadata, "topics")
    return _is_among_permissions(ACLOperation.DESCRIBE, _topic(metadata, UNUSED_NAME)) if allowed is True else allowed


def _may_read(topic: str, fetch: Message | KafkaError, metadata: Message | KafkaError) -> _Answer:
    """Return False if the broker refused the fetch request, or if the reported permissions do not include READ."""
    if isinstance(fetch, KafkaError):
        return Unanswered(error_name(fetch))
    if any(one.error_code in _REFUSED for of_topic in fetch.responses for one in of_topic.partitions):
        return False
    reported = _is_among_permissions(ACLOperation.READ, _topic(metadata, topic))
    return True if reported == _NOT_REPORTED else reported


def _topic(metadata: Message | KafkaError, name: str) -> Message | KafkaError:
    if isinstance(metadata, KafkaError):
        return metadata
    return next((topic for topic in metadata.topics if topic.name == name), UnknownTopicOrPartitionError())
