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
    AssignorReported,
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
        members: metadata by member id.
        targets: target assignments by member id.
        currents: current assignments by member id.
        regexes: for each subscribed regular expression, the topics that match it.
        topic_names: known names by topic id. The name of a deleted topic is kept until a different topic has the same
            name.
        strays: members that have a target or a current assignment, but no metadata. Compaction removed the metadata.
        unreadable: entries whose last record cannot be decoded.
        unreconciled_members: number of members that have not reached their target yet.
        unacknowledged_members: number of members that have not acknowledged their target yet. Both numbers are stored,
            because it would be too slow to count all members again for each record (`recount_members`).
        assignor: the assignor that the coordinator reported. No record contains this assignor. The reported assignor is
            used only if no member specifies an assignor.

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

        The coordinator resolves an expression some time after the first member subscribes with the expression. Before
        that time, the member gets no partitions. So if the member has a target, the coordinator has already written the
        record with the topics. This record is missing if compaction removed it, or if the monitor does not read the
        log.
        """
        regex = self.members[member_id].subscribed_regex
        return bool(regex) and regex not in self.regexes and bool(self.targets.get(member_id))

    def _members_with_unknown_topics(self) -> list[str]:
        if self.subscribed_regexes() <= self.regexes.keys():
            return []
        return [member_id for member_id in self.members if self._has_unknown_topics(member_id)]

    def server_assignor(self) -> str | None:
        """Return the assignor in use, or None if unknown.

        The assignor is unknown if no member specifies an assignor, and the coordinator has not reported an assignor.
        The assignor is also unknown if several assignors share the highest number of votes.
        """
        named = self.server_assignors()
        return named[0] if len(named) == 1 else None

    def server_assignors(self) -> tuple[str, ...]:
        """Return the assignors that may be in use.

        Each member votes for the assignor that it specifies. The result contains the assignors with the highest number
        of votes. If several assignors share this number, `ModernGroup.computePreferredServerAssignor` can return any of
        them. If no member votes, the broker uses the first assignor in its configuration. No record contains this
        assignor. So in this case, the result is the assignor that the coordinator reported.
        """
        votes = Counter(member.server_assignor for member in self.members.values() if member.server_assignor)
        if not votes:
            return () if self.assignor is None else (self.assignor,)
        most = max(votes.values())
        return tuple(sorted(name for name, count in votes.items() if count == most))

    def names_assignor(self) -> bool:
        """Return True if at least one member specifies an assignor.

        If no member specifies an assignor, only the coordinator knows the assignor in use.
        """
        return any(member.server_assignor for member in self.members.values())

    def subscribed_regexes(self) -> frozenset[str]:
        """Return the regular expressions that members subscribe to."""
        return frozenset(member.subscribed_regex for member in self.members.values() if member.subscribed_regex)

    def topic_ids(self) -> frozenset[str]:
        """Return the ids of all topics in the targets and current assignments, including pending revocations."""
        held = {topic_id for target in self.targets.values() for topic_id, _ in target}
        for current in self.currents.values():
            held.update(topic_id for topic_id, _ in (*current.assigned, *(current.pending_revocation or ())))
        return frozenset(held)

    def unnamed_target_ids(self) -> frozenset[str]:
        """Return all topic ids in the targets, except ids with a known name."""
        return frozenset(topic_id for target in self.targets.values() for topic_id, _ in target).difference(
            self.topic_names
        )

    def unnamed_topic_ids(self) -> frozenset[str]:
        """Return all topic ids without a known name. Either the name is not known yet, or the topic was deleted."""
        return self.topic_ids().difference(self.topic_names)

    def not_known(self) -> tuple[str, ...]:
        """Return the kinds of entries that are missing in the group, in Kafka's terms. The result can be empty.

        The group's state is unknown if the group epoch or the metadata of a member is missing, or if a record is
        undecodable. A current assignment can be missing for two reasons: compaction removed it, or the member is new
        and its current assignment comes later in the same append. The result never contains the assignment epoch,
        because a new group has none before its first target.
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
        """Return True if the coordinator has resolved none of the regular expressions without a record.

        Members that subscribe to such an expression have no targets.
        """
        return not self._members_with_unknown_topics()


def replay(group: ModernGroup, event: ModernEvent | DecodeFailed) -> ModernGroup:
    """Return the group after one record.

    If the record cannot be decoded, its entry is unreadable until the next record of the same entry.
    """
    if isinstance(event, DecodeFailed):
        return msgspec.structs.replace(group, unreadable=group.unreadable | {(event.entry, event.entry_of)})
    after = _apply(group, event)
    return after if not group.unreadable else _clear_unreadable(after, event)


def with_reported_assignor(group: ModernGroup, event: AssignorReported) -> ModernGroup:
    """Return the group with the reported assignor.

    The group does not change if the assignor was reported for a different epoch, or if a member specifies an assignor.
    """
    if event.epoch != group.epoch or group.names_assignor():
        return group
    return msgspec.structs.replace(group, assignor=event.assignor)


def _clear_unreadable(group: ModernGroup, event: ModernEvent) -> ModernGroup:
    """Remove the record's entry from `unreadable`.

    If the record deletes a member, remove all entries of the member.
    """
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
        return msgspec.structs.replace(group, topic_names={**group.topic_names, **event.names})
    after = _with_strays(_with_member(group, event), event.member_id)
    return _recount_member(group, after, event.member_id)


def _with_member(group: ModernGroup, event: MemberEvent) -> ModernGroup:
    if isinstance(event, MemberWritten):
        # The coordinator may have reported this member's assignor. So the monitor asks the coordinator again.
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
    """Add the record's member to `strays`, or remove the member from `strays`."""
    has_something = member_id in group.targets or member_id in group.currents
    is_stray = has_something and member_id not in group.members
    if is_stray == (member_id in group.strays):
        return group
    return msgspec.structs.replace(group, strays=group.strays ^ {member_id})


Entry = TypeVar("Entry")


def _put(entries: dict[str, Entry], key: str, entry: Entry | None) -> dict[str, Entry]:
    """Return the entries after `key` was set to `entry`. If `entry` is None, the result does not contain `key`."""
    if entry is not None:
        return {**entries, key: entry}
    return {other: kept for other, kept in entries.items() if other != key} if key in entries else entries


def recount_members(group: ModernGroup) -> ModernGroup:
    """Count the unreconciled and unacknowledged members again. Return the group with the new counts."""
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
    """Return True if the targets are older than the group epoch.

    Before the first target, the epoch of the targets counts as 0.
    """
    return (group.epoch or 0) > (group.assignment_epoch or 0)
