"""Defines the layouts of all messages in ``__consumer_offsets`` as data.

The fields are in wire order, with the names, types and versions from the message definitions of Kafka 4.2. Tagged
fields come last in every struct. ``readers`` creates one reader for each version of a layout.
"""

from __future__ import annotations

from typing import Final

from streaming.protocol.primitives import ZERO_UUID
from streaming.protocol.schema import ArrayOf, Field, Message, RecordLayout, Struct


def _record(name: str, key_type: int, key: tuple[Field, ...], *value: Field) -> RecordLayout:
    """Define a record type of KIP-848 or a later KIP. It has only one value version, which is flexible."""
    return RecordLayout(name, key_type, Message(f"{name}Key", key), Message(f"{name}Value", value, 0, 0))


_GROUP_ID: Final = Field("groupId", "string")
_GROUP_KEY: Final = (_GROUP_ID,)
_MEMBER_KEY: Final = (_GROUP_ID, Field("memberId", "string"))
_COMMIT_KEY: Final = (Field("group", "string"), Field("topic", "string"), Field("partition", "int32"))

_TOPIC_PARTITIONS: Final = ArrayOf(Struct((Field("topicId", "uuid"), Field("partitions", ArrayOf("int32")))))
_NAMED_TOPIC_PARTITIONS: Final = ArrayOf(
    Struct((Field("topicId", "uuid"), Field("topicName", "string"), Field("partitions", ArrayOf("int32"))))
)
_TOPIC_IDS_AND_NAMES: Final = ArrayOf(Struct((Field("topicId", "uuid"), Field("topicName", "string"))))
_KEY_VALUES: Final = ArrayOf(Struct((Field("key", "string"), Field("value", "string"))))
_CLIENT: Final = (Field("clientId", "string"), Field("clientHost", "string"))
_INSTANCE_AND_RACK: Final = (Field("instanceId", "string", nullable=True), Field("rackId", "string", nullable=True))

LEGACY_OFFSET_COMMIT: Final = RecordLayout(
    "LegacyOffsetCommit",
    0,
    Message("LegacyOffsetCommitKey", _COMMIT_KEY),
    Message(
        "LegacyOffsetCommitValue",
        (Field("offset", "int64"), Field("metadata", "string"), Field("commitTimestamp", "int64")),
    ),
)

OFFSET_COMMIT: Final = RecordLayout(
    "OffsetCommit",
    1,
    Message("OffsetCommitKey", _COMMIT_KEY),
    Message(
        "OffsetCommitValue",
        (
            Field("offset", "int64"),
            Field("leaderEpoch", "int32", since=3),
            Field("metadata", "string"),
            Field("commitTimestamp", "int64"),
            Field("expireTimestamp", "int64", since=1, until=1),
            Field("topicId", "uuid", since=4, tag=0, default=ZERO_UUID),
        ),
        highest_version=4,
        flexible_since=4,
    ),
)

_CLASSIC_MEMBER: Final = Struct(
    (
        Field("memberId", "string"),
        Field("groupInstanceId", "string", since=3, nullable=True),
        *_CLIENT,
        Field("rebalanceTimeout", "int32", since=1),
        Field("sessionTimeout", "int32"),
        Field("subscription", "bytes"),
        Field("assignment", "bytes"),
    )
)

GROUP_METADATA: Final = RecordLayout(
    "GroupMetadata",
    2,
    Message("GroupMetadataKey", (Field("group", "string"),)),
    Message(
        "GroupMetadataValue",
        (
            Field("protocolType", "string"),
            Field("generation", "int32"),
            Field("protocol", "string", nullable=True),
            Field("leader", "string", nullable=True),
            Field("currentStateTimestamp", "int64", since=2),
            Field("members", ArrayOf(_CLASSIC_MEMBER)),
        ),
        highest_version=4,
        flexible_since=4,
    ),
)

# KIP-848: groups of the consumer protocol.

CONSUMER_GROUP_METADATA: Final = _record(
    "ConsumerGroupMetadata", 3, _GROUP_KEY, Field("epoch", "int32"), Field("metadataHash", "int64", tag=0, default=0)
)

_PARTITION_RACKS: Final = ArrayOf(Struct((Field("partition", "int32"), Field("racks", ArrayOf("string")))))
CONSUMER_GROUP_PARTITION_METADATA: Final = _record(
    "ConsumerGroupPartitionMetadata",
    4,
    _GROUP_KEY,
    Field(
        "topics",
        ArrayOf(
            Struct(
                (
                    Field("topicId", "uuid"),
                    Field("topicName", "string"),
                    Field("numPartitions", "int32"),
                    Field("partitionMetadata", _PARTITION_RACKS),
                )
            )
        ),
    ),
)

_CLASSIC_PROTOCOLS: Final = ArrayOf(Struct((Field("name", "string"), Field("metadata", "bytes"))))
CONSUMER_GROUP_MEMBER_METADATA: Final = _record(
    "ConsumerGroupMemberMetadata",
    5,
    _MEMBER_KEY,
    *_INSTANCE_AND_RACK,
    *_CLIENT,
    Field("subscribedTopicNames", ArrayOf("string")),
    Field("subscribedTopicRegex", "string", nullable=True),
    Field("rebalanceTimeoutMs", "int32"),
    Field("serverAssignor", "string", nullable=True),
    Field(
        "classicMemberMetadata",
        Struct((Field("sessionTimeoutMs", "int32"), Field("supportedProtocols", _CLASSIC_PROTOCOLS))),
        nullable=True,
        tag=0,
    ),
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: Final = _record(
    "ConsumerGroupTargetAssignmentMetadata", 6, _GROUP_KEY, Field("assignmentEpoch", "int32")
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: Final = _record(
    "ConsumerGroupTargetAssignmentMember", 7, _MEMBER_KEY, Field("topicPartitions", _TOPIC_PARTITIONS)
)

_MEMBER_EPOCHS: Final = (Field("memberEpoch", "int32"), Field("previousMemberEpoch", "int32"), Field("state", "int8"))
CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: Final = _record(
    "ConsumerGroupCurrentMemberAssignment",
    8,
    _MEMBER_KEY,
    *_MEMBER_EPOCHS,
    Field("assignedPartitions", _TOPIC_PARTITIONS),
    Field("partitionsPendingRevocation", _TOPIC_PARTITIONS),
)

CONSUMER_GROUP_REGULAR_EXPRESSION: Final = _record(
    "ConsumerGroupRegularExpression",
    16,
    (_GROUP_ID, Field("regularExpression", "string")),
    Field("topics", ArrayOf("string")),
    Field("version", "int64"),
    Field("timestamp", "int64"),
)

# KIP-932: share groups.

SHARE_GROUP_MEMBER_METADATA: Final = _record(
    "ShareGroupMemberMetadata",
    10,
    _MEMBER_KEY,
    Field("rackId", "string", nullable=True),
    *_CLIENT,
    Field("subscribedTopicNames", ArrayOf("string")),
)

SHARE_GROUP_METADATA: Final = _record(
    "ShareGroupMetadata", 11, _GROUP_KEY, Field("epoch", "int32"), Field("metadataHash", "int64")
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: Final = _record(
    "ShareGroupTargetAssignmentMetadata", 12, _GROUP_KEY, Field("assignmentEpoch", "int32")
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: Final = _record(
    "ShareGroupTargetAssignmentMember", 13, _MEMBER_KEY, Field("topicPartitions", _TOPIC_PARTITIONS)
)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: Final = _record(
    "ShareGroupCurrentMemberAssignment",
    14,
    _MEMBER_KEY,
    *_MEMBER_EPOCHS,
    Field("assignedPartitions", _TOPIC_PARTITIONS),
)

SHARE_GROUP_STATE_PARTITION_METADATA: Final = _record(
    "ShareGroupStatePartitionMetadata",
    15,
    _GROUP_KEY,
    Field("initializingTopics", _NAMED_TOPIC_PARTITIONS),
    Field("initializedTopics", _NAMED_TOPIC_PARTITIONS),
    Field("deletingTopics", _TOPIC_IDS_AND_NAMES),
)

# KIP-1071: streams groups.

STREAMS_GROUP_METADATA: Final = _record(
    "StreamsGroupMetadata",
    17,
    _GROUP_KEY,
    Field("epoch", "int32"),
    Field("metadataHash", "int64"),
    Field("validatedTopologyEpoch", "int32", tag=0, default=-1),
    Field("lastAssignmentConfigs", _KEY_VALUES, nullable=True, tag=1, default=()),
)

STREAMS_GROUP_MEMBER_METADATA: Final = _record(
    "StreamsGroupMemberMetadata",
    19,
    _MEMBER_KEY,
    *_INSTANCE_AND_RACK,
    *_CLIENT,
    Field("rebalanceTimeoutMs", "int32"),
    Field("topologyEpoch", "int32"),
    Field("processId", "string"),
    Field("userEndpoint", Struct((Field("host", "string"), Field("port", "uint16"))), nullable=True),
    Field("clientTags", _KEY_VALUES),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: Final = _record(
    "StreamsGroupTargetAssignmentMetadata", 20, _GROUP_KEY, Field("assignmentEpoch", "int32")
)

_SUBTOPOLOGY_ID: Final = Field("subtopologyId", "string")
_TASKS: Final = ArrayOf(Struct((_SUBTOPOLOGY_ID, Field("partitions", ArrayOf("int32")))))
STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: Final = _record(
    "StreamsGroupTargetAssignmentMember",
    21,
    _MEMBER_KEY,
    Field("activeTasks", _TASKS),
    Field("standbyTasks", _TASKS),
    Field("warmupTasks", _TASKS),
)

_TASKS_WITH_EPOCHS: Final = ArrayOf(
    Struct(
        (
            _SUBTOPOLOGY_ID,
            Field("partitions", ArrayOf("int32")),
            Field("assignmentEpochs", ArrayOf("int32"), nullable=True, tag=0, default=()),
        )
    )
)
STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: Final = _record(
    "StreamsGroupCurrentMemberAssignment",
    22,
    _MEMBER_KEY,
    *_MEMBER_EPOCHS,
    Field("activeTasks", _TASKS_WITH_EPOCHS),
    Field("standbyTasks", _TASKS_WITH_EPOCHS),
    Field("warmupTasks", _TASKS_WITH_EPOCHS),
    Field("activeTasksPendingRevocation", _TASKS_WITH_EPOCHS),
    Field("standbyTasksPendingRevocation", _TASKS_WITH_EPOCHS),
    Field("warmupTasksPendingRevocation", _TASKS_WITH_EPOCHS),
)

_INTERNAL_TOPICS: Final = ArrayOf(
    Struct(
        (
            Field("name", "string"),
            Field("partitions", "int32"),
            Field("replicationFactor", "int16"),
            Field("topicConfigs", _KEY_VALUES),
        )
    )
)
_COPARTITION_GROUPS: Final = ArrayOf(
    Struct(
        (
            Field("sourceTopics", ArrayOf("int16")),
            Field("sourceTopicRegex", ArrayOf("int16")),
            Field("repartitionSourceTopics", ArrayOf("int16")),
        )
    )
)
_SUBTOPOLOGIES: Final = ArrayOf(
    Struct(
        (
            _SUBTOPOLOGY_ID,
            Field("sourceTopics", ArrayOf("string")),
            Field("sourceTopicRegex", ArrayOf("string")),
            Field("stateChangelogTopics", _INTERNAL_TOPICS),
            Field("repartitionSinkTopics", ArrayOf("string")),
            Field("repartitionSourceTopics", _INTERNAL_TOPICS),
            Field("copartitionGroups", _COPARTITION_GROUPS),
        )
    )
)
STREAMS_GROUP_TOPOLOGY: Final = _record(
    "StreamsGroupTopology", 23, _GROUP_KEY, Field("epoch", "int32"), Field("subtopologies", _SUBTOPOLOGIES)
)

RECORD_LAYOUTS: Final = (
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    GROUP_METADATA,
    CONSUMER_GROUP_METADATA,
    CONSUMER_GROUP_PARTITION_METADATA,
    CONSUMER_GROUP_MEMBER_METADATA,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    SHARE_GROUP_MEMBER_METADATA,
    SHARE_GROUP_METADATA,
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    SHARE_GROUP_STATE_PARTITION_METADATA,
    CONSUMER_GROUP_REGULAR_EXPRESSION,
    STREAMS_GROUP_METADATA,
    STREAMS_GROUP_MEMBER_METADATA,
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    STREAMS_GROUP_TOPOLOGY,
)
"""All record types of Kafka 4.2's group coordinator. The type numbers 9 and 18 are unused."""

# The subscription and assignment bytes of a classic member. Clients write them after an int16 version.

_OWNED_PARTITIONS: Final = ArrayOf(Struct((Field("topic", "string"), Field("partitions", ArrayOf("int32")))))

CONSUMER_PROTOCOL_SUBSCRIPTION: Final = Message(
    "ConsumerProtocolSubscription",
    (
        Field("topics", ArrayOf("string")),
        Field("userData", "bytes", nullable=True),
        Field("ownedPartitions", _OWNED_PARTITIONS, since=1),
        Field("generationId", "int32", since=2),
        Field("rackId", "string", since=3, nullable=True),
    ),
    highest_version=3,
)

CONSUMER_PROTOCOL_ASSIGNMENT: Final = Message(
    "ConsumerProtocolAssignment",
    (Field("assignedPartitions", _OWNED_PARTITIONS), Field("userData", "bytes", nullable=True)),
    highest_version=3,
)

STICKY_USER_DATA: Final = Message(
    "StickyAssignorUserData",
    (Field("previousAssignment", _OWNED_PARTITIONS), Field("generation", "int32", since=1)),
    highest_version=1,
)
"""The user data that ``StickyAssignor`` writes into a subscription. The data has no version field."""
