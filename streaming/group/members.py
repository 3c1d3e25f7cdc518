"""The members of a group in one form, whatever protocol they speak."""

from __future__ import annotations

import msgspec

from streaming.group.modern import ModernGroup
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import ClassicMember
from streaming.protocol.modern import IdPartitions, MemberAssignment

TopicPartitions = tuple[tuple[str, int], ...]


class GroupMember(msgspec.Struct, frozen=True):
    """One member: what it said, shall have and has. None is "no record told", never "nothing".

    Attributes:
        subscribed_topics: sorted; those of its regular expression as the coordinator resolved it, None if nobody tells.
        member_epoch: the epoch it reached; classic members have none of their own.
        owned: what it claimed to own when it joined (classic), before that generation's assignment was made.
        assigned: what it may consume. Under the classic protocol: what the leader gave it.
        target: what it shall have once the group is reconciled; classic members have their target at once.
        pending_revocation: what it was told to give up and still holds.

    Partitions are (topic, partition), sorted; a topic nobody can name is given by its id.

    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rack_id: str | None
    subscribed_topics: tuple[str, ...] | None
    subscribed_regex: str | None
    member_epoch: int | None
    owned: TopicPartitions | None
    assigned: TopicPartitions | None
    target: TopicPartitions | None
    pending_revocation: TopicPartitions | None

    @property
    def name(self) -> str:
        """What it is called."""
        return member_name(self.client_id, self.client_host, self.group_instance_id)


def member_name(client_id: str, client_host: str, group_instance_id: str | None) -> str:
    """Name a member as everybody does who speaks of it: by its instance id, else by client id and host.

    Member ids are new at every start: who looks for a program that comes and goes is not helped by them.

    >>> member_name("app-1", "/10.4.5.98", "pod-0"), member_name("app-1", "/10.4.5.98", None)
    ('pod-0', 'app-1@10.4.5.98')
    """
    if group_instance_id:
        return group_instance_id
    host = client_host.removeprefix("/")
    return f"{client_id}@{host}" if host else client_id


def members(snapshot: GroupSnapshot) -> tuple[GroupMember, ...]:
    """The group's members, sorted by member id."""
    if snapshot.modern is not None:
        return tuple(_modern_member(snapshot.modern, member_id) for member_id in sorted(snapshot.modern.members))
    if snapshot.classic is None:
        return ()
    return tuple(_classic_member(member) for member in sorted(snapshot.classic.members, key=_member_id))


def _member_id(member: ClassicMember) -> str:
    return member.member_id


def _classic_member(member: ClassicMember) -> GroupMember:
    subscription, assignment = member.subscription, member.assignment
    assigned = None if assignment is None else tuple(sorted(assignment.partitions))
    return GroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rack_id=subscription.rack_id if subscription else None,
        subscribed_topics=tuple(sorted(set(subscription.topics))) if subscription else None,
        subscribed_regex=None,
        member_epoch=None,
        owned=tuple(sorted(subscription.owned)) if subscription else None,
        assigned=assigned,
        target=assigned,
        pending_revocation=(),
    )


def _modern_member(group: ModernGroup, member_id: str) -> GroupMember:
    member, current, target = group.members[member_id], group.currents.get(member_id), group.targets.get(member_id)
    return GroupMember(
        member_id=member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rack_id=member.rack_id,
        subscribed_topics=group.topics_of(member_id),
        subscribed_regex=member.subscribed_regex,
        member_epoch=current.member_epoch if current else None,
        owned=None,
        assigned=_with_topic_names(group, current.assigned) if current else None,
        target=None if target is None else _with_topic_names(group, target),
        pending_revocation=_pending_revocation(group, current),
    )


def _pending_revocation(group: ModernGroup, current: MemberAssignment | None) -> TopicPartitions | None:
    if current is None:
        return ()
    return None if current.pending_revocation is None else _with_topic_names(group, current.pending_revocation)


def _with_topic_names(group: ModernGroup, topic_partitions: IdPartitions) -> TopicPartitions:
    names = group.topic_names
    return tuple(
        sorted(
            (names.get(topic_id, topic_id), partition)
            for topic_id, partitions in topic_partitions
            for partition in partitions
        )
    )
