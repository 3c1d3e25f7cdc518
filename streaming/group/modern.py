"""Replays the records of groups whose assignments the coordinator computes: consumer (KIP-848), share and streams.

Each record replaces one entry, in the same way as in the coordinator (`GroupMetadataManager.replay`). Compaction can
remove the record of an entry before the monitor reads it. Then the value of the entry is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import msgspec

from streaming.events import (
    CurrentWritten,
    DecodeFailed,
    EpochWritten,
    MemberWritten,
    ModernEvent,
    RegexResolved,
    TargetEpochWritten,
    TargetWritten,
    TopicsNamed,
)
from streaming.events.from_records import entry_name
from streaming.protocol.modern import STABLE_MEMBER, UNREVOKED_MEMBER, IdPartitions, MemberAssignment, ModernMember

MemberEvent = MemberWritten | TargetWritten | CurrentWritten

GROUP_EPOCH = "group_epoch"
UNREADABLE_RECORD = "unreadable_record"
MEMBER_METADATA = "member_metadata"
CURRENT_ASSIGNMENT = "current_assignment"
TARGET_ASSIGNMENT = "target_assignment"
RESOLVED_REGEX = "resolved_regex"


class ModernGroup(msgspec.Struct, frozen=True):
    """The entries of a group: its epochs, and the metadata, target and current assignment of each member.

    Attributes:
        members, targets, currents: metadata, target and current assignments by member id.
        regexes: for each subscribed regular expression, the topics that match it.
        topic_names: known names by topic id. The name of a deleted topic is kept until a different topic has the same
            name.
        strays: members that have a target or a current assignment, but no metadata, because compaction removed it.
        unreadable: entries whose last record cannot be decoded.
        unreconciled_members, unacknowledged_members: numbers of members that have not reached or acknowledged their
            target yet. They are stored, because counting all members for each record would be too slow.
        assignor: the assignor that the coordinator reported. It is used only if no member specifies an assignor.

    """

    epoch: int | None = None
    assignment_epoch: int | None = None
    members: dict[str, ModernMember] = {}
    targets: dict[str, IdPartitions] = {}
    currents: dict[str, MemberAssignment] = {}
    regexes: dict[str, tuple[str, ...]] = {}
    topic_names: dict[str, str] = {}
    strays: frozenset[str] = frozenset()
    unreadable: frozenset[tuple[str, str]] = frozenset()
    unreconciled_members: int = 0
    unacknowledged_members: int = 0
    assignor: str | None = None

    @property
    def shows_state(self) -> bool:
        """True if the entries are sufficient to compute the group's state."""
        return self.epoch is not None and not self.strays and not self.unreadable

    def subscribed_topics(self) -> tuple[str, ...]:
        """Return the sorted topics to which members subscribe, by name or by a resolved regular expression.

        If the topics of a regular expression are unknown, the result contains the topics in the member's target.
        """
        named = {topic for member in self.members.values() for topic in member.subscribed_topics}
        held = {
            topic_id for member_id in self._members_with_unknown_topics() for topic_id, _ in self.targets[member_id]
        }
        known = {self.topic_names[topic_id] for topic_id in held if topic_id in self.topic_names}
        return tuple(sorted(named.union(known, *self.regexes.values())))

    def topics_of(self, member_id: str) -> tuple[str, ...] | None:
        """Return the sorted topics to which a member subscribes. None if its regular expression has unknown topics."""
        member = self.members[member_id]
        if self._has_unknown_topics(member_id):
            return None
        return tuple(sorted({*member.subscribed_topics, *self.regexes.get(member.subscribed_regex or "", ())}))

    def _has_unknown_topics(self, member_id: str) -> bool:
        """Return True if the coordinator knows the topics of the member's regular expression, but the monitor does not.

        Until the coordinator resolves the expression, the member gets no partitions. So if the member has a target,
        the record with the topics was written. Compaction removed this record, or the monitor does not read the log.
        """
        regex = self.members[member_id].subscribed_regex
        return bool(regex) and regex not in self.regexes and bool(self.targets.get(member_id))

    def _members_with_unknown_topics(self) -> list[str]:
        if self.subscribed_regexes() <= self.regexes.keys():
            return []
        return [member_id for member_id in self.members if self._has_unknown_topics(member_id)]

    def server_assignor(self) -> str | None:
        """Return the assignor in use, or None if unknown (see `server_assignors`)."""
        named = self.server_assignors()
        return named[0] if len(named) == 1 else None

    def server_assignors(self) -> tuple[str, ...]:
        """Return the assignors that may be in use.

        Each member votes for the assignor that it specifies. `ModernGroup.computePreferredServerAssignor` can return
        any assignor with the highest number of votes. If no member votes, the broker uses the first assignor in its
        configuration. No record contains this assignor, so the result is the one that the coordinator reported.
        """
        votes = Counter(member.server_assignor for member in self.members.values() if member.server_assignor)
        if not votes:
            return () if self.assignor is None else (self.assignor,)
        most = max(votes.values())
        return tuple(sorted(name for name, count in votes.items() if count == most))

    def names_assignor(self) -> bool:
        """Return True if at least one member specifies an assignor. If not, only the coordinator knows the assignor."""
        return any(member.server_assignor for member in self.members.values())

    def subscribed_regexes(self) -> frozenset[str]:
        """Return the regular expressions that members subscribe to."""
        return frozenset(member.subscribed_regex for member in self.members.values() if member.subscribed_regex)

    def topic_ids(self) -> frozenset[str]:
        """Return the ids of all topics in the targets and current assignments, including pending revocations."""
        held = set(self.target_ids())
        for current in self.currents.values():
            held.update(topic_id for topic_id, _ in (*current.assigned, *(current.pending_revocation or ())))
        return frozenset(held)

    def target_ids(self) -> frozenset[str]:
        """Return the ids of all topics in the targets."""
        return frozenset(topic_id for target in self.targets.values() for topic_id, _ in target)

    def unnamed_target_ids(self) -> frozenset[str]:
        """Return all topic ids in the targets, except ids with a known name."""
        return self.target_ids().difference(self.topic_names)

    def unnamed_topic_ids(self) -> frozenset[str]:
        """Return all topic ids without a known name. Either the name is not known yet, or the topic was deleted."""
        return self.topic_ids().difference(self.topic_names)

    def not_known(self) -> tuple[str, ...]:
        """Return the kinds of entries that are missing in the group, in Kafka's terms.

        A current assignment can be missing because compaction removed it, or because the member is new and its current
        assignment comes later in the same append. The result never contains the assignment epoch, because a new group
        has none before its first target.
        """
        has_target = self.assignment_epoch is not None and self.assignment_epoch == self.epoch
        return tuple(
            what
            for what, is_missing in (
                (GROUP_EPOCH, self.epoch is None),
                (UNREADABLE_RECORD, bool(self.unreadable)),
                (MEMBER_METADATA, bool(self.strays)),
                (CURRENT_ASSIGNMENT, not self.currents.keys() >= self.members.keys()),
                (TARGET_ASSIGNMENT, has_target and not self.targets.keys() >= self.members.keys()),
                (RESOLVED_REGEX, not self.regexes.keys() >= self.subscribed_regexes()),
            )
            if is_missing
        )

    def regexes_are_unresolved_yet(self) -> bool:
        """Of the regular expressions without a record, return True if the coordinator has resolved none yet."""
        return not self._members_with_unknown_topics()


def replay(group: ModernGroup, event: ModernEvent | DecodeFailed) -> ModernGroup:
    """Return the group after one record. An undecodable entry is unreadable until the next record of the same entry."""
    if isinstance(event, DecodeFailed):
        return msgspec.structs.replace(group, unreadable=group.unreadable | {(event.entry, event.entry_of)})
    after = _apply(group, event)
    return after if not group.unreadable else _clear_unreadable(after, event)


def _clear_unreadable(group: ModernGroup, event: ModernEvent) -> ModernGroup:
    """Remove the record's entry from `unreadable`. If the record deletes a member, remove all entries of the member."""
    reported = {entry_name(event)}
    if isinstance(event, MemberWritten) and event.member is None:
        reported |= {entry for entry in group.unreadable if entry[1] == event.member_id}
    return msgspec.structs.replace(group, unreadable=group.unreadable - reported)


def _apply(group: ModernGroup, event: ModernEvent) -> ModernGroup:
    if isinstance(event, EpochWritten):
        return msgspec.structs.replace(group, epoch=event.epoch)
    if isinstance(event, TargetEpochWritten):
        return recount_members(msgspec.structs.replace(group, assignment_epoch=event.epoch))
    if isinstance(event, RegexResolved):
        return msgspec.structs.replace(group, regexes=_put(group.regexes, event.regex, event.topics))
    if isinstance(event, TopicsNamed):
        return msgspec.structs.replace(group, topic_names={**group.topic_names, **(event.names or {})})
    after = _with_strays(_with_member(group, event), event.member_id)
    return _recount_member(group, after, event.member_id)


def _with_member(group: ModernGroup, event: MemberEvent) -> ModernGroup:
    if isinstance(event, MemberWritten):
        # The coordinator may have reported this member's assignor. So remove it, and ask the coordinator again.
        names_assignor = event.member is not None and event.member.server_assignor
        return msgspec.structs.replace(
            group,
            members=_put(group.members, event.member_id, event.member),
            assignor=None if names_assignor else group.assignor,
        )
    if isinstance(event, TargetWritten):
        return msgspec.structs.replace(group, targets=_put(group.targets, event.member_id, event.partitions))
    return msgspec.structs.replace(group, currents=_put(group.currents, event.member_id, event.current))


def _with_strays(group: ModernGroup, member_id: str) -> ModernGroup:
    has_something = member_id in group.targets or member_id in group.currents
    is_stray = has_something and member_id not in group.members
    if is_stray == (member_id in group.strays):
        return group
    return msgspec.structs.replace(group, strays=group.strays ^ {member_id})


Entry = TypeVar("Entry")


def _put(entries: dict[str, Entry], key: str, entry: Entry | None) -> dict[str, Entry]:
    if entry is not None:
        return {**entries, key: entry}
    return {other: kept for other, kept in entries.items() if other != key} if key in entries else entries


def recount_members(group: ModernGroup) -> ModernGroup:
    """Return the group with new counts of the unreconciled and unacknowledged members."""
    return msgspec.structs.replace(
        group,
        unreconciled_members=sum(not is_reconciled(group, member_id) for member_id in group.members),
        unacknowledged_members=sum(not _has_acknowledged(group, member_id) for member_id in group.members),
    )


def _recount_member(before: ModernGroup, after: ModernGroup, member_id: str) -> ModernGroup:
    def change(is_done: Callable[[ModernGroup, str], bool]) -> int:
        was_counted = member_id in before.members and not is_done(before, member_id)
        return (member_id in after.members and not is_done(after, member_id)) - was_counted

    unreconciled, unacknowledged = change(is_reconciled), change(_has_acknowledged)
    if not unreconciled and not unacknowledged:
        return after
    return msgspec.structs.replace(
        after,
        unreconciled_members=after.unreconciled_members + unreconciled,
        unacknowledged_members=after.unacknowledged_members + unacknowledged,
    )


def is_reconciled(group: ModernGroup, member_id: str) -> bool:
    """Return True if the member has reached its target assignment (`ModernGroupMember.isReconciledTo`)."""
    current = group.currents.get(member_id)
    return current is not None and current.state == STABLE_MEMBER and current.member_epoch == group.assignment_epoch


def _has_acknowledged(group: ModernGroup, member_id: str) -> bool:
    """Return True if the member is at the target's epoch, or if it revokes partitions because of the target."""
    current = group.currents.get(member_id)
    return current is not None and (current.member_epoch == group.assignment_epoch or current.state == UNREVOKED_MEMBER)


def is_assigning(group: ModernGroup) -> bool:
    """Return True if the targets are older than the group epoch. Before the first target, their epoch counts as 0."""
    return (group.epoch or 0) > (group.assignment_epoch or 0)
