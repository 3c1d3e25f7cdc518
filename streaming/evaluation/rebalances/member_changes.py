"""Find the members that a rebalance changed.

A changed member joined, left or rejoined, or has a different subscription or different partitions.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streaming.evaluation.rebalances.partition_movement import member_key
from streaming.group.members import GroupMember, TopicPartitions
from streaming.group.snapshot import GroupSnapshot

JOINED, GONE, REJOINED, RESUBSCRIBED = "joined", "gone", "rejoined", "resubscribed"
"""Kinds of member change. `rejoined`: a static member returned with a new member id."""


class MemberChange(msgspec.Struct, frozen=True):
    """The change of one member in a rebalance. If the member left, `revoked` contains all of its partitions.

    `revoked` and `assigned` do not contain the partitions that the member has both before and after the rebalance. If
    the partitions before or after the rebalance are unknown, `revoked` and `assigned` are None. If a topic of a KIP-848
    group was created again, the old and the new partitions are different partitions. So both fields can
    contain `orders-0`.
    """

    member_id: str
    previous_member_id: str | None
    group_instance_id: str | None
    client_id: str
    client_host: str
    changes: tuple[str, ...]
    revoked: TopicPartitions | None
    assigned: TopicPartitions | None

    @property
    def key(self) -> str:
        """The identity of the member, before and after the rebalance (`rebalances`, rule 4)."""
        return self.member_id if self.group_instance_id is None else self.group_instance_id


def member_changes(
    members_before: Iterable[GroupMember], members_after: Iterable[GroupMember]
) -> tuple[MemberChange, ...]:
    """Return the members that the rebalance changed, sorted by `key`."""
    before = {member_key(member): member for member in members_before}
    after = {member_key(member): member for member in members_after}
    changes = (_change(before.get(key), after.get(key)) for key in sorted(before.keys() | after.keys()))
    return tuple(change for change in changes if change is not None)


def with_old_names(changes: Iterable[MemberChange], before: GroupSnapshot) -> tuple[MemberChange, ...]:
    """Replace topic ids in `revoked` by the names that the topics had before the rebalance."""
    if before.modern is None:
        return tuple(changes)
    names = before.modern.topic_names
    return tuple(
        change
        if change.revoked is None
        else msgspec.structs.replace(
            change, revoked=tuple(sorted((names.get(topic, topic), number) for topic, number in change.revoked))
        )
        for change in changes
    )


def _change(before: GroupMember | None, after: GroupMember | None) -> MemberChange | None:
    member = after or before
    if member is None:
        return None
    had, has = (() if one is None else one.target for one in (before, after))
    is_known = had is not None and has is not None
    changes = _kinds_of_change(before, after)
    if not changes and (not is_known or had == has):
        return None
    return MemberChange(
        member_id=member.member_id,
        previous_member_id=before.member_id if before and after and before.member_id != after.member_id else None,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        changes=changes,
        revoked=_only_in(had, has),
        assigned=_only_in(has, had),
    )


def _only_in(target: TopicPartitions | None, other: TopicPartitions | None) -> TopicPartitions | None:
    return None if target is None or other is None else tuple(sorted(set(target).difference(other)))


def _kinds_of_change(before: GroupMember | None, after: GroupMember | None) -> tuple[str, ...]:
    if before is None:
        return (JOINED,)
    if after is None:
        return (GONE,)
    is_known = before.subscribed_topics is not None and after.subscribed_topics is not None
    had, has = ((one.subscribed_topics, one.subscribed_regex) for one in (before, after))
    happened = {REJOINED: before.member_id != after.member_id, RESUBSCRIBED: is_known and had != has}
    return tuple(change for change, did_happen in happened.items() if did_happen)
