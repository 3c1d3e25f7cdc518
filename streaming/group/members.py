"""Converts the members of a group to `GroupMember`, the same type for all group protocols."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

import msgspec

from streaming.events import STREAMS
from streaming.group.claims import member_claim
from streaming.group.modern import ModernGroup
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import ClassicMember
from streaming.protocol.modern import IdPartitions

TopicPartitions = tuple[tuple[str, int], ...]


class GroupMember(msgspec.Struct, frozen=True):
    """One member, with its subscription, target and current assignment. None means unknown. It never means empty.

    Attributes:
        subscribed_topics: the sorted topics, including the topics that match the member's regular expression. None if
            the topics are unknown.
        member_epoch: the epoch that the member has reached. None for classic members.
        owned: for a classic member, the partitions that it claimed when it joined this generation (`group.claims`).
        assigned: the partitions that the member may consume. For a classic member, the leader computed them.
        target: the partitions that the member gets when the group is reconciled (a classic member: immediately).
        pending_revocation: the partitions that the member still owns and must revoke.
        session_timeout_ms: None if the source is DescribeGroups. Also None if the member uses the KIP-848 protocol,
            where the group's configuration sets the timeout.
        rebalance_timeout_ms: None in share groups. Also None if the source is DescribeGroups.

    All partitions are sorted (topic, partition) pairs. The topic id replaces an unknown topic name.

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
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None

    @property
    def held(self) -> TopicPartitions | None:
        """The partitions that the member owns now: `assigned` and `pending_revocation`. None if `assigned` is None.

        If `pending_revocation` is unknown, the member can own more partitions (`partitions_with_hidden_owner`).
        """
        if self.assigned is None or not self.pending_revocation:
            return self.assigned
        return tuple(sorted({*self.assigned, *self.pending_revocation}))

    @property
    def name(self) -> str:
        """The name that all output shows for this member."""
        return member_name(self.client_id, self.client_host, self.group_instance_id)


def member_name(client_id: str, client_host: str, group_instance_id: str | None) -> str:
    """Return the name of a member: the instance id if it exists, otherwise the client id and the host.

    The member id is not used, because a client gets a new member id at every start.

    >>> member_name("app-1", "/10.4.5.98", "pod-0"), member_name("app-1", "/10.4.5.98", None)
    ('pod-0', 'app-1@10.4.5.98')
    """
    if group_instance_id:
        return group_instance_id
    host = host_name(client_host)
    return f"{client_id}@{host}" if host else client_id


def host_name(client_host: str) -> str:
    """Return the name of a client host, as all outputs show it. Kafka writes a slash before the address.

    >>> host_name("/10.4.5.98")
    '10.4.5.98'
    """
    return client_host.removeprefix("/")


def members(snapshot: GroupSnapshot) -> tuple[GroupMember, ...]:
    """Return the group's members, sorted by member id."""
    if snapshot.modern is not None:
        convert = _streams_member if snapshot.group_type == STREAMS else _modern_member
        found = tuple(convert(snapshot.modern, member_id) for member_id in sorted(snapshot.modern.members))
        return tuple(map(_without_regex_topics, found)) if snapshot.is_polled else found
    if snapshot.classic is None:
        return ()
    by_id = sorted(snapshot.classic.members, key=attrgetter("member_id"))
    return tuple(_classic_member(member, snapshot.protocol) for member in by_id)


def partitions_with_hidden_owner(each: Iterable[GroupMember]) -> frozenset[tuple[str, int]]:
    """Return the target partitions that no member is known to own, if the pending revocations are unknown.

    A member of the group may still have to revoke these partitions. In the polling mode, no response contains the
    pending revocations. In the log, they are known, so the result is empty.
    """
    each = tuple(each)
    if all(member.pending_revocation is not None for member in each):
        return frozenset()
    targets = frozenset(partition for member in each for partition in member.target or ())
    return targets.difference(*(member.held or () for member in each))


def leader(snapshot: GroupSnapshot) -> GroupMember | None:
    """Return the member that computed the assignment of a classic group. None if the leader is unknown.

    In a KIP-848 group, the coordinator computes the assignment. DescribeGroups does not return the leader.
    """
    classic = snapshot.classic
    leaders = [member for member in classic.members if member.member_id == classic.leader] if classic else []
    return _classic_member(leaders[0], snapshot.protocol) if leaders else None


def _classic_member(member: ClassicMember, strategy: str | None) -> GroupMember:
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
        owned=tuple(sorted(member_claim(subscription, strategy).partitions)) if subscription else None,
        assigned=assigned,
        target=assigned,
        pending_revocation=(),
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
    )


def _modern_member(group: ModernGroup, member_id: str) -> GroupMember:
    member, current, target = group.members[member_id], group.currents.get(member_id), group.targets.get(member_id)
    pending_revocation = current.pending_revocation if current else ()
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
        pending_revocation=None if pending_revocation is None else _with_topic_names(group, pending_revocation),
        session_timeout_ms=member.classic.session_timeout_ms if member.classic else None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
    )


def _streams_member(group: ModernGroup, member_id: str) -> GroupMember:
    """Return a member of a streams group, whose topics and partitions are unknown.

    Records and descriptions contain tasks. Only the topology of the group shows which partitions belong to a task.
    """
    member = _modern_member(group, member_id)
    return msgspec.structs.replace(member, subscribed_topics=None, assigned=None, target=None, pending_revocation=None)


def _without_regex_topics(member: GroupMember) -> GroupMember:
    """Return a member from a coordinator's response. Responses never contain the topics of a regular expression."""
    return msgspec.structs.replace(member, subscribed_topics=None) if member.subscribed_regex else member


def _with_topic_names(group: ModernGroup, topic_partitions: IdPartitions) -> TopicPartitions:
    names = group.topic_names
    return tuple(
        sorted(
            (names.get(topic_id, topic_id), partition)
            for topic_id, partitions in topic_partitions
            for partition in partitions
        )
    )
