"""Define the events. Only events can change the state of a group.

There are two kinds of events:

- Records of the group coordinator. Each record contains its position in `__consumer_offsets`. So a record that is read
  twice changes the state only once. In the polling mode, the monitor uses responses of coordinators instead of records.
- External facts, which the Spark driver sends to the state of a group, for example topic metadata.

Events are sent between processes. So each event has a stable encoding. `from_records.py` converts records to events.
The package may import only `protocol`.
"""

from __future__ import annotations

import msgspec

from streaming.events.compression import compressed_if_large, decompressed_if_large
from streaming.protocol.classic import GroupMetadata
from streaming.protocol.modern import IdPartitions, MemberAssignment, ModernMember

OFFSETS_TOPIC = "__consumer_offsets"
"""The topic in which the group coordinator stores its records."""

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""Group types, named as in ListGroups: `classic`, `consumer` (KIP-848), `share` (KIP-932), `streams` (KIP-1071)."""


POLLED_PARTITION = -1
"""The partition number in the positions of coordinators' responses (polling mode)."""


class Position(msgspec.Struct, frozen=True, order=True):
    """The position of a record in `__consumer_offsets`, and its timestamp, which the coordinator sets."""

    offsets_topic_partition: int
    offsets_topic_offset: int
    timestamp_ms: int


class GroupMetadataWritten(msgspec.Struct, frozen=True, tag="group_metadata"):
    """A GroupMetadata record: a classic group completed a rebalance, a static member rejoined, or all members left."""

    position: Position
    metadata: GroupMetadata


class ModernDescription(msgspec.Struct, frozen=True):
    """A coordinator's full description of a consumer, share or streams group.

    The keys are member ids; the keys of `names` are topic ids. Members of a share group have no targets.
    """

    epoch: int
    assignment_epoch: int
    assignor: str | None
    members: dict[str, ModernMember]
    targets: dict[str, IdPartitions]
    currents: dict[str, MemberAssignment]
    names: dict[str, str]


class GroupDescribed(msgspec.Struct, frozen=True, tag="group_described"):
    """A coordinator's full description of a group. One of `classic` and `modern` is None.

    A description has no position in a log, so `offsets_topic_partition` is POLLED_PARTITION. `offsets_topic_offset` is
    a number that increases with each response. `timestamp_ms` is the start time of the poll.
    """

    position: Position
    group_type: str
    state: str
    classic: GroupMetadata | None = None
    modern: ModernDescription | None = None


class GroupTombstoned(msgspec.Struct, frozen=True, tag="group_tombstone"):
    """The coordinator deleted a group's metadata. The group ended, or its next record shows a different type."""

    position: Position
    group_type: str = CLASSIC


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
    """The epoch for which the targets of a group's members were computed. None if the group was deleted."""

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
    """The topics that match a regular expression, or None if no member subscribes to the expression any more."""

    position: Position
    regex: str
    topics: tuple[str, ...] | None


class TopicsNamed(msgspec.Struct, frozen=True, tag="topics_named"):
    """The names of a group's topics by topic id. None if the group was deleted.

    Only coordinators up to Kafka 4.0 write the names of topics.
    """

    position: Position
    names: dict[str, str] | None


class TopicMetadata(msgspec.Struct, frozen=True):
    """The metadata of a topic in a sample.

    `partitions` is None if the brokers did not know the topic. `racks` has the racks of the replicas of each partition.
    `topic_id` is None if the brokers have no topic ids, or if the group does not need the id. `since_ms` is the time of
    the first sample that showed this number of partitions. `racks_since_ms` is the time of the first sample that showed
    these racks. Only metadata in the state of a group has these two times.
    """

    partitions: int | None
    sampled_at_ms: int
    racks: tuple[tuple[str | None, ...], ...] = ()
    topic_id: str | None = None
    since_ms: int | None = None
    racks_since_ms: int | None = None

    @property
    def known_since_ms(self) -> int:
        """All samples from this time to `sampled_at_ms` show the same number of partitions."""
        return self.sampled_at_ms if self.since_ms is None else self.since_ms

    @property
    def racks_known_since_ms(self) -> int:
        """All samples from this time to `sampled_at_ms` show the same racks."""
        return self.sampled_at_ms if self.racks_since_ms is None else self.racks_since_ms


class TopicsSampled(msgspec.Struct, frozen=True, tag="topics_sampled"):
    """Metadata of the topics that a group subscribes to.

    If the metadata in the group's state has a later time than the driver's last sample, the driver's clock was ahead.
    Then `is_time_corrected` is True, and the event replaces the metadata in the group's state.
    """

    topics: dict[str, TopicMetadata]
    is_time_corrected: bool = False


class SkipSettled(msgspec.Struct, frozen=True, tag="skip_settled"):
    """Shows whether the generations before the record at `offsets_topic_offset` were failed rebalances.

    These generations have no record. If `log_was_whole` is True, the monitor read every offset since the group's
    previous record. So compaction removed no record, and members joined but never synced. Otherwise, the cause is
    unknown.
    """

    offsets_topic_offset: int
    log_was_whole: bool


class GroupVanished(msgspec.Struct, frozen=True, tag="group_vanished"):
    """The group no longer exists on the brokers, but the monitor did not read its tombstone.

    The event is ignored if the group has a record after `after_offset` in `offsets_topic_partition`. This field
    is None if an earlier version of the monitor sent the event.
    """

    after_offset: int
    listed_at_ms: int
    offsets_topic_partition: int | None = None


class GroupForgotten(msgspec.Struct, frozen=True, tag="group_forgotten"):
    """The state of a group that was deleted a long time ago can be removed."""


class AssignorReported(msgspec.Struct, frozen=True, tag="assignor_reported"):
    """The assignor that the coordinator reported for a KIP-848 group at an epoch.

    The event is ignored if a member specifies an assignor. It is also ignored if the group now has a different epoch,
    because a new member may specify an assignor at that epoch.
    """

    epoch: int
    assignor: str


class DecodeFailed(msgspec.Struct, frozen=True, tag="record_unreadable"):
    """The value of a membership record could not be decoded, so a part of the group's state is now unknown.

    The record is in the quarantine table. `entry` and `entry_of` identify the unknown part (`entry_name`).
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
"""Events with a position: records, and responses of coordinators in the polling mode."""

ExternalFact = TopicsSampled | SkipSettled | GroupVanished | GroupForgotten | AssignorReported
GroupEvent = LogEvent | ExternalFact

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(GroupEvent)


def encode_event(event: GroupEvent) -> bytes:
    """Encode an event as MessagePack, with a tag for its kind. A large event is compressed. The encoding is stable."""
    return compressed_if_large(_ENCODER.encode(event))


def decode_event(encoded: bytes) -> GroupEvent:
    """Decode an event that `encode_event` encoded. Raises `msgspec.DecodeError`."""
    event: GroupEvent = _DECODER.decode(decompressed_if_large(encoded))
    return event
