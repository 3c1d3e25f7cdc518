"""Values for tests of groups: members, metadata, events and snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streaming.events import (
    CONSUMER,
    CurrentWritten,
    EpochWritten,
    GroupEvent,
    GroupMetadataWritten,
    GroupTombstoned,
    LogEvent,
    MemberWritten,
    Position,
    TargetEpochWritten,
    TargetWritten,
    TopicMetadata,
    TopicsSampled,
)
from streaming.group.advance import advance
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import Assignment, ClassicMember, GroupMetadata, Subscription
from streaming.protocol.modern import IdPartitions, MemberAssignment, ModernMember

SECOND_MS = 1000
Held = Mapping[str, Sequence[int]]
"""Topic to partitions."""


def member(  # noqa: PLR0913 - the fields of a member
    member_id: str,
    held: Held | None = None,
    topics: Sequence[str] = ("orders",),
    *,
    instance_id: str | None = None,
    rack_id: str | None = None,
    user_data: bytes | None = None,
    owned: Sequence[tuple[str, int]] = (),
) -> ClassicMember:
    """Return a member that subscribes to `topics` and owns `held`."""
    assigned = tuple((topic, partition) for topic, numbers in (held or {}).items() for partition in numbers)
    return ClassicMember(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id=f"client-{member_id}",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=300_000,
        session_timeout_ms=45_000,
        subscription=Subscription(3, tuple(topics), user_data, tuple(owned), -1, rack_id),
        assignment=Assignment(3, assigned, None),
    )


def metadata(
    generation_id: int,
    members: Iterable[ClassicMember] = (),
    *,
    protocol: str | None = "range",
    protocol_type: str = "consumer",
) -> GroupMetadata:
    """Return a classic group's metadata."""
    listed = tuple(members)
    return GroupMetadata(
        group_id="g",
        protocol_type=protocol_type,
        generation_id=generation_id,
        protocol=protocol if listed else None,
        leader=listed[0].member_id if listed else None,
        current_state_timestamp_ms=None,
        members=listed,
        value_version=3,
    )


def at(offsets_topic_offset: int) -> Position:
    """Return a position. Its time is one second per offset."""
    return Position(0, offsets_topic_offset, offsets_topic_offset * SECOND_MS)


def written(
    offsets_topic_offset: int, generation_id: int, members: Iterable[ClassicMember] | None = None
) -> GroupEvent:
    """Return the record of a generation. By default it has one member."""
    return GroupMetadataWritten(
        at(offsets_topic_offset), metadata(generation_id, [member("m")] if members is None else members)
    )


def emptied(offsets_topic_offset: int, generation_id: int) -> GroupEvent:
    """Return the record of a group whose last member left."""
    return written(offsets_topic_offset, generation_id, ())


def tombstoned(offsets_topic_offset: int, *, append_of: int | None = None) -> GroupEvent:
    """Return a group's tombstone. It has the time of the record `append_of`, because both are in one append."""
    time = at(offsets_topic_offset if append_of is None else append_of).timestamp_ms
    return GroupTombstoned(Position(0, offsets_topic_offset, time))


def epoch(offsets_topic_offset: int, number: int = 3, group_type: str = CONSUMER) -> LogEvent:
    """Return the epoch of a group with server-side assignment."""
    return EpochWritten(at(offsets_topic_offset), group_type, number)


def target_epoch(offsets_topic_offset: int, number: int | None = 3, group_type: str = CONSUMER) -> LogEvent:
    """Return the epoch for which a group's targets were computed."""
    return TargetEpochWritten(at(offsets_topic_offset), group_type, number)


def modern_member(
    topics: Sequence[str] = ("orders",),
    *,
    regex: str | None = None,
    instance_id: str | None = None,
    server_assignor: str | None = None,
) -> ModernMember:
    """Return a KIP-848 member with the fields that it sends."""
    return ModernMember(
        instance_id, None, "client", "/127.0.0.1", tuple(topics), regex, 300_000, server_assignor, classic=None
    )


def joined(
    offsets_topic_offset: int, member_id: str = "m", member: ModernMember | None = None, group_type: str = CONSUMER
) -> LogEvent:
    """Return the record of a new member."""
    return MemberWritten(at(offsets_topic_offset), group_type, member_id, member or modern_member())


def left(offsets_topic_offset: int, member_id: str = "m", group_type: str = CONSUMER) -> Sequence[LogEvent]:
    """Return the three tombstones of a member. The last is at `offsets_topic_offset` + 2."""
    return (
        CurrentWritten(at(offsets_topic_offset), group_type, member_id, None),
        TargetWritten(at(offsets_topic_offset + 1), group_type, member_id, None),
        MemberWritten(at(offsets_topic_offset + 2), group_type, member_id, None),
    )


def target(
    offsets_topic_offset: int, member_id: str = "m", held: IdPartitions = (("id", (0, 1)),), group_type: str = CONSUMER
) -> LogEvent:
    """Return the target of a member."""
    return TargetWritten(at(offsets_topic_offset), group_type, member_id, held)


def current(  # noqa: PLR0913, PLR0917 - the fields of an assignment
    offsets_topic_offset: int,
    member_id: str = "m",
    held: IdPartitions = (("id", (0, 1)),),
    number: int = 3,
    state: str = "Stable",
    group_type: str = CONSUMER,
) -> LogEvent:
    """Return a member's current assignment at an epoch."""
    assignment = MemberAssignment(number, number - 1, state, held, ())
    return CurrentWritten(at(offsets_topic_offset), group_type, member_id, assignment)


def formed(offsets_topic_offset: int, number: int = 3, group_type: str = CONSUMER) -> Sequence[LogEvent]:
    """Return the five records of one member that joins alone and gets all.

    The last is at `offsets_topic_offset` + 4.
    """
    return (
        joined(offsets_topic_offset, group_type=group_type),
        epoch(offsets_topic_offset + 1, number, group_type),
        target(offsets_topic_offset + 2, group_type=group_type),
        target_epoch(offsets_topic_offset + 3, number, group_type),
        current(offsets_topic_offset + 4, number=number, group_type=group_type),
    )


def sampled(sampled_at_ms: int, /, **partitions: int | None) -> TopicsSampled:
    """Return partition counts in the form of feedback from the driver."""
    return TopicsSampled({topic: TopicMetadata(count, sampled_at_ms) for topic, count in partitions.items()})


def advanced(events: Iterable[GroupEvent], snapshot: GroupSnapshot | None = None) -> GroupSnapshot:
    """Return the snapshot after the events."""
    snapshot = snapshot or GroupSnapshot("g")
    for event in events:
        snapshot = advance(snapshot, event)
    return snapshot
