"""What the records of a group say whose assignment the coordinator makes: consumer (KIP-848), share and streams.

Each record replaces one entry, as in the coordinator's own replay (`GroupMetadataManager.replay`). Which entries are
there says how much is known: compaction may have left any of them out, and none is made up.
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
    entry_name,
)
from streaming.protocol.modern import STABLE_MEMBER, UNREVOKED_MEMBER, IdPartitions, MemberAssignment, ModernMember

MemberEvent = MemberWritten | TargetWritten | CurrentWritten

GROUP_EPOCH = "group_epoch"
UNREADABLE_RECORD = "unreadable_record"
MEMBER_METADATA = "member_metadata"
CURRENT_ASSIGNMENT = "current_assignment"
TARGET_ASSIGNMENT = "target_assignment"
RESOLVED_REGEX = "resolved_regex"


class ModernGroup(msgspec.Struct, frozen=True):
    """The group's entries: epochs, and by member id what it said (`members`), shall have and has.

    `regexes` are the topics each subscribed regular expression stands for. `topic_names` are names by topic id, as far
    as they were told; a deleted topic keeps the name it was last known by, until another topic has it. `strays` are
    members that shall have or have something and never described themselves: their metadata was compacted away.
    `unreadable` are entries whose last record went to quarantine. `unreconciled_members` do not have their target yet,
    `unacknowledged_members` have not even answered to it; both follow from the entries (`recount_members`), and are kept because
    looking at every member for every member's record would make a rebalance cost their square.
    `assignor` is the one that the coordinator reported. No record has it. Members that name an assignor overrule it.
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
        """Whether enough is known to tell the group's state."""
        return self.epoch is not None and not self.strays and not self.unreadable

    def subscribed_topics(self) -> tuple[str, ...]:
        """The topics any member subscribes to by name or by a resolved regular expression, sorted.

        Of a member whose expression nobody resolved: the topics it shall have partitions of.
        """
        named = {topic for member in self.members.values() for topic in member.subscribed_topics}
        held = {of for member_id in self._unresolved_members() for of, _ in self.targets[member_id]}
        known = {self.topic_names[of] for of in held if of in self.topic_names}
        return tuple(sorted(named.union(known, *self.regexes.values())))

    def topics_of(self, member_id: str) -> tuple[str, ...] | None:
        """The topics one member subscribes to, sorted; None if no record names those of its regular expression."""
        member = self.members[member_id]
        if self._is_unresolved(member_id):
            return None
        return tuple(sorted({*member.subscribed_topics, *self.regexes.get(member.subscribed_regex or "", ())}))

    def _is_unresolved(self, member_id: str) -> bool:
        """Whether the record of the topics that the member's expression stands for is missing.

        The coordinator resolves an expression some time after a member came with it. Until then it gives the member
        nothing. If the member has a target all the same, the record was compacted away, or there is no log to read.
        """
        regex = self.members[member_id].subscribed_regex
        return bool(regex) and regex not in self.regexes and bool(self.targets.get(member_id))

    def _unresolved_members(self) -> list[str]:
        if self.subscribed_regexes() <= self.regexes.keys():
            return []
        return [member_id for member_id in self.members if self._is_unresolved(member_id)]

    def server_assignor(self) -> str | None:
        """The assignor in use; None where it is not known: nobody names one, or several have the most votes."""
        named = self.server_assignors()
        return named[0] if len(named) == 1 else None

    def server_assignors(self) -> tuple[str, ...]:
        """The assignors that may be in use: those with most votes, or without a vote the one that was reported.

        `ModernGroup.computePreferredServerAssignor` takes any of several with the most votes. Without a vote the broker
        uses its first configured assignor, which no record names.
        """
        votes = Counter(member.server_assignor for member in self.members.values() if member.server_assignor)
        if not votes:
            return () if self.assignor is None else (self.assignor,)
        most = max(votes.values())
        return tuple(sorted(name for name, count in votes.items() if count == most))

    def names_assignor(self) -> bool:
        """Whether a member names an assignor. If none does, only the coordinator knows which one is in use."""
        return any(member.server_assignor for member in self.members.values())

    def subscribed_regexes(self) -> frozenset[str]:
        """The regular expressions that members subscribe to."""
        return frozenset(member.subscribed_regex for member in self.members.values() if member.subscribed_regex)

    def topic_ids(self) -> frozenset[str]:
        """The ids of all topics that a member has, shall have, or has to give up."""
        held = {topic_id for target in self.targets.values() for topic_id, _ in target}
        for current in self.currents.values():
            held.update(topic_id for topic_id, _ in (*current.assigned, *(current.pending_revocation or ())))
        return frozenset(held)

    def unnamed_target_ids(self) -> frozenset[str]:
        """Ids without a name of topics that a member shall have."""
        return frozenset(of for target in self.targets.values() for of, _ in target if of not in self.topic_names)

    def unnamed_topic_ids(self) -> frozenset[str]:
        """Ids of topics whose names were not told yet, or never will be: the topic was deleted."""
        return self.topic_ids().difference(self.topic_names)

    def not_known(self) -> tuple[str, ...]:
        """What records told so far leave open, in Kafka's words; empty where nothing is missing.

        Without `group_epoch` or `member_metadata` not even the state can be told. A member without its current
        assignment has just joined (the record follows within the same append), or compaction took it. The assignment
        epoch is not among them: a group whose first target is still to be computed has none.
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
        """Whether no expression without topics was ever resolved: nobody who subscribes to it has a target."""
        return not self._unresolved_members()


def replay(group: ModernGroup, event: ModernEvent | DecodeFailed) -> ModernGroup:
    """The group after one record. One that nobody could read leaves its entry open until the next of its kind."""
    if isinstance(event, DecodeFailed):
        return msgspec.structs.replace(group, unreadable=group.unreadable | {(event.entry, event.entry_of)})
    after = _apply(group, event)
    return after if not group.unreadable else _clear_unreadable(after, event)


def with_reported_assignor(group: ModernGroup, event: AssignorReported) -> ModernGroup:
    """The group with the assignor that its coordinator reported, if the report is about the group as it is."""
    if event.epoch != group.epoch or group.names_assignor():
        return group
    return msgspec.structs.replace(group, assignor=event.assignor)


def _clear_unreadable(group: ModernGroup, event: ModernEvent) -> ModernGroup:
    """The group without the entry that this record tells anew; with a member go all of its."""
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
        # What was reported may be the name that this member gives. When it leaves, the coordinator is asked again.
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
    """Look again at the one member the record was about."""
    has_something = member_id in group.targets or member_id in group.currents
    is_stray = has_something and member_id not in group.members
    if is_stray == (member_id in group.strays):
        return group
    return msgspec.structs.replace(group, strays=group.strays ^ {member_id})


Entry = TypeVar("Entry")


def _put(entries: dict[str, Entry], key: str, entry: Entry | None) -> dict[str, Entry]:
    """The entries with this one in place; None takes it away."""
    if entry is not None:
        return {**entries, key: entry}
    return {other: kept for other, kept in entries.items() if other != key} if key in entries else entries


def recount_members(group: ModernGroup) -> ModernGroup:
    """The group with its members counted by how far they are on their way to their targets."""
    return msgspec.structs.replace(
        group,
        unreconciled_members=sum(not is_reconciled(group, member_id) for member_id in group.members),
        unacknowledged_members=sum(not _has_acknowledged(group, member_id) for member_id in group.members),
    )


def _recount_member(before: ModernGroup, after: ModernGroup, member_id: str) -> ModernGroup:
    """The group after one member's record, that member counted again."""

    def change(is_there_yet: Callable[[ModernGroup, str], bool]) -> int:
        was_counted = member_id in before.members and not is_there_yet(before, member_id)
        return (member_id in after.members and not is_there_yet(after, member_id)) - was_counted

    unreconciled, unacknowledged = change(is_reconciled), change(_has_acknowledged)
    if not unreconciled and not unacknowledged:
        return after
    return msgspec.structs.replace(
        after,
        unreconciled_members=after.unreconciled_members + unreconciled,
        unacknowledged_members=after.unacknowledged_members + unacknowledged,
    )


def is_reconciled(group: ModernGroup, member_id: str) -> bool:
    """Whether the member has its target (`ModernGroupMember.isReconciledTo`)."""
    current = group.currents.get(member_id)
    return current is not None and current.state == STABLE_MEMBER and current.member_epoch == group.assignment_epoch


def _has_acknowledged(group: ModernGroup, member_id: str) -> bool:
    """Whether the member has answered to its target: is at its epoch, or was told what to give up first."""
    current = group.currents.get(member_id)
    return current is not None and (current.member_epoch == group.assignment_epoch or current.state == UNREVOKED_MEMBER)


def is_assigning(group: ModernGroup) -> bool:
    """Whether the targets are of an older epoch than the group; before the first target there is epoch 0."""
    return (group.epoch or 0) > (group.assignment_epoch or 0)
