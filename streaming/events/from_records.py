"""Convert decoded records of the group coordinator to events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from streaming.events import (
    CLASSIC,
    CONSUMER,
    SHARE,
    STREAMS,
    CurrentWritten,
    DecodeFailed,
    EpochWritten,
    GroupMetadataWritten,
    GroupTombstoned,
    LogEvent,
    MemberWritten,
    Position,
    RegexResolved,
    TargetEpochWritten,
    TargetWritten,
    TopicsNamed,
)
from streaming.protocol import DecodedRecord, RecordType, UndecodableRecord, decode
from streaming.protocol.classic import GroupMetadata, Refusal, group_metadata
from streaming.protocol.modern import id_partitions, member_assignment, modern_member


def log_event(
    record: DecodedRecord, position: Position, refusals: list[Refusal] | None = None
) -> tuple[str, LogEvent] | None:
    """Return (group id, event) for a membership record. Return None for other records.

    An undecodable subscription or assignment of a classic member is None, and is added to `refusals`.
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
    """Return (group id, event) for an undecodable record. Return None if the key of the record is not a membership key.

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
    record_type = RecordType(int.from_bytes(key[:2], "big"))
    newer_types = (SHARE, STREAMS, CONSUMER)
    group_type = next((name for name in newer_types if record_type.name.startswith(name.upper())), CLASSIC)
    return group_id, DecodeFailed(position, group_type, *entry_name(deletion))


def entry_name(event: LogEvent) -> tuple[str, str]:
    """Return the entry that a record replaces in a group's state: its kind, and its member id or regular expression.

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
    """Keep only the last entry of each member id, like `ClassicGroup.add` when a coordinator loads its log.

    A coordinator never writes duplicate member ids, but other clients can. Such a record must not stop the evaluation
    of all other groups.
    """
    last = {member.member_id: member for member in metadata.members}
    return metadata if len(last) == len(metadata.members) else replace(metadata, members=tuple(last.values()))


def _epoch(group_type: str, record: DecodedRecord, position: Position) -> LogEvent:
    if record.value is None:
        return GroupTombstoned(position, group_type)
    return EpochWritten(position, group_type, record.value["epoch"])


def _member(group_type: str, record: DecodedRecord, position: Position) -> LogEvent:
    member = None if record.value is None else modern_member(record.value)
    return MemberWritten(position, group_type, record.key["memberId"], member)


def _target_epoch(group_type: str, record: DecodedRecord, position: Position) -> LogEvent:
    epoch = None if record.value is None else record.value["assignmentEpoch"]
    return TargetEpochWritten(position, group_type, epoch)


def _target(group_type: str, record: DecodedRecord, position: Position) -> LogEvent:
    """Return the event for a target. The target of a streams member is empty, because it has tasks.

    `group.members` shows the partitions of such a member as unknown.
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
    if record.value is None:
        return TopicsNamed(position, None)
    return TopicsNamed(position, {topic["topicId"]: topic["topicName"] for topic in record.value["topics"]})


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
