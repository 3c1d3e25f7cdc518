"""Tests of the permissions: what the brokers' answers prove, and the commands that grant a missing permission."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka.errors import KafkaConnectionError
from kafka.protocol.admin import DescribeClusterResponse, DescribeConfigsResponse, DescribeGroupsResponse
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.metadata import MetadataResponse

from streaming.config.security import SecuritySettings
from streaming.config.settings import KafkaSettings
from streaming.doctor.ask_permissions import UNUSED_NAME, request_permissions
from streaming.doctor.finding import FAILED, NOT_CHECKED, NOTE, OK
from streaming.doctor.permissions import (
    CLUSTER_CONFIGS,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUPS,
    DESCRIBE_TOPICS,
    PERMISSIONS,
    READ_LOG,
    READ_TOPICS,
    TOPIC_CONFIGS,
    Permission,
    kafka_user,
    permission_findings,
)
from streaming.events import OFFSETS_TOPIC
from streaming.group.listing import Unanswered
from streaming.sampling.connection import Message
from tests.streaming.sampling.test_unusual_answers import Cluster

SECURITY_MD = Path(__file__).parents[3] / "docs" / "SECURITY.md"
READ, DESCRIBE, DESCRIBE_CONFIGS = 3, 8, 10
ALL = [READ, DESCRIBE, DESCRIBE_CONFIGS]
NO_ERROR, UNKNOWN_TOPIC, TOPIC_REFUSED, GROUP_REFUSED, CLUSTER_REFUSED = 0, 3, 29, 30, 31
ALLOWED: Mapping[str, Any] = {
    "fetch": {OFFSETS_TOPIC: NO_ERROR, UNUSED_NAME: UNKNOWN_TOPIC},
    "topic": UNKNOWN_TOPIC,
    "topic_permissions": ALL,
    "log_permissions": ALL,
    "cluster_permissions": ALL,
    "group": NO_ERROR,
    "broker_configs": NO_ERROR,
    "topic_configs": UNKNOWN_TOPIC,
}
"""Answers of brokers to a monitor with every permission. No topic has the name of the check."""


def cluster(**changes: Any) -> Cluster:  # noqa: ANN401 - error codes and permissions
    """Return brokers that allow everything, except for these changes. An exception is the answer itself."""
    says = {**ALLOWED, **changes}

    def answer(_: int | None, request: Message) -> Message:
        if request.name == "FetchRequest":
            partition = FetchResponse.FetchableTopicResponse.PartitionData
            name = request.topics[0].topic
            one = partition(partition_index=0, error_code=says["fetch"][name])
            return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic=name, partitions=[one])])
        if request.name == "MetadataRequest":
            topic = MetadataResponse.MetadataResponseTopic
            log = topic(name=OFFSETS_TOPIC, error_code=NO_ERROR, authorized_operations=says["log_permissions"])
            unused = topic(name=UNUSED_NAME, error_code=says["topic"], authorized_operations=says["topic_permissions"])
            return MetadataResponse(topics=[log, unused])
        if request.name == "DescribeClusterRequest":
            return DescribeClusterResponse(authorized_operations=says["cluster_permissions"])
        if request.name == "DescribeGroupsRequest":
            code = says["group"]
            group = DescribeGroupsResponse.DescribedGroup(error_code=0 if isinstance(code, Exception) else code)
            return code if isinstance(code, Exception) else DescribeGroupsResponse(groups=[group])
        kind = "topic_configs" if request.resources[0].resource_type == 2 else "broker_configs"
        result = DescribeConfigsResponse.DescribeConfigsResult(error_code=says[kind])
        return DescribeConfigsResponse(results=[result])

    return Cluster([1, 2], answer)


@pytest.mark.parametrize(
    ("changes", "expected", "why"),
    [
        ({}, {}, "a broker without an authorizer, or a monitor with every permission"),
        (
            {"fetch": {OFFSETS_TOPIC: TOPIC_REFUSED, UNUSED_NAME: UNKNOWN_TOPIC}},
            {READ_LOG: False},
            "the broker refuses the fetch request",
        ),
        (
            {"log_permissions": [DESCRIBE]},
            {READ_LOG: False},
            "a broker can hide the topic, but reports the permissions",
        ),
        (
            {"fetch": {OFFSETS_TOPIC: NO_ERROR, UNUSED_NAME: TOPIC_REFUSED}},
            {READ_TOPICS: False},
            "the permission covers only some topics",
        ),
        ({"topic": TOPIC_REFUSED}, {DESCRIBE_TOPICS: False}, "the permission covers only some topics"),
        (
            {"topic_permissions": []},
            {DESCRIBE_TOPICS: False, READ_TOPICS: False},
            "some brokers answer 'unknown topic' also without the permission",
        ),
        ({"group": GROUP_REFUSED}, {DESCRIBE_GROUPS: False}, "the permission covers only some groups"),
        ({"cluster_permissions": [DESCRIBE_CONFIGS]}, {DESCRIBE_CLUSTER: False}, "the listing has only some groups"),
        ({"broker_configs": CLUSTER_REFUSED}, {CLUSTER_CONFIGS: False}, "offsets.retention.minutes is refused"),
        ({"topic_configs": TOPIC_REFUSED}, {TOPIC_CONFIGS: False}, "retention.ms is refused"),
        (
            {"group": KafkaConnectionError()},
            {DESCRIBE_GROUPS: Unanswered("KafkaConnectionError")},
            "an unreachable broker proves nothing",
        ),
        (
            {"cluster_permissions": None},
            {DESCRIBE_CLUSTER: Unanswered("brokers of this version do not report permissions")},
            "Kafka before 2.8",
        ),
        ({"log_permissions": None}, {}, "Kafka before 2.3: the fetch request decides"),
    ],
)
def test_each_right_is_proven_by_a_request_of_the_monitor(
    changes: dict[str, Any], expected: dict[Permission, bool | Unanswered], why: str
) -> None:
    """A broker checks permissions before it looks for the name. So an unused name shows permissions on all."""
    assert request_permissions(cluster(**changes), "offsets-topic") == {
        **dict.fromkeys(PERMISSIONS, True),
        **expected,
    }, why  # type: ignore[arg-type]


def test_the_polling_source_does_not_use_the_right_to_read_the_log() -> None:
    """A managed cluster that hides the log must not fail the check of a monitor that does not read it."""
    hidden = cluster(fetch={OFFSETS_TOPIC: TOPIC_REFUSED, UNUSED_NAME: UNKNOWN_TOPIC})
    assert READ_LOG not in request_permissions(hidden, "admin-api")  # type: ignore[arg-type]


SCRAM = SecuritySettings(
    protocol="SASL_SSL",
    mechanism="SCRAM-SHA-512",
    username="it's me",
    password="tall hedge",  # type: ignore[arg-type]  # noqa: S106 - of this test
)
KAFKA = KafkaSettings(bootstrap_servers="kafka-1:9092,kafka-2:9092", security=SCRAM)


@pytest.mark.parametrize(
    ("permission", "resource"),
    [
        (READ_LOG, ["--operation", "Read", "--topic", "__consumer_offsets"]),
        (DESCRIBE_TOPICS, ["--operation", "Describe", "--topic", "*"]),
        (DESCRIBE_GROUPS, ["--operation", "Describe", "--group", "*"]),
        (DESCRIBE_CLUSTER, ["--operation", "Describe", "--cluster"]),
        (CLUSTER_CONFIGS, ["--operation", "DescribeConfigs", "--cluster"]),
    ],
)
def test_the_remedy_of_a_missing_permission_is_a_command_for_a_shell(
    permission: Permission, resource: list[str]
) -> None:
    """Without quotes, a shell replaces * by the names of files. The user name can contain any character."""
    finding, _ = permission_findings({permission: False}, KAFKA)
    command = shlex.split((finding.remedy or "").partition(" (or set ")[0])
    servers, admin = ["--bootstrap-server", "kafka-1:9092,kafka-2:9092"], ["--command-config", "admin.properties"]
    assert command == ["kafka-acls", *servers, *admin, "--add", "--allow-principal", "User:it's me", *resource]
    assert finding.status == (NOTE if permission.is_optional else FAILED)
    assert "Unknown without it: " in finding.text


@pytest.mark.parametrize(
    ("security", "principal"),
    [
        (SecuritySettings(), "User:ANONYMOUS"),
        (SecuritySettings(protocol="SSL"), "User:ANONYMOUS"),
        (SCRAM, "User:it's me"),
    ],
)
def test_the_principal_is_the_user_that_the_broker_sees(security: SecuritySettings, principal: str) -> None:
    kafka = KafkaSettings(security=security)
    (finding, _) = permission_findings({DESCRIBE_GROUPS: False}, kafka)
    assert principal in shlex.split(finding.remedy or "")


def test_a_right_that_nobody_checked_is_not_ok_and_has_no_command() -> None:
    """A granted permission for a broker that was down would be a guess."""
    (unknown, granted) = permission_findings({DESCRIBE_GROUPS: Unanswered("no_answer"), DESCRIBE_TOPICS: True}, KAFKA)
    assert (unknown.status, unknown.remedy, granted.status) == (NOT_CHECKED, None, OK)


def test_the_entries_of_the_kafka_user_are_those_of_strimzi() -> None:
    """Strimzi's KafkaUser has one entry for each resource, with a list of operations. The cluster has no name."""
    user = yaml.safe_load(kafka_user([READ_LOG, DESCRIBE_TOPICS, DESCRIBE_CLUSTER, CLUSTER_CONFIGS, TOPIC_CONFIGS]))
    assert user["spec"]["authorization"] == {
        "type": "simple",
        "acls": [
            {
                "resource": {"type": "topic", "name": "__consumer_offsets", "patternType": "literal"},
                "operations": ["Read"],
            },
            {
                "resource": {"type": "topic", "name": "*", "patternType": "literal"},
                "operations": ["Describe", "DescribeConfigs"],
            },
            {"resource": {"type": "cluster"}, "operations": ["Describe", "DescribeConfigs"]},
        ],
    }


def test_the_document_lists_the_permissions_that_the_command_checks() -> None:
    """Administrators grant what SECURITY.md lists."""
    rows = re.findall(r"^\| ((?:READ|DESCRIBE)[A-Z_]* on .+?) \| (.+?) \|$", SECURITY_MD.read_text(), re.MULTILINE)
    listed = [(name.replace("`", ""), text) for name, text in rows]
    assert [name for name, _ in listed] == [
        permission.text + (" (optional)" if permission.is_optional else "") for permission in PERMISSIONS
    ]
    assert all(
        text.startswith(permission.needed_for) for permission, (_, text) in zip(PERMISSIONS, listed, strict=True)
    )
