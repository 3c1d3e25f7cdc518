"""What a rebalance changed for each member: who came and went, and which partitions each has got or lost."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streaming.evaluation.rebalances.partition_movement import member_key
from streaming.group.members import GroupMember, TopicPartitions

JOINED, GONE, REJOINED, RESUBSCRIBED = "joined", "gone", "rejoined", "resubscribed"
"""What a member did. `rejoined`: a static member under a new member id."""


class MemberChange(msgspec.Struct, frozen=True):
    """What a rebalance changed for one member. A member that is gone has `revoked` what it had.

    `revoked` and `assigned` are net: what an eager member gives up only to get it back is in neither.
    """

    member_id: str
    previous_member_id: str | None
    group_instance_id: str | None
    client_id: str
    client_host: str
    changes: tuple[str, ...]
    revoked: TopicPartitions
    assigned: TopicPartitions

    @property
    def key(self) -> str:
        """By what it is the same member before and after (`rebalances`, rule 4)."""
        return self.member_id if self.group_instance_id is None else self.group_instance_id


def member_changes(then: Iterable[GroupMember], now: Iterable[GroupMember]) -> tuple[MemberChange, ...]:
    """Members that came, went, or have other partitions than before, sorted by `key`."""
    before = {member_key(member): member for member in then}
    after = {member_key(member): member for member in now}
    changes = (_change(before.get(key), after.get(key)) for key in sorted(before.keys() | after.keys()))
    return tuple(change for change in changes if change is not None)


def _change(was: GroupMember | None, now: GroupMember | None) -> MemberChange | None:
    member = now or was
    if member is None:
        return None
    had, has = _held_before_and_after(was, now)
    changes = _what_it_did(was, now)
    if not changes and had == has:
        return None
    return MemberChange(
        member_id=member.member_id,
        previous_member_id=was.member_id if was and now and was.member_id != now.member_id else None,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        changes=changes,
        revoked=tuple(sorted(set(had).difference(has))),
        assigned=tuple(sorted(set(has).difference(had))),
    )


def _held_before_and_after(was: GroupMember | None, now: GroupMember | None) -> tuple[TopicPartitions, TopicPartitions]:
    """What the member had and has; nothing where one of them is unknown, for nothing can be said to be revoked then."""
    held = [() if one is None else one.target for one in (was, now)]
    return ((), ()) if None in held else (held[0] or (), held[1] or ())


def _what_it_did(was: GroupMember | None, now: GroupMember | None) -> tuple[str, ...]:
    if was is None:
        return (JOINED,)
    if now is None:
        return (GONE,)
    is_known = was.subscribed_topics is not None and now.subscribed_topics is not None
    resubscribed = is_known and (
        (was.subscribed_topics, was.subscribed_regex) != (now.subscribed_topics, now.subscribed_regex)
    )
    return (
        *((REJOINED,) if was.member_id != now.member_id else ()),
        *((RESUBSCRIBED,) if resubscribed else ()),
    )
