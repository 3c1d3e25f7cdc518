"""Define the events. Only events can change the state of a group.

There are two kinds of events:

- Records of the group coordinator. Each record contains its position in `__consumer_offsets`. So a record that is read
  twice changes the state only once. In the polling mode, the monitor uses answers of coordinators instead of records.
- External facts, which the Spark driver adds to the state of the group. Examples are topic metadata and the assignor
  that a coordinator reports. A further example is the decision whether all records in a range of the log were read.

Events are sent between processes. So each event has a stable encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import msgspec

from streaming.protocol import DecodedRecord, RecordType, UndecodableRecord, decode
from streaming.protocol.classic import GroupMetadata, Refusal, group_metadata
from streaming.protocol.modern import (
    IdPartitions,
    MemberAssignment,
    ModernMember,
    id_partitions,
    member_assignment,
    modern_member,
)

OFFSETS_TOPIC = "__consumer_offsets"
"""The topic in which the group coordinator stores its records."""

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""Group types, named as in ListGroups: `classic`, `consumer` (KIP-848), `share` (KIP-932), `streams` (KIP-1071)."""


POLLED_PARTITION = -1
"""The partition number that is used in the positions of polled answers.

In the polling mode, `__consumer_offsets` is not read.
"""


class Position(msgspec.Struct, frozen=True, order=True):
    """The position of a record in `__consumer_offsets`, and the timestamp of the record.

    The coordinator sets the timestamp.
    """

    offsets_topic_partition: int
    offsets_topic_offset: int
    timestamp_ms: int


class GroupMetadataWritten(msgspec.Struct, frozen=True, tag="group_metadata"):
    """A GroupMetadata record: a classic group completed a rebalance, a static member rejoined, or all members left."""

    position: Position
    metadata: GroupMetadata


class ModernDescription(msgspec.Struct, frozen=True):
    """A coordinator's full description of a consumer, share or streams group.

    The keys of `members`, `targets` and `currents` are member ids. Members of a share group have no targets. `names`
    maps topic ids to topic names.
    """

    epoch: int
    assignment_epoch: int
    assignor: str | None
    members: dict[str, ModernMember]
    targets: dict[str, IdPartitions]
    currents: dict[str, MemberAssignment]
    names: dict[str, str]


class GroupDescribed(msgspec.Struct, frozen=True, tag="group_described"):
    """A coordinator's full description of a group. `state` is the coordinator's name of the group's state.

    The position is not the position of a record. `offsets_topic_partition` is POLLED_PARTITION. `offsets_topic_offset`
    is a sequence number over the answers of all polls. `timestamp_ms` is the start time of the poll. One of `classic`
    and `modern` is set, and the other is None.
    """

    position: Position
    group_type: str
    state: str
    classic: GroupMetadata | None = None
    modern: ModernDescription | None = None


class GroupTombstoned(msgspec.Struct, frozen=True, tag="group_tombstone"):
    """The coordinator deleted a group's metadata.

    Either the group no longer exists, or the next record of the group shows a different group type.
    """

    position: Position


class EpochWritten(msgspec.Struct, frozen=True, tag="epoch"):
    """A consumer (KIP-848), share or streams group has a new group epoch."""

    position: Position
    group_type: str
    epoch: int


class MemberWritten(msgspec.Struct, frozen=True, tag="member"):
    """The metadata of a member of a consumer, share or streams group. The metadata is None if the member left."""

    position: Position
    group_type: str
    member_id: str
    member: ModernMember | None


class TargetEpochWritten(msgspec.Struct, frozen=True, tag="target_epoch"):
    """The epoch for which the targets of a group's members were computed.

    The epoch is None if the group was deleted.
    """

    position: Position
    group_type: str
    epoch: int | None


class TargetWritten(msgspec.Struct, frozen=True, tag="target"):
    """The target assignment of a member. The assignment is None if the member left."""

    position: Position
    group_type: str
    member_id: str
    partitions: IdPartitions | None


class CurrentWritten(msgspec.Struct, frozen=True, tag="current"):
    """The current assignment of a member. The assignment is None if the member left."""

    position: Position
    group_type: str
    member_id: str
    current: MemberAssignment | None


class RegexResolved(msgspec.Struct, frozen=True, tag="regex"):
    """The topics that match a subscribed regular expression.

    The value is None if no member subscribes to this expression any more.
    """

    position: Position
    regex: str
    topics: tuple[str, ...] | None


class TopicsNamed(msgspec.Struct, frozen=True, tag="topics_named"):
    """The names of a group's topics by topic id. Only coordinators up to Kafka 4.0 write this record."""

    position: Position
    names: dict[str, str]


class TopicMetadata(msgspec.Struct, frozen=True):
    """The metadata of a topic in a sample.

    Attributes:
        partitions: the number of partitions, None if the brokers did not know the topic.
        racks: for each partition, the racks of its replicas.
        topic_id: None if the brokers have no topic ids, or if the group does not need the id.
        since_ms: the time of the first sample with this number of partitions. All later samples show the same number.
            `since_ms` is set only in the state of a group.

    """

    partitions: int | None
    sampled_at_ms: int
    racks: tuple[tuple[str | None, ...], ...] = ()
    topic_id: str | None = None
    since_ms: int | None = None

    @property
    def known_since_ms(self) -> int:
        """The time of the first sample with this number of partitions.

        All samples up to `sampled_at_ms` show this number.
        """
        return self.sampled_at_ms if self.since_ms is None else self.since_ms


class TopicsSampled(msgspec.Struct, frozen=True, tag="topics_sampled"):
    """Metadata of the topics that a group subscribes to. The Spark driver sends this event."""

    topics: dict[str, TopicMetadata]


class SkipSettled(msgspec.Struct, frozen=True, tag="skip_settled"):
    """The decision about the skipped generations between the record at `offsets_topic_offset` and the previous record.

    If `log_was_whole` is True, every offset between the two records was read. So compaction removed no record, and the
    skipped generations were failed rebalances: members joined but never synced. If `log_was_whole` is False, some
    offsets between the two records were not read, and the cause stays unknown.
    """

    offsets_topic_offset: int
    log_was_whole: bool


class GroupVanished(msgspec.Struct, frozen=True, tag="group_vanished"):
    """The group no longer exists on the brokers, but the monitor did not read its tombstone.

    The event applies only if the group's last record is at offset `after_offset` in `offsets_topic_partition`. If the
    group has a later record, the event is ignored. `offsets_topic_partition` is None if an earlier version of the
    monitor sent the event.
    """

    after_offset: int
    listed_at_ms: int
    offsets_topic_partition: int | None = None


class GroupForgotten(msgspec.Struct, frozen=True, tag="group_forgotten"):
    """The state of a group that was deleted a long time ago can be removed."""


class AssignorReported(msgspec.Struct, frozen=True, tag="assignor_reported"):
    """The assignor that the coordinator reported for a KIP-848 group at an epoch.

    The event is used if no member names an assignor. It applies only to this epoch. At a different epoch, the group can
    have different members, and a member can name an assignor.
    """

    epoch: int
    assignor: str


class DecodeFailed(msgspec.Struct, frozen=True, tag="record_unreadable"):
    """The value of a membership record could not be decoded.

    The key was decoded, and the record is stored in the quarantine table. The record replaces an older value of the
    group's state, so the older value is out of date. The new value is unknown. `entry` and `entry_of` are the result of
    `entry_name`.
    """

    position: Position
    group_type: str
    entry: str
    entry_of: str


ModernEvent = (
    EpochWritten | MemberWritten | TargetEpochWritten | TargetWritten | CurrentWritten | RegexResolved | TopicsNamed
)
"""Records of consumer, share and streams groups. The coordinator computes the assignments of these groups."""

LogEvent = GroupMetadataWritten | GroupDescribed | GroupTombstoned | DecodeFailed | ModernEvent
"""Events with a position: records, and answers of coordinators in the polling mode."""

ExternalFact = TopicsSampled | SkipSettled | GroupVanished | GroupForgotten | AssignorReported
GroupEvent = LogEvent | ExternalFact

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(GroupEvent)


def encode_event(event: GroupEvent) -> bytes:
    """Encode an event as MessagePack, with a tag for its kind. The encoding is stable."""
    return _ENCODER.encode(event)


def decode_event(encoded: bytes) -> GroupEvent:
    """Decode an event that `encode_event` encoded.

    Raises `msgspec.DecodeError` if the bytes are not an encoded event.
    """
    event: GroupEvent = _DECODER.decode(encoded)
    return event


def log_event(
    record: DecodedRecord, position: Position, refusals: list[Refusal] | None = None
) -> tuple[str, LogEvent] | None:
    """Return (group id, event) for a membership record. Return None for other records.

    If the subscription or assignment of a classic member cannot be decoded, it is None in the event. The failure is
    added to `refusals`.
    """
    record_type = RecordType(record.key_type)
    if record_type is RecordType.GROUP_METADATA:
        group_id: str = record.key["group"]
        if record.value is None:
            return group_id, GroupTombstoned(position)
        return group_id, GroupMetadataWritten(position, _one_entry_a_member(group_metadata(record, refusals)))
    build = _MODERN_EVENTS.get(record_type)
    return (record.key["groupId"], build(record, position)) if build else None


def decode_failed_event(key: bytes, position: Position) -> tuple[str, DecodeFailed] | None:
    """Return (group id, event) for an undecodable record. Return None if its key is not a membership key.

    >>> group_id, event = decode_failed_event(bytes.fromhex("0005 0001 67 0001 6d"), Position(0, 5, 7))
    >>> group_id, event.group_type, event.entry, event.entry_of
    ('g', 'consumer', 'member', 'm')
    """
    try:
        grouped = log_event(decode(key, None), position)
    except UndecodableRecord:
        return None
    if grouped is None:
        return None
    group_id, deletion = grouped
    group_type = _group_type_of(key)
    entry, entry_of = entry_name(deletion)
    return group_id, DecodeFailed(position, group_type, entry, entry_of)


def _group_type_of(key: bytes) -> str:
    record_type = RecordType(int.from_bytes(key[:2], "big"))
    newer_types = (SHARE, STREAMS, CONSUMER)
    return next((name for name in newer_types if record_type.name.startswith(name.upper())), CLASSIC)


def entry_name(event: LogEvent) -> tuple[str, str]:
    """Return which part of the group's state a record replaces: its kind, and its member id or regular expression.

    >>> entry_name(CurrentWritten(Position(0, 5, 7), CONSUMER, "m", None))
    ('current', 'm')
    >>> entry_name(GroupTombstoned(Position(0, 5, 7)))
    ('group', '')
    """
    if isinstance(event, MemberWritten | TargetWritten | CurrentWritten):
        return str(event.__struct_config__.tag), event.member_id
    if isinstance(event, RegexResolved):
        return "regex", event.regex
    return ("target_epoch" if isinstance(event, TargetEpochWritten) else "group"), ""


def _one_entry_a_member(metadata: GroupMetadata) -> GroupMetadata:
    """Remove all entries of a member id except the last.

    When a coordinator loads its log, `ClassicGroup.add` does the same. A coordinator never writes a record with
    duplicate member ids. But other clients can write such a record. This record must not stop the evaluation of all
    other groups.
    """
    last = {member.member_id: member for member in metadata.members}
    return metadata if len(last) == len(metadata.members) else replace(metadata, members=tuple(last.values()))


def _epoch(group_type: str, record: DecodedRecord, position: Position) -> LogEvent:
    if record.value is None:
        return GroupTombstoned(position)
    return EpochWritten(position, group_type, record.value["epoch"])


def _member(group_type: str, record: DecodedRecord, position: Position) -> LogEvent:
    member = None if record.value is None else modern_member(record.value)
    return MemberWritten(position, group_type, record.key["memberId"], member)


def _target_epoch(group_type: str, record: DecodedRecord, position: Position) -> LogEvent:
    epoch = None if record.value is None else record.value["assignmentEpoch"]
    return TargetEpochWritten(position, group_type, epoch)


def _target(group_type: str, record: DecodedRecord, position: Position) -> LogEvent:
    """Return the target of a member.

    In a streams group, the target is empty, because tasks are not partitions of one topic.
    """
    partitions = None if record.value is None else id_partitions(record.value.get("topicPartitions", ()))
    return TargetWritten(position, group_type, record.key["memberId"], partitions)


def _current(group_type: str, record: DecodedRecord, position: Position) -> LogEvent:
    current = None if record.value is None else member_assignment(record.value)
    return CurrentWritten(position, group_type, record.key["memberId"], current)


def _regex(record: DecodedRecord, position: Position) -> LogEvent:
    topics = None if record.value is None else tuple(record.value["topics"])
    return RegexResolved(position, record.key["regularExpression"], topics)


def _names(record: DecodedRecord, position: Position) -> LogEvent:
    topics = record.value["topics"] if record.value is not None else ()
    return TopicsNamed(position, {topic["topicId"]: topic["topicName"] for topic in topics})


_MODERN_EVENTS: Mapping[RecordType, Callable[[DecodedRecord, Position], LogEvent]] = {
    RecordType.CONSUMER_GROUP_METADATA: partial(_epoch, CONSUMER),
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: _names,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: partial(_member, CONSUMER),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: partial(_target_epoch, CONSUMER),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: partial(_target, CONSUMER),
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: partial(_current, CONSUMER),
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: _regex,
    RecordType.SHARE_GROUP_METADATA: partial(_epoch, SHARE),
    RecordType.SHARE_GROUP_MEMBER_METADATA: partial(_member, SHARE),
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: partial(_target_epoch, SHARE),
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: partial(_target, SHARE),
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: partial(_current, SHARE),
    RecordType.STREAMS_GROUP_METADATA: partial(_epoch, STREAMS),
    RecordType.STREAMS_GROUP_MEMBER_METADATA: partial(_member, STREAMS),
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: partial(_target_epoch, STREAMS),
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: partial(_target, STREAMS),
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: partial(_current, STREAMS),
}
"""Event constructors by record type.

ShareGroupStatePartitionMetadata and StreamsGroupTopology are not included, because they do not describe members.
"""
