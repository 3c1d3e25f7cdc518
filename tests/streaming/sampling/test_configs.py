"""Tests of the settings of brokers and topics, from encoded answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError
from kafka.protocol.admin import DescribeConfigsResponse

from streaming.sampling.configs import Configs, TopicSettings
from streaming.sampling.connection import Message
from tests.streaming.sampling.test_unusual_answers import Cluster, encode_and_decode

TOPIC, BROKER = 2, 4
TOPIC_REFUSED, CLUSTER_REFUSED = 29, 31
Resource = tuple[int, str, dict[str, str | None], int]


def configs_response(*resources: Resource, version: int = 4) -> Message:
    """Return an answer to DescribeConfigs: type, name, settings and error code of each resource."""
    result = DescribeConfigsResponse.DescribeConfigsResult
    common: dict[str, Any] = {"read_only": False, "config_source": 1, "is_sensitive": False, "synonyms": []}
    results = [
        result(
            error_code=error_code,
            error_message=None,
            resource_type=kind,
            resource_name=name,
            configs=[
                result.DescribeConfigsResourceResult(
                    name=key, value=value, config_type=0, documentation=None, is_default=False, **common
                )
                for key, value in settings.items()
            ],
        )
        for kind, name, settings, error_code in resources
    ]
    return encode_and_decode(DescribeConfigsResponse(throttle_time_ms=0, results=results), version)


def broker_answers(minutes: dict[int, str | int | None]) -> Cluster:
    """Return brokers with this setting. An integer is an error code. None: the broker is down."""

    def answer(broker_id: int | None, _: Message) -> Message:
        setting = minutes[broker_id or 0]
        if setting is None:
            return KafkaConnectionError()
        error_code = setting if isinstance(setting, int) else 0
        settings = {} if error_code else {"offsets.retention.minutes": str(setting)}
        return configs_response((BROKER, str(broker_id), settings, error_code))

    return Cluster(list(minutes), answer)


@pytest.mark.parametrize(
    ("minutes", "expected_ms", "why"),
    [
        ({1: "10080"}, 604_800_000, "a week"),
        ({1: "10080", 2: "1440"}, 86_400_000, "each coordinator applies its own value, so the shortest warns in time"),
        ({1: None, 2: "1440"}, 86_400_000, "a broker that is down does not hide the others"),
        ({1: CLUSTER_REFUSED, 2: CLUSTER_REFUSED}, None, "the permission DESCRIBE_CONFIGS on the cluster is missing"),
        ({1: None}, None, "no broker answers"),
    ],
)
def test_the_retention_of_offsets_is_the_shortest_of_all_brokers(
    minutes: dict[int, str | int | None], expected_ms: int | None, why: str
) -> None:
    assert Configs(broker_answers(minutes)).offsets_retention_ms() == expected_ms, why  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [1, 4])
def test_the_settings_of_topics(version: int) -> None:
    """A topic with an error is absent, so its retention is unknown. Kafka 2.0 answers in version 1.

    If the brokers do not return `retention.bytes`, the topic may have a size limit.
    """
    resources: Sequence[Resource] = [
        (TOPIC, "orders", {"retention.ms": "604800000", "cleanup.policy": "delete"}, 0),
        (TOPIC, "both", {"retention.ms": "1000", "retention.bytes": "9", "cleanup.policy": "compact,delete"}, 0),
        (TOPIC, "compacted", {"retention.ms": "1000", "retention.bytes": "9", "cleanup.policy": "compact"}, 0),
        (TOPIC, "unlimited", {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}, 0),
        (TOPIC, "hidden", {"retention.ms": None, "cleanup.policy": "delete"}, 0),
        (TOPIC, "secret", {}, TOPIC_REFUSED),
    ]
    cluster = Cluster([1], lambda *_: configs_response(*resources, version=version))
    assert Configs(cluster).topic_settings([name for _, name, *_ in resources]) == {  # type: ignore[arg-type]
        "orders": TopicSettings(604_800_000, is_compacted=False, has_size_limit=True),
        "both": TopicSettings(1_000, is_compacted=True, has_size_limit=True),
        "compacted": TopicSettings(None, is_compacted=True, has_size_limit=False),
        "unlimited": TopicSettings(None, is_compacted=False, has_size_limit=False),
    }
    assert cluster.asked == [(None, "DescribeConfigsRequest")]


def test_topics_are_unknown_while_no_broker_answers() -> None:
    cluster = Cluster([1], lambda *_: KafkaConnectionError())
    assert Configs(cluster).topic_settings(["orders"]) == {}  # type: ignore[arg-type]
