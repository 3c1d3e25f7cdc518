"""Request settings of brokers and topics (DescribeConfigs).

The requests need DESCRIBE_CONFIGS on the cluster and on the topics. Without DESCRIBE_CONFIGS, the settings are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka.admin import ConfigResourceType
from kafka.errors import KafkaError, NoError
from kafka.protocol.admin import DescribeConfigsRequest

from streaming.sampling.connection import Connection, Message

OFFSETS_RETENTION = "offsets.retention.minutes"
RETENTION_MS, RETENTION_BYTES, CLEANUP_POLICY = "retention.ms", "retention.bytes", "cleanup.policy"
_MINUTE_MS = 60_000


class TopicSettings(NamedTuple):
    """Settings of a topic. `retention_ms` is None if the topic does not delete records by time.

    `has_size_limit` is True if the topic deletes records because of its size, or if `retention.bytes` is unknown.
    """

    retention_ms: int | None
    is_compacted: bool
    has_size_limit: bool


class Configs:
    """Requests about settings. A setting that no broker returns is unknown."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def offsets_retention_ms(self) -> int | None:
        """Return the shortest `offsets.retention.minutes` of all brokers in milliseconds, or None if unknown.

        A coordinator keeps the committed offsets of an inactive group for this time.
        """
        requests = [
            (broker, configs_request(ConfigResourceType.BROKER, [str(broker)], [OFFSETS_RETENTION]))
            for broker in self._connection.broker_ids()
        ]
        responses = self._connection.ask_each(requests)
        numbers = [_number(each.get(OFFSETS_RETENTION)) for one in responses for each in _settings(one).values()]
        minutes = [number for number in numbers if number is not None]
        return min(minutes) * _MINUTE_MS if minutes else None

    def topic_settings(self, topics: Sequence[str]) -> Mapping[str, TopicSettings]:
        """Return the settings of each topic. Omit topics with unknown settings."""
        request = configs_request(ConfigResourceType.TOPIC, topics, [RETENTION_MS, RETENTION_BYTES, CLEANUP_POLICY])
        (response,) = self._connection.ask_each([(None, request)])
        by_topic = {topic: _topic_settings(settings) for topic, settings in _settings(response).items()}
        return {topic: settings for topic, settings in by_topic.items() if settings is not None}


def configs_request(kind: ConfigResourceType, names: Sequence[str], settings: Sequence[str]) -> Message:
    """Return a request for the settings of the given brokers or topics. `settings` can be empty."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    resources = [
        resource(resource_type=kind.value, resource_name=name, configuration_keys=list(settings)) for name in names
    ]
    return DescribeConfigsRequest(resources=resources, include_synonyms=False)


def _settings(response: Message | KafkaError) -> Mapping[str, Mapping[str, str | None]]:
    if isinstance(response, KafkaError):
        return {}
    return {
        result.resource_name: {config.name: config.value for config in result.configs}
        for result in response.results
        if result.error_code == NoError.errno
    }


def _topic_settings(settings: Mapping[str, str | None]) -> TopicSettings | None:
    retention_ms, policy = _number(settings.get(RETENTION_MS)), settings.get(CLEANUP_POLICY)
    if retention_ms is None or policy is None:
        return None
    policies = [name.strip() for name in policy.split(",")]
    deletes, size_limit = "delete" in policies, _number(settings.get(RETENTION_BYTES))
    return TopicSettings(
        retention_ms if deletes and retention_ms >= 0 else None,
        is_compacted="compact" in policies,
        has_size_limit=deletes and (size_limit is None or size_limit >= 0),
    )


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
