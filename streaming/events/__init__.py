"""Defines the events: the only values that can change the state of a group.

There are two kinds:

- Records of the group coordinator. Each record has its position in `__consumer_offsets`, so a record that is read twice
  counts once. In the polling mode, answers of coordinators replace these records.
- External facts, which the driver sends to the group. Examples are topic metadata, the assignor that a coordinator
  reports, and the result of a check whether a range of the log was complete.

All events have a stable encoded form, because they are sent between processes.
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
"""The topic that the group coordinator writes to."""

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""Group types as in ListGroups: `classic` (JoinGroup), `consumer` (KIP-848), `share` (KIP-932), `streams` (1071)."""


POLLED_PARTITION = -1
"""The partition number in the position of an answer in the polling mode.

In this mode, `__consumer_offsets` is not read.
"""


class Position(msgspec.Struct, frozen=True, order=True):
    """The position of a record in `__consumer_offsets`, and the timestamp that the coordinator gave it."""

    offsets_topic_partition: int
    offsets_topic_offset: int
    timestamp_ms: int


class GroupMetadataWritten(msgspec.Struct, frozen=True, tag="group_metadata"):
    """A GroupMetadata record: a classic group completed a rebalance, a static member rejoined, or all members left."""

    position: Position
    metadata: GroupMetadata


class ModernDescription(msgspec.Struct, frozen=True):
    """A coordinator's full description of a consumer, share or streams group.

    `members`, `targets` and `currents` map member ids to values. Members of a share group have no target. `names` maps
    topic ids to topic names.
    """

    epoch: int
    assignment_epoch: int
    assignor: str | None
    members: dict[str, ModernMember]
    targets: dict[str, IdPartitions]
    currents: dict[str, MemberAssignment]
    names: dict[str, str]


class GroupDescribed(msgspec.Struct, frozen=True, tag="group_described"):
    """A coordinator's full description of a group. `state` is the name that the coordinator uses.

    The position is not that of a record. `offsets_topic_partition` is POLLED_PARTITION, `offsets_topic_offset` numbers
    the answers of all polls, and `timestamp_ms` is the start time of the poll. Exactly one of `classic` and `modern` is
    set.
    """

    position: Position
    group_type: str
    state: str
    classic: GroupMetadata | None = None
    modern: ModernDescription | None = None


class GroupTombstoned(msgspec.Struct, frozen=True, tag="group_tombstone"):
    """The coordinator deleted a group's metadata.

    Either the group does not exist any more, or its next record shows a different group type.
    """

    position: Position


class EpochWritten(msgspec.Struct, frozen=True, tag="epoch"):
    """A consumer (KIP-848), share or streams group has a new group epoch."""

    position: Position
    group_type: str
    epoch: int


class MemberWritten(msgspec.Struct, frozen=True, tag="member"):
    """The metadata of a member of a consumer, share or streams group. It is None if the member left."""

    position: Position
    group_type: str
    member_id: str
    member: ModernMember | None


class TargetEpochWritten(msgspec.Struct, frozen=True, tag="target_epoch"):
    """The epoch for which the targets of a group's members were computed. None if the group was deleted."""

    position: Position
    group_type: str
    epoch: int | None


class TargetWritten(msgspec.Struct, frozen=True, tag="target"):
    """The target assignment of a member. It is None if the member left."""

    position: Position
    group_type: str
    member_id: str
    partitions: IdPartitions | None


class CurrentWritten(msgspec.Struct, frozen=True, tag="current"):
    """The current assignment of a member. It is None if the member left."""

    position: Position
    group_type: str
    member_id: str
    current: MemberAssignment | None


class RegexResolved(msgspec.Struct, frozen=True, tag="regex"):
    """The topics that match a subscribed regular expression.

    None if no member subscribes to this expression any more.
    """

    position: Position
    regex: str
    topics: tuple[str, ...] | None


class TopicsNamed(msgspec.Struct, frozen=True, tag="topics_named"):
    """Names of topics by id, as coordinators up to Kafka 4.0 wrote them for a group."""

    position: Position
    names: dict[str, str]


class TopicMetadata(msgspec.Struct, frozen=True):
    """The metadata of a topic in a sample.

    Attributes:
        partitions: the number of partitions, None if the brokers did not know the topic.
        racks: for each partition, the racks of its replicas.
        topic_id: None if the brokers have no topic ids, or if the group does not need the id.
        since_ms: the time of the first sample with this number of partitions. All later samples show the same number.
            Set only in the state of a group.

    """

    partitions: int | None
    sampled_at_ms: int
    racks: tuple[tuple[str | None, ...], ...] = ()
    topic_id: str | None = None
    since_ms: int | None = None

    @property
    def known_since_ms(self) -> int:
        """Since this time, all samples up to `sampled_at_ms` have shown this number of partitions."""
        return self.sampled_at_ms if self.since_ms is None else self.since_ms


class TopicsSampled(msgspec.Struct, frozen=True, tag="topics_sampled"):
    """Metadata of topics that a group subscribes to, sent by the driver."""

    topics: dict[str, TopicMetadata]


class SkipSettled(msgspec.Struct, frozen=True, tag="skip_settled"):
    """The decision about generation numbers that were skipped before the record at `offsets_topic_offset`.

    If `log_was_whole` is True, every offset between the two records was read. So no record was compacted away, and the
    skipped generations were failed rebalances: members joined and never synced. If `log_was_whole` is False, some
    offsets between the two records are missing, and the cause stays unknown.
    """

    offsets_topic_offset: int
    log_was_whole: bool


class GroupVanished(msgspec.Struct, frozen=True, tag="group_vanished"):
    """The brokers do not have the group any more, but its tombstone was not read.

    The event applies only if the group's last record is at `after_offset` of `offsets_topic_partition`. If the group
    has a later record, the event has no effect. If an earlier version of the monitor sent the event, the partition is
    None.
    """

    after_offset: int
    listed_at_ms: int
    offsets_topic_partition: int | None = None


class GroupForgotten(msgspec.Struct, frozen=True, tag="group_forgotten"):
    """A group has been dead for so long that its state can be deleted."""


class AssignorReported(msgspec.Struct, frozen=True, tag="assignor_reported"):
    """The assignor of a KIP-848 group at an epoch, as its coordinator reported it. No member names an assignor.

    At a different epoch, the group can have different members, and the assignor can come from one of these members.
    """

    epoch: int
    assignor: str


class DecodeFailed(msgspec.Struct, frozen=True, tag="record_unreadable"):
    """A membership record of the group went to quarantine. Its key was decoded, but its value could not be decoded.

    The record replaced an older entry of the group, so that entry is out of date and its new value is unknown. `entry`
    and `entry_of` are the result of `entry_name`.
    """

    position: Position
    group_type: str
    entry: str
    entry_of: str


ModernEvent = (
    EpochWritten | MemberWritten | TargetEpochWritten | TargetWritten | CurrentWritten | RegexResolved | TopicsNamed
)
"""Records of consumer, share and streams groups. The coordinator computes their assignments."""

LogEvent = GroupMetadataWritten | GroupDescribed | GroupTombstoned | DecodeFailed | ModernEvent
"""Events with a position: records, and answers of coordinators in the polling mode."""

ExternalFact = TopicsSampled | SkipSettled | GroupVanished | GroupForgotten | AssignorReported
GroupEvent = LogEvent | ExternalFact

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(GroupEvent)


def encode_event(event: GroupEvent) -> bytes:
    """Encode an event in its stable form (MessagePack, tagged by kind)."""
    return _ENCODER.encode(event)


def decode_event(encoded: bytes) -> GroupEvent:
    """Decode an event of `encode_event`. Raises `msgspec.DecodeError` for any other bytes."""
    event: GroupEvent = _DECODER.decode(encoded)
    return event


def log_event(
    record: DecodedRecord, position: Position, refusals: list[Refusal] | None = None
) -> tuple[str, LogEvent] | None:
    """Return (group id, event) for a membership record, or None for any other record.

    If bytes of a classic member cannot be decoded, their value in the event is None, and the failure is added to
    `refusals`.
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
    """Return (group id, event) for an undecodable record, or None if the key of the record is not a membership key.

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
    """Return the entry that a record replaces: the kind of the entry, and its member id or regular expression.

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
    """Use only the last entry of each member id. `ClassicGroup.add` does the same in the coordinator's replay.

    Coordinators never write a member twice. But a different client can write such a record. This record must not stop
    the evaluation of all other groups.
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

    For a member of a streams group, the target is empty, because tasks are not partitions of one topic.
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

ShareGroupStatePartitionMetadata and StreamsGroupTopology are not included, because they describe no member.
"""
