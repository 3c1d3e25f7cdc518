"""Describe groups of every type. Each group type has a different request.

The responses of the classic protocol, KIP-848, KIP-932 and KIP-1071 are converted to `DescribedGroup`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from kafka.errors import GroupIdNotFoundError
from kafka.protocol.admin import DescribeGroupsRequest

from streaming.events import CLASSIC, CONSUMER, SHARE, STREAMS
from streaming.group.listing import (
    DescribedGroup,
    DescribedMember,
    Description,
    GroupNotFound,
    HeldTask,
    HeldTopic,
)
from streaming.group.snapshot import DEAD
from streaming.protocol.primitives import uuid_text
from streaming.sampling.connection import Message
from streaming.sampling.coordinators import GroupApi, read_error_code
from streaming.sampling.messages import (
    ConsumerGroupDescribeRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)


def _read_group(group: Message, read: Callable[[Message], DescribedGroup]) -> Description:
    if group.error_code == GroupIdNotFoundError.errno:
        return GroupNotFound()
    if (refused := read_error_code(group.error_code)) is not None:
        return refused
    # Before version 6 of DescribeGroups (Kafka 4.0), a group that does not exist is returned as Dead, without an error.
    return GroupNotFound() if group.group_state == DEAD else read(group)


def _read_classic(group: Message) -> DescribedGroup:
    members = tuple(
        DescribedMember(
            member_id=member.member_id,
            client_id=member.client_id,
            client_host=member.client_host,
            group_instance_id=member.group_instance_id,
            subscription=bytes(member.member_metadata),
            assignment=bytes(member.member_assignment),
        )
        for member in group.members
    )
    return DescribedGroup(CLASSIC, group.group_state, group.protocol_type, group.protocol_data or None, members)


def _read_consumer(group: Message) -> DescribedGroup:
    members = tuple(
        _with_epoch(
            member,
            group_instance_id=member.instance_id,
            subscribed_topics=tuple(member.subscribed_topic_names),
            subscribed_regex=member.subscribed_topic_regex or None,
            held=_held_topics(member.assignment.topic_partitions),
            target=_held_topics(member.target_assignment.topic_partitions),
        )
        for member in group.members
    )
    return _with_epochs(CONSUMER, group, "consumer", group.assignor_name or None, members)


def _read_share(group: Message) -> DescribedGroup:
    members = tuple(
        _with_epoch(
            member,
            subscribed_topics=tuple(member.subscribed_topic_names),
            held=_held_topics(member.assignment.topic_partitions),
        )
        for member in group.members
    )
    return _with_epochs(SHARE, group, "share", group.assignor_name or None, members)


def _read_streams(group: Message) -> DescribedGroup:
    members = tuple(
        _with_epoch(
            member,
            group_instance_id=member.instance_id,
            active_tasks=tuple(
                HeldTask(tasks.subtopology_id, tuple(sorted(tasks.partitions)))
                for tasks in member.assignment.active_tasks
            ),
        )
        for member in group.members
    )
    return _with_epochs(STREAMS, group, "streams", None, members)


def _with_epoch(member: Message, **more: Any) -> DescribedMember:  # noqa: ANN401 - fields of one type of group
    """Return a member of a KIP-848, share or streams group. `more` contains fields that not all group types have."""
    return DescribedMember(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        **more,
    )


def _with_epochs(
    group_type: str,
    group: Message,
    protocol_type: str,
    protocol: str | None,
    members: tuple[DescribedMember, ...],
) -> DescribedGroup:
    return DescribedGroup(
        group_type, group.group_state, protocol_type, protocol, members, group.group_epoch, group.assignment_epoch
    )


def _held_topics(topics: Iterable[Message]) -> tuple[HeldTopic, ...]:
    held = (
        HeldTopic(uuid_text(topic.topic_id.bytes), topic.topic_name, tuple(sorted(topic.partitions)))
        for topic in topics
    )
    return tuple(sorted(held, key=lambda topic: topic.topic))


def _api(request: Message, ids_field: str, read: Callable[[Message], DescribedGroup]) -> GroupApi[Description]:
    return GroupApi(
        lambda ids: request(**{ids_field: list(ids)}, include_authorized_operations=False),
        lambda _ids, response: {group.group_id: _read_group(group, read) for group in response.groups},
    )


DESCRIBE_APIS: Mapping[str, GroupApi[Description]] = MappingProxyType(
    {
        CLASSIC: _api(DescribeGroupsRequest, "groups", _read_classic),
        CONSUMER: _api(ConsumerGroupDescribeRequest, "group_ids", _read_consumer),
        SHARE: _api(ShareGroupDescribeRequest, "group_ids", _read_share),
        STREAMS: _api(StreamsGroupDescribeRequest, "group_ids", _read_streams),
    }
)
"""For each group type, the request that describes groups of this type."""
