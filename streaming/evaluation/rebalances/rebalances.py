"""What happened at a rebalance: the group before and after it, compared. Only what the two records prove is said.

Rules:

1. Compared are a classic group's records one by one, and a KIP-848 group's targets, one to the next: an epoch whose
   targets are still to be made is nothing yet, members on their way to them are nothing more. What names no generation
   (a classic group whose coordinator was asked, a record nobody could read) is nothing either.
2. The first sight of a group (`first_seen`) is compared with nothing. A lower generation, another type of group, other
   members at the same generation, a different partition of `__consumer_offsets`, or any record after the end: `created`
   anew, compared with nothing either. After a tombstone that was no end (`advance`, rule 6): `upgraded` to another
   protocol, or `downgraded` to the classic one.
3. Nobody is left: `became_empty`. The same members at the same generation, a static one under a new member id:
   `static_rejoin`; it is no rebalance. A tombstone: `deleted`. All else is a `rebalance`.
4. A member is the same before and after by its group instance id, or by its member id where it has none.
5. Causes are a set: `strategy_changed`, `member_gone` (left, timed out and fenced look alike), `member_joined`,
   `subscription_changed`, `metadata_changed`, `cooperative_followup` (members rejoin to hand over what the round before
   withheld), `unexplained` where there is no other. The *primary* is the first of them in this order: what was done to
   the whole group before what one member did, who went before who came (whoever replaces it comes because of it).
6. `metadata_changed`: a topic subscribed to before and after has partitions nobody had before, although all up to
   their numbers were had; or fewer, and a sample of the topic says so. A sample alone proves no cause.
   Nothing is proven after the record of an upgrade or downgrade, which lacks the partitions of members that left, nor
   in a share group, which gets the partitions of a topic one by one.
7. Moved is a partition whose owner before is not its owner now; from nobody to somebody is no move. A cooperative
   round that withholds partitions counts no moves: they are counted once, in the round that hands them over, from the
   owners before the first of the rounds. The fewest are those of `assignors.fairness.fewest_moves`; None where an
   assignment has partitions without or with several owners, and of Kafka Streams, whose assignor weighs more than
   partitions.
8. Sync time is the record's time less the time at which the group began to wait for the leader's assignment. It is
   that of a generation's first record; longer than any member's rebalance timeout, it was not the first: unknown.
9. Where records of members are missing, before or after, causes are unknown: None, and `not_known` names what is.
   Where bytes of a classic member could not be read, only what needs them is unknown: the causes that are proven
   without them stay, what that member subscribes to proves nothing, and moves are unknown. A regular expression that
   the coordinator still has to resolve is not missing: the member that came with it has no topics until then. Once it
   is resolved, that member's subscription has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from streaming.evaluation.rebalances.claims import RecordedClaims, recorded_claims
from streaming.evaluation.rebalances.member_changes import JOINED, RESUBSCRIBED, GONE, MemberChange, member_changes
from streaming.evaluation.rebalances.partition_movement import (
    OwnersBefore,
    PartitionMovement,
    claimed_by,
    held_by,
    is_all_known,
    member_key,
    metadata_changed,
    movement,
)
from streaming.events import CLASSIC, CONSUMER, Position
from streaming.group.members import GroupMember, TopicPartitions, members
from streaming.group.modern import CURRENT_ASSIGNMENT, RESOLVED_REGEX, is_assigning
from streaming.group.not_known import unknown_bytes
from streaming.group.snapshot import DEAD, GroupSnapshot

REBALANCE = "rebalance"
STATIC_REJOIN = "static_rejoin"
BECAME_EMPTY = "became_empty"
FIRST_SEEN = "first_seen"
CREATED = "created"
UPGRADED = "upgraded"
DOWNGRADED = "downgraded"
DELETED = "deleted"

STRATEGY_CHANGED = "strategy_changed"
MEMBER_GONE = "member_gone"
MEMBER_JOINED = "member_joined"
SUBSCRIPTION_CHANGED = "subscription_changed"
METADATA_CHANGED = "metadata_changed"
COOPERATIVE_FOLLOWUP = "cooperative_followup"
UNEXPLAINED = "unexplained"
CAUSES = (
    STRATEGY_CHANGED,
    MEMBER_GONE,
    MEMBER_JOINED,
    SUBSCRIPTION_CHANGED,
    METADATA_CHANGED,
    COOPERATIVE_FOLLOWUP,
    UNEXPLAINED,
)
"""In the order in which one of several becomes the primary."""

_COMPARED = frozenset({REBALANCE, STATIC_REJOIN, BECAME_EMPTY, UPGRADED, DOWNGRADED})
_HANDS_NOTHING_OVER = frozenset({STATIC_REJOIN, DELETED})


class Rebalance(msgspec.Struct, frozen=True):
    """One generation or epoch, held against the one before. Counts are of partitions unless they name something else.

    Attributes:
        causes: in the order of `CAUSES`; None where unknown; empty for what is no rebalance.
        changes: members that came, went, or have other partitions than before, sorted by `key`.
        skipped_generations: numbers since the record before that no record carries; None where that means nothing, and
            for all but classic groups, whose every epoch has a record.
        fewest_moves: a lower bound where `is_exact` is False.
        not_known: records that are missing, in Kafka's words.

    """

    position: Position
    generation_id: int
    kind: str
    causes: tuple[str, ...] | None
    members: int
    protocol: str | None
    previous_protocol: str | None
    changes: tuple[MemberChange, ...]
    movement: PartitionMovement
    claims: RecordedClaims
    sync_time_ms: int | None
    skipped_generations: int | None
    not_known: tuple[str, ...] = ()
    group_type: str = CLASSIC
    protocol_source: str | None = None

    @property
    def primary_cause(self) -> str | None:
        """The first of a rebalance's causes by precedence (rule 5)."""
        return self.causes[0] if self.causes and self.kind == REBALANCE else None

    def members_that(self, change: str) -> tuple[MemberChange, ...]:
        """Members that did so: `joined`, `gone`, `rejoined` or `resubscribed`."""
        return tuple(member for member in self.changes if change in member.changes)


class RebalanceBaseline(msgspec.Struct, frozen=True):
    """What the next rebalance is compared with: the group as of its last one.

    `snapshot` None says that the group's present is just that (see `rebalance_history`). `end` is the tombstone, or
    that nobody lists the group any more. `owners_before` are the owners, by member, from before a cooperative round
    that withheld partitions; `unowned` partitions had no owner after the last one. `is_partial`: that one was an
    upgrade or downgrade, whose record gives members only what they held before, so partitions may be missing in it.
    """

    snapshot: GroupSnapshot | None
    end: GroupSnapshot | None = None
    owners_before: dict[str, TopicPartitions] | None = None
    unowned: TopicPartitions = ()
    is_partial: bool = False


def rebalance_between(
    baseline: RebalanceBaseline | None, before: GroupSnapshot | None, after: GroupSnapshot
) -> Rebalance | None:
    """Say what happened between two snapshots of a group; None where nothing did that is worth a row.

    `before` is the standing's snapshot. One of two members went, and what it had moved:

    >>> from streaming.protocol.classic import Assignment, ClassicMember, GroupMetadata, Subscription
    >>> def group(generation_id, **held):
    ...     members = tuple(
    ...         ClassicMember(name, None, name, "/h", 1, 1, Subscription(3, ("t",), None, (), -1, None),
    ...                       Assignment(3, tuple(("t", number) for number in numbers), None))
    ...         for name, numbers in held.items())
    ...     metadata = GroupMetadata("g", "consumer", generation_id, "range", "a", None, members, 3)
    ...     at = Position(0, generation_id, 0)
    ...     return GroupSnapshot("g", "classic", "Stable", at, generation_id, metadata)
    >>> before = group(4, a=[0], b=[1])
    >>> found = rebalance_between(RebalanceBaseline(before), before, group(5, a=[0, 1]))
    >>> found.kind, found.causes, found.movement.moved_partitions, found.movement.fewest_moves
    ('rebalance', ('member_gone',), 1, 1)
    """
    kind = _kind(baseline, before, after)
    if kind is None or after.position is None or after.generation_id is None:
        return None
    compared = before if kind in _COMPARED else None
    then, now = None if compared is None else members(compared), members(after)
    changes = () if then is None else member_changes(then, now)
    not_known = (*(_not_known(compared) if compared else ()), *_not_known(after))
    is_complete = not _misses_members(compared) and not _misses_members(after)
    proven = _proven(baseline, compared, after, then or (), now) if compared and kind == REBALANCE else {}
    return Rebalance(
        position=after.position,
        generation_id=after.generation_id,
        kind=kind,
        causes=_causes(kind, proven, changes, is_all_known=not not_known) if is_complete else None,
        members=len(now),
        protocol=after.protocol,
        previous_protocol=compared.protocol if compared else None,
        changes=changes,
        movement=PartitionMovement()
        if kind in _HANDS_NOTHING_OVER
        else movement(_earlier(baseline, then, now), now, after),
        claims=recorded_claims(after, now),
        sync_time_ms=_sync_time_ms(after) if kind in {REBALANCE, CREATED} else None,
        skipped_generations=_skipped_generations(kind, compared, after),
        not_known=tuple(dict.fromkeys(not_known)),
        group_type=after.group_type,
        protocol_source=after.protocol_source,
    )


def baseline_after(
    baseline: RebalanceBaseline | None, before: GroupSnapshot | None, after: GroupSnapshot, rebalance: Rebalance | None
) -> RebalanceBaseline | None:
    """What the next rebalance is compared with, once `rebalance_between` has said what happened."""
    if after.is_over:
        return None if baseline is None else RebalanceBaseline(before, end=after)
    if rebalance is None:
        is_rewritten = baseline is not None and baseline.end is None and after.classic is not None
        return msgspec.structs.replace(baseline, snapshot=after) if baseline and is_rewritten else baseline
    if baseline is not None and rebalance.kind == STATIC_REJOIN:
        return msgspec.structs.replace(baseline, snapshot=after)
    movement, then = rebalance.movement, None
    if movement.withheld:
        earlier = _earlier(
            baseline, members(before) if before and rebalance.kind in _COMPARED else None, members(after)
        )
        then = dict(earlier.held)
    is_partial = rebalance.kind in {UPGRADED, DOWNGRADED}
    return RebalanceBaseline(after, owners_before=then, unowned=movement.unowned, is_partial=is_partial)


def _earlier(
    baseline: RebalanceBaseline | None, then: Sequence[GroupMember] | None, now: Sequence[GroupMember]
) -> OwnersBefore:
    """Who held what before. Of a group compared with nothing, its members' claims are all there is."""
    if baseline is None or then is None:
        return OwnersBefore(claimed_by(now), should_report=False)
    held, should_report = held_by(then), is_all_known(then)
    return OwnersBefore(
        baseline.owners_before or held, unowned=baseline.unowned, held_last=held, should_report=should_report
    )


def _kind(baseline: RebalanceBaseline | None, before: GroupSnapshot | None, after: GroupSnapshot) -> str | None:
    if after.is_over:
        is_news = after.state == DEAD and baseline is not None and baseline.end is None
        return DELETED if is_news else None
    if _is_unfinished(after):
        return None
    if baseline is None or before is None or before.generation_id is None:
        return FIRST_SEEN
    if before.group_type != after.group_type and after.is_carried_over:
        return DOWNGRADED if after.group_type == CLASSIC else UPGRADED
    is_lower = (after.generation_id or 0) < before.generation_id
    is_anew = baseline.end is not None or after.totals.incarnations > before.totals.incarnations
    if is_anew or before.group_type != after.group_type or is_lower or _has_moved(before, after):
        return CREATED
    is_next = after.generation_id != before.generation_id
    return _kind_of_next(after) if is_next else _kind_of_same_generation(before, after)


def _has_moved(before: GroupSnapshot, after: GroupSnapshot) -> bool:
    """Whether the group's records stand in a different partition than before, where it began anew."""
    if before.position is None or after.position is None:
        return False
    return before.position.offsets_topic_partition != after.position.offsets_topic_partition


def _is_unfinished(after: GroupSnapshot) -> bool:
    """Whether the group's generation is not known yet, or its targets are still to be made."""
    is_to_assign = after.modern is not None and after.member_count() > 0 and is_assigning(after.modern)
    return after.generation_id is None or is_to_assign


def _kind_of_next(after: GroupSnapshot) -> str:
    return REBALANCE if after.member_count() else BECAME_EMPTY


def _kind_of_same_generation(before: GroupSnapshot, after: GroupSnapshot) -> str | None:
    if after.classic is None:
        return None
    then = {member_key(member): member.member_id for member in members(before)}
    now = {member_key(member): member.member_id for member in members(after)}
    if then == now:
        return None
    if then.keys() == now.keys():
        return STATIC_REJOIN
    return CREATED if now else BECAME_EMPTY


def _not_known(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """What is missing; what members have at the moment is not asked for, only what they shall have.

    An expression that the coordinator has not resolved yet is no missing record. An answer never names its topics.
    """
    if snapshot.modern is None:
        return unknown_bytes(snapshot)
    is_unresolved_yet = not snapshot.is_polled and snapshot.modern.regexes_are_unresolved_yet()
    not_asked_for = {CURRENT_ASSIGNMENT, *([RESOLVED_REGEX] if is_unresolved_yet else ())}
    return tuple(what for what in snapshot.modern.not_known() if what not in not_asked_for)


def _misses_members(snapshot: GroupSnapshot | None) -> bool:
    """Whether members themselves may be missing: a classic group's record names all of them."""
    return snapshot is not None and snapshot.classic is None and bool(_not_known(snapshot))


def _proven(
    baseline: RebalanceBaseline | None,
    before: GroupSnapshot,
    after: GroupSnapshot,
    then: Sequence[GroupMember],
    now: Sequence[GroupMember],
) -> Mapping[str, bool]:
    """By cause of a rebalance whether the records prove it; those that a member's change shows left out."""
    had_all = after.group_type in {CLASSIC, CONSUMER} and baseline is not None and not baseline.is_partial
    return {
        STRATEGY_CHANGED: None not in {before.protocol, after.protocol} and before.protocol != after.protocol,
        METADATA_CHANGED: had_all and metadata_changed(then, now, after),
        COOPERATIVE_FOLLOWUP: baseline is not None and _hands_over(baseline, now),
    }


def _hands_over(baseline: RebalanceBaseline, now: Iterable[GroupMember]) -> bool:
    """Whether somebody gets a partition that the cooperative round before withheld."""
    withheld = set(baseline.unowned) if baseline.owners_before is not None else set()
    return any(not withheld.isdisjoint(member.target or ()) for member in now)


def _causes(
    kind: str, proven: Mapping[str, bool], changes: Iterable[MemberChange], *, is_all_known: bool
) -> tuple[str, ...] | None:
    """All that is proven, by precedence. What is no rebalance has only who came and who went.

    None where nothing is proven and something is unknown: the cause may be there.
    """
    did = {change for member in changes for change in member.changes}
    shown = {MEMBER_GONE: GONE in did, MEMBER_JOINED: JOINED in did, SUBSCRIPTION_CHANGED: RESUBSCRIBED in did}
    causes = tuple(cause for cause in CAUSES if shown.get(cause) or proven.get(cause))
    if not causes and not is_all_known:
        return None
    return causes or ((UNEXPLAINED,) if kind == REBALANCE else ())


def _sync_time_ms(after: GroupSnapshot) -> int | None:
    if after.classic is None or after.position is None or after.classic.current_state_timestamp_ms is None:
        return None
    took_ms = after.position.timestamp_ms - after.classic.current_state_timestamp_ms
    longest_ms = max((member.rebalance_timeout_ms or 0 for member in after.classic.members), default=-1)
    return took_ms if 0 <= took_ms <= longest_ms else None


def _skipped_generations(kind: str, before: GroupSnapshot | None, after: GroupSnapshot) -> int | None:
    """The numbers in between. An epoch of KIP-848 may lie there without a target: its record was read all the same."""
    is_counted = kind in {REBALANCE, BECAME_EMPTY} and after.group_type == CLASSIC
    if not is_counted or before is None or before.generation_id is None:
        return None
    return max(0, (after.generation_id or 0) - before.generation_id - 1)
