"""Convert a coordinator's description of a group to an event.

A description does not contain the generation, leader, timeouts and times of a classic group. A description of a KIP-848
group does not contain the members' pending revocations. Such unknown values are None. The subscription or assignment of
a classic member is also None if its bytes cannot be decoded. `described_event` also returns these bytes, and the
monitor writes them to the table `quarantine`.
"""

from __future__ import annotations

from collections.abc import Iterable

from streaming.events import CLASSIC, STREAMS, GroupDescribed, ModernDescription, Position
from streaming.group.listing import DescribedGroup, DescribedMember, HeldTopic
from streaming.group.snapshot import REBALANCING
from streaming.protocol.classic import (
    ClassicMember,
    GroupMetadata,
    Refusal,
    member_assignment,
    member_subscription,
)
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from streaming.protocol.modern import (
    STABLE_MEMBER,
    UNKNOWN_MEMBER_STATE,
    IdPartitions,
    MemberAssignment,
    ModernMember,
)


def described_event(
    group_id: str, group: DescribedGroup, position: Position
) -> tuple[GroupDescribed, tuple[Refusal, ...]]:
    """Return the event for a description, and the undecodable bytes of the members."""
    if group.group_type == CLASSIC:
        refusals: list[Refusal] = []
        metadata = _classic(group_id, group, refusals)
        return GroupDescribed(position, CLASSIC, group.state, classic=metadata), tuple(refusals)
    return GroupDescribed(position, group.group_type, group.state, modern=_modern(group)), ()


def _classic(group_id: str, group: DescribedGroup, refusals: list[Refusal]) -> GroupMetadata:
    is_readable = group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.state not in REBALANCING
    members = (
        _classic_member(member, f"members[{index}]", refusals, is_readable=is_readable)
        for index, member in enumerate(group.members)
    )
    return GroupMetadata(
        group_id=group_id,
        protocol_type=group.protocol_type,
        generation_id=None,
        protocol=group.protocol,
        leader=None,
        current_state_timestamp_ms=None,
        members=tuple(sorted(members, key=lambda member: member.member_id)),
        value_version=None,
    )


def _classic_member(
    member: DescribedMember, place: str, refusals: list[Refusal], *, is_readable: bool
) -> ClassicMember:
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=None,
        session_timeout_ms=None,
        subscription=member_subscription(member.subscription, place, refusals) if is_readable else None,
        assignment=member_assignment(member.assignment, place, refusals) if is_readable else None,
    )


def _modern(group: DescribedGroup) -> ModernDescription:
    """Streams members own tasks, so their assignments are empty. `group.members` shows their partitions as unknown."""
    if group.group_epoch is None or group.assignment_epoch is None:
        raise ValueError(f"the description of a {group.group_type} group needs its group and assignment epochs")
    is_streams = group.group_type == STREAMS
    held = [topic for member in group.members for topic in (*(member.held or ()), *(member.target or ()))]
    targets = {
        member.member_id: _by_id(member.target or ())
        for member in group.members
        if member.target is not None or is_streams
    }
    return ModernDescription(
        epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=group.protocol,
        members={member.member_id: _modern_member(member) for member in group.members},
        targets=targets,
        currents={
            member.member_id: _current(group.assignment_epoch, member, member.member_epoch)
            for member in group.members
            if member.member_epoch is not None
        },
        names={topic.topic_id: topic.topic for topic in held},
    )


def _modern_member(member: DescribedMember) -> ModernMember:
    return ModernMember(
        group_instance_id=member.group_instance_id,
        rack_id=member.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topics=tuple(sorted(member.subscribed_topics or ())),
        subscribed_regex=member.subscribed_regex,
        rebalance_timeout_ms=None,
        server_assignor=None,
        classic=None,
    )


def _current(assignment_epoch: int, member: DescribedMember, member_epoch: int) -> MemberAssignment:
    """The state is Stable if the member owns exactly its target partitions at the assignment epoch, else Unknown."""
    has_target = member.target is not None and member.held == member.target
    is_stable = has_target and member_epoch == assignment_epoch
    return MemberAssignment(
        member_epoch=member_epoch,
        previous_member_epoch=None,
        state=STABLE_MEMBER if is_stable else UNKNOWN_MEMBER_STATE,
        assigned=_by_id(member.held or ()),
        pending_revocation=None,
    )


def _by_id(topics: Iterable[HeldTopic]) -> IdPartitions:
    return tuple(sorted((topic.topic_id, topic.partitions) for topic in topics))
