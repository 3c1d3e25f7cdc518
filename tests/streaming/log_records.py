"""Records of `__consumer_offsets` in the broker's encoding, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streaming.protocol.layouts import (
    CONSUMER_GROUP_MEMBER_METADATA,
    CONSUMER_GROUP_METADATA,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    GROUP_METADATA,
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    SHARE_GROUP_METADATA,
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
    STREAMS_GROUP_METADATA,
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
)
from tests.bench.encoder import record_key, record_value, versioned

RECORDS_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("offsets_topic_partition", pa.int32()),
        ("offsets_topic_offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
    ]
)


@dataclass(frozen=True)
class LogRecord:
    """A record with its position in the log."""

    key: bytes | None
    value: bytes | None
    offsets_topic_partition: int = 0
    offsets_topic_offset: int = 0
    timestamp_ms: int = 0


def commit_key(group: str, topic: str = "orders", partition: int = 0, *, legacy: bool = False) -> bytes:
    """Return the key of an offset commit. With `legacy` its record type is 0."""
    layout = LEGACY_OFFSET_COMMIT if legacy else OFFSET_COMMIT
    return record_key(layout, group=group, topic=topic, partition=partition)


def commit_value(committed_offset: int, version: int = 3, metadata: str = "", topic_id: str | None = None) -> bytes:
    """Return the value of an offset commit in any version from 0 to 4."""
    fields: dict[str, object] = {
        "offset": committed_offset,
        "leaderEpoch": -1,
        "metadata": metadata,
        "commitTimestamp": 7,
        "expireTimestamp": -1,
    }
    tagged = {} if topic_id is None else {"topicId": topic_id}
    return record_value(OFFSET_COMMIT, version, **fields, **tagged)


def group_key(group: str) -> bytes:
    """Return the key of a classic group's metadata."""
    return record_key(GROUP_METADATA, group=group)


def group_value(
    generation: int,
    members: Sequence[dict[str, Any]] = (),
    *,
    protocol_type: str = "consumer",
    protocol: str | None = "range",
    version: int = 3,
) -> bytes:
    """Return the value of a classic group's metadata."""
    return record_value(
        GROUP_METADATA,
        version,
        protocolType=protocol_type,
        generation=generation,
        protocol=protocol if members else None,
        leader=members[0]["memberId"] if members else None,
        currentStateTimestamp=-1,
        members=members,
    )


def member_fields(
    member_id: str, topics: Sequence[str] = ("orders",), held: dict[str, list[int]] | None = None
) -> dict[str, Any]:
    """Return a member of `group_value`, with its ConsumerProtocol bytes."""
    assigned = [{"topic": topic, "partitions": partitions} for topic, partitions in (held or {}).items()]
    subscription = {"topics": topics, "userData": None, "ownedPartitions": [], "generationId": -1, "rackId": None}
    assignment = {"assignedPartitions": assigned, "userData": None}
    return {
        "memberId": member_id,
        "groupInstanceId": None,
        "clientId": "client",
        "clientHost": "/127.0.0.1",
        "rebalanceTimeout": 300_000,
        "sessionTimeout": 45_000,
        "subscription": versioned(CONSUMER_PROTOCOL_SUBSCRIPTION, 3, subscription),
        "assignment": versioned(CONSUMER_PROTOCOL_ASSIGNMENT, 3, assignment),
    }


OTHER_GROUP_LAYOUTS = {
    "consumer": CONSUMER_GROUP_METADATA,
    "share": SHARE_GROUP_METADATA,
    "streams": STREAMS_GROUP_METADATA,
}


def other_group_key(group_type: str, group: str) -> bytes:
    """Return the metadata key of a group that is not classic."""
    return record_key(OTHER_GROUP_LAYOUTS[group_type], groupId=group)


def other_group_value(group_type: str, epoch: int) -> bytes:
    """Return the metadata value of a group that is not classic."""
    fields: dict[str, object] = {"epoch": epoch}
    if group_type != "consumer":
        fields["metadataHash"] = 0
    return record_value(OTHER_GROUP_LAYOUTS[group_type], 0, **fields)


TARGET_EPOCH_LAYOUTS = {
    "consumer": CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    "share": SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
    "streams": STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
}


def target_epoch_key(group_type: str, group: str) -> bytes:
    """Return the key of a target epoch record."""
    return record_key(TARGET_EPOCH_LAYOUTS[group_type], groupId=group)


def target_epoch_value(group_type: str, epoch: int) -> bytes:
    """Return the value of a target epoch record."""
    return record_value(TARGET_EPOCH_LAYOUTS[group_type], 0, assignmentEpoch=epoch)


def consumer_member_key(group: str, member_id: str) -> bytes:
    """Return the key of a KIP-848 member record."""
    return record_key(CONSUMER_GROUP_MEMBER_METADATA, groupId=group, memberId=member_id)


def consumer_member_value() -> bytes:
    """Return the value of a KIP-848 member record."""
    return record_value(
        CONSUMER_GROUP_MEMBER_METADATA,
        0,
        instanceId=None,
        rackId=None,
        clientId="client",
        clientHost="/127.0.0.1",
        subscribedTopicNames=["orders"],
        subscribedTopicRegex=None,
        rebalanceTimeoutMs=300_000,
        serverAssignor=None,
    )


def record_batch(records: Sequence[LogRecord], schema: pa.Schema = RECORDS_SCHEMA) -> pa.RecordBatch:
    """Return the records in the form in which Spark passes them to the combine step."""
    rows = [vars(record) for record in records]
    return pa.RecordBatch.from_pylist(rows, schema=schema)
