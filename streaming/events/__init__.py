"""What happened, as values: the only things that may change what we know of a group.

Two kinds of facts become events. Records the group coordinator wrote (each with its position in `__consumer_offsets`,
so that a fact read twice counts once), and facts the driver learned elsewhere and hands back (topic metadata; whether
a stretch of the log was whole). Both are plain values with a stable encoded form: they cross process borders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from streaming.protocol import DecodedRecord, RecordType
from streaming.protocol.classic import GroupMetadata, group_metadata

OFFSETS_TOPIC = "__consumer_offsets"
"""The group coordinator's own topic, the log of all that happens to groups."""


class Position(msgspec.Struct, frozen=True, order=True):
    """Where in `__consumer_offsets` a record stands, and the coordinator's time on it."""

    kafka_partition: int
    kafka_offset: int
    timestamp_ms: int


class GroupMetadataWritten(msgspec.Struct, frozen=True, tag="group_metadata"):
    """A classic group's GroupMetadata record: a generation was synced, a static member rejoined, or all left."""

    position: Position
    metadata: GroupMetadata


class GroupTombstoned(msgspec.Struct, frozen=True, tag="group_tombstone"):
    """A group's metadata was deleted."""

    position: Position


class GroupSeen(msgspec.Struct, frozen=True, tag="group_seen"):
    """A group of a type that is recognised but not evaluated yet (KIP-848 consumer, share, streams)."""

    position: Position
    group_type: str
    epoch: int


class TopicMetadata(msgspec.Struct, frozen=True):
    """A topic's partition count as sampled; `partitions` None says that the broker knew no such topic then."""

    partitions: int | None
    sampled_at_ms: int
    racks: tuple[tuple[str | None, ...], ...] = ()


class TopicsSampled(msgspec.Struct, frozen=True, tag="topics_sampled"):
    """Metadata of topics that a group subscribes to, handed back by the driver."""

    topics: dict[str, TopicMetadata]


class SkipSettled(msgspec.Struct, frozen=True, tag="skip_settled"):
    """The answer to a generation number that was skipped before the record at `kafka_offset`.

    `log_was_whole` True: every offset in between was read, so no record was compacted away and the skipped generations
    were joins that never synced. False: records are missing there, and nobody can know.
    """

    kafka_offset: int
    log_was_whole: bool


class GroupForgotten(msgspec.Struct, frozen=True, tag="group_forgotten"):
    """A group has been dead for so long that its totals need not be kept any more."""


LogEvent = GroupMetadataWritten | GroupTombstoned | GroupSeen
HandedBackEvent = TopicsSampled | SkipSettled | GroupForgotten
GroupEvent = LogEvent | HandedBackEvent

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(GroupEvent)

_GROUP_TYPES = {
    RecordType.CONSUMER_GROUP_METADATA: "consumer",
    RecordType.SHARE_GROUP_METADATA: "share",
    RecordType.STREAMS_GROUP_METADATA: "streams",
}


def encode_event(event: GroupEvent) -> bytes:
    """Encode an event in its stable form (MessagePack, tagged by kind)."""
    return _ENCODER.encode(event)


def decode_event(encoded: bytes) -> GroupEvent:
    """Decode the event of `encode_event`; raises `msgspec.DecodeError` on anything else."""
    event: GroupEvent = _DECODER.decode(encoded)
    return event


def log_event(record: DecodedRecord, position: Position) -> tuple[str, LogEvent] | None:
    """The (group id, event) a membership record stands for; None for records that say nothing about membership yet.

    Raises `streaming.protocol.UndecodableRecord` where a classic member's embedded bytes are beyond reading.
    """
    record_type = RecordType(record.key_type)
    if record_type is RecordType.GROUP_METADATA:
        group_id: str = record.key["group"]
        if record.value is None:
            return group_id, GroupTombstoned(position)
        return group_id, GroupMetadataWritten(position, _one_entry_a_member(group_metadata(record)))
    if record_type in _GROUP_TYPES:
        return _other_group_event(record.key["groupId"], _GROUP_TYPES[record_type], record.value, position)
    return None


def _one_entry_a_member(metadata: GroupMetadata) -> GroupMetadata:
    """Keep the last entry of each member id, as the coordinator does when it replays the record (`ClassicGroup.add`).

    No coordinator writes a member twice; whoever else does must not stop the judgement of all other groups.
    """
    last = {member.member_id: member for member in metadata.members}
    return metadata if len(last) == len(metadata.members) else replace(metadata, members=tuple(last.values()))


def _other_group_event(
    group_id: str,
    group_type: str,
    value: Mapping[str, Any] | None,
    position: Position,
) -> tuple[str, LogEvent]:
    if value is None:
        return group_id, GroupTombstoned(position)
    return group_id, GroupSeen(position, group_type, value["epoch"])
