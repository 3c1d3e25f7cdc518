"""What happened, as values: the only things that may change what we know of a group.

Two kinds of facts become events. Records the group coordinator wrote (each with its position in `__consumer_offsets`,
so that a fact read twice counts once), and facts the driver learned elsewhere and hands back (topic metadata; whether
a stretch of the log was whole; the assignor that a coordinator reports). Both are plain values with a stable encoded
form: they cross process borders.
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
"""The group coordinator's own topic, the log of all that happens to groups."""

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""Types of groups, as ListGroups names them: `classic` (JoinGroup), `consumer` (KIP-848), `share`, `streams`."""


POLLED_PARTITION = -1
"""In place of a partition of `__consumer_offsets` where coordinators are asked and the log is not read."""


class Position(msgspec.Struct, frozen=True, order=True):
    """Where in `__consumer_offsets` a record stands, and the coordinator's time on it."""

    offsets_topic_partition: int
    offsets_topic_offset: int
    timestamp_ms: int


class GroupMetadataWritten(msgspec.Struct, frozen=True, tag="group_metadata"):
    """A classic group's GroupMetadata record: a generation was synced, a static member rejoined, or all left."""

    position: Position
    metadata: GroupMetadata


class ModernDescription(msgspec.Struct, frozen=True):
    """What a coordinator answers about a consumer, share or streams group: all of it, by member id where it is theirs.

    `names` are the topics' names by id. A share group's members have no target.
    """

    epoch: int
    assignment_epoch: int
    assignor: str | None
    members: dict[str, ModernMember]
    targets: dict[str, IdPartitions]
    currents: dict[str, MemberAssignment]
    names: dict[str, str]


class GroupDescribed(msgspec.Struct, frozen=True, tag="group_described"):
    """A group as its coordinator described it when asked, whole; `state` in the coordinator's words.

    Its position is no record's: `offsets_topic_partition` is POLLED_PARTITION, `offsets_topic_offset` numbers the
    answers of all polls, `timestamp_ms` is when the poll began. Of `classic` and `modern` one is there.
    """

    position: Position
    group_type: str
    state: str
    classic: GroupMetadata | None = None
    modern: ModernDescription | None = None


class GroupTombstoned(msgspec.Struct, frozen=True, tag="group_tombstone"):
    """A group's metadata was deleted, or the group goes on under another protocol: the next record tells."""

    position: Position


class EpochWritten(msgspec.Struct, frozen=True, tag="epoch"):
    """A consumer (KIP-848), share or streams group has a new epoch."""

    position: Position
    group_type: str
    epoch: int


class MemberWritten(msgspec.Struct, frozen=True, tag="member"):
    """A member of such a group described itself; None: it is gone."""

    position: Position
    group_type: str
    member_id: str
    member: ModernMember | None


class TargetEpochWritten(msgspec.Struct, frozen=True, tag="target_epoch"):
    """The epoch that the targets of a group's members were computed for; None: deleted with the group."""

    position: Position
    group_type: str
    epoch: int | None


class TargetWritten(msgspec.Struct, frozen=True, tag="target"):
    """What a member shall have; None: the member is gone."""

    position: Position
    group_type: str
    member_id: str
    partitions: IdPartitions | None


class CurrentWritten(msgspec.Struct, frozen=True, tag="current"):
    """What a member has; None: the member is gone."""

    position: Position
    group_type: str
    member_id: str
    current: MemberAssignment | None


class RegexResolved(msgspec.Struct, frozen=True, tag="regex"):
    """The topics that a subscribed regular expression stands for; None: nobody subscribes to it any more."""

    position: Position
    regex: str
    topics: tuple[str, ...] | None


class TopicsNamed(msgspec.Struct, frozen=True, tag="topics_named"):
    """Topic ids with their names, as coordinators up to Kafka 4.0 recorded them for a group."""

    position: Position
    names: dict[str, str]


class TopicMetadata(msgspec.Struct, frozen=True):
    """A topic as sampled; `partitions` None says that the broker knew no such topic then.

    `racks` are those of each partition's replicas, `topic_id` is None where the broker has no ids or nobody needs it.
    `since_ms` is the time of the first sample in a row with this number of partitions, where a group keeps it.
    """

    partitions: int | None
    sampled_at_ms: int
    racks: tuple[tuple[str | None, ...], ...] = ()
    topic_id: str | None = None
    since_ms: int | None = None

    @property
    def known_since_ms(self) -> int:
        """From when to `sampled_at_ms` every sample showed this number of partitions."""
        return self.sampled_at_ms if self.since_ms is None else self.since_ms


class TopicsSampled(msgspec.Struct, frozen=True, tag="topics_sampled"):
    """Metadata of topics that a group subscribes to, handed back by the driver."""

    topics: dict[str, TopicMetadata]


class SkipSettled(msgspec.Struct, frozen=True, tag="skip_settled"):
    """The answer to a generation number that was skipped before the record at `offsets_topic_offset`.

    `log_was_whole` True: every offset in between was read, so no record was compacted away and the skipped generations
    were joins that never synced. False: records are missing there, and nobody can know.
    """

    offsets_topic_offset: int
    log_was_whole: bool


class GroupVanished(msgspec.Struct, frozen=True, tag="group_vanished"):
    """The brokers know no such group any more, and the log up to then holds no record that says so.

    It is about the group as of its record at `after_offset` of `offsets_topic_partition` (None: an earlier version of
    the monitor sent it); a later record makes it void.
    """

    after_offset: int
    listed_at_ms: int
    offsets_topic_partition: int | None = None


class GroupForgotten(msgspec.Struct, frozen=True, tag="group_forgotten"):
    """A group has been dead for so long that its totals need not be kept any more."""


class AssignorReported(msgspec.Struct, frozen=True, tag="assignor_reported"):
    """The assignor of a KIP-848 group whose members name none, as its coordinator described the group at an epoch.

    At a different epoch the members may be different ones, and one of them may have named the assignor.
    """

    epoch: int
    assignor: str


class DecodeFailed(msgspec.Struct, frozen=True, tag="record_unreadable"):
    """A membership record of the group went to quarantine: its key is whole, its value beyond reading.

    What the record replaced is no longer the present, and what it says instead nobody knows. `entry` and `entry_of`
    name what it would have replaced, as `entry_name` does for records that can be read.
    """

    position: Position
    group_type: str
    entry: str
    entry_of: str


ModernEvent = (
    EpochWritten | MemberWritten | TargetEpochWritten | TargetWritten | CurrentWritten | RegexResolved | TopicsNamed
)
"""Records of groups whose assignment the coordinator makes."""

LogEvent = GroupMetadataWritten | GroupDescribed | GroupTombstoned | DecodeFailed | ModernEvent
"""What has a position: records, and in their place what coordinators said when asked."""

ExternalFact = TopicsSampled | SkipSettled | GroupVanished | GroupForgotten | AssignorReported
GroupEvent = LogEvent | ExternalFact

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(GroupEvent)


def encode_event(event: GroupEvent) -> bytes:
    """Encode an event in its stable form (MessagePack, tagged by kind)."""
    return _ENCODER.encode(event)


def decode_event(encoded: bytes) -> GroupEvent:
    """Decode the event of `encode_event`; raises `msgspec.DecodeError` on anything else."""
    event: GroupEvent = _DECODER.decode(encoded)
    return event


def log_event(
    record: DecodedRecord, position: Position, refusals: list[Refusal] | None = None
) -> tuple[str, LogEvent] | None:
    """The (group id, event) a membership record stands for; None for records that say nothing about membership.

    Bytes of a classic member that are refused are added to `refusals`: they are unknown in the event.
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
    """The (group id, event) of a record that was refused; None where not even its key tells of a group's members.

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
    """What one record replaces of its group: the kind of entry, and the member or expression it is of.

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
    """Keep the last entry of each member id, as the coordinator does when it replays the record (`ClassicGroup.add`).

    No coordinator writes a member twice; whoever else does must not stop the evaluation of all other groups.
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
    """A streams member's tasks are not partitions of one topic: that it has a target is all that is kept of it."""
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
"""Not among them: a share group's initialised partitions and a streams group's topology. They name no member."""
