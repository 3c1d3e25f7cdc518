"""Describe a rebalance by comparing the group before and after it. The result contains only what the records prove.

Rules:

1. In a classic group, each record is compared with the previous record. In a KIP-848 group, the target assignments of
   successive epochs are compared. An epoch without computed targets is not compared. The later changes of the members'
   current assignments are not a new rebalance. A snapshot without a generation is not compared. Examples are an
   unreadable record, and a classic group in the polling mode.
2. `first_seen`: the first snapshot of a group. `created`: the first snapshot after the group was created again. Neither
   is compared. The group was created again if its generation is lower, if its group type is different, or if the same
   generation has different members. The group was also created again if its record is in a different partition of
   `__consumer_offsets`, or if the record follows the end of the group. `upgraded` or `downgraded`: the group changed
   from the classic protocol to a different protocol, or back. For an upgrade or a downgrade, a tombstone is not the end
   of the group (`advance`, rule 6).
3. `became_empty`: the group has no members any more. `static_rejoin`: a static member has a new member id, but the
   members and the generation are the same. A static rejoin is not a rebalance. `deleted`: the group no longer exists.
   `rebalance`: all other changes.
4. A member is identified by its group instance id. A member without a group instance id is identified by its member id.
5. A rebalance has one or more causes: `strategy_changed`, `member_gone`, `member_joined`, `subscription_changed`,
   `metadata_changed`, `cooperative_followup`, or `unexplained`. `member_gone`: the member left, timed out or was
   fenced. The records do not show which of the three happened. `cooperative_followup`: a member gets a partition that a
   different member had and that the previous round withheld. If a withheld partition returns to its earlier owner,
   `cooperative_followup` is not proven: the topic may have been created again. `unexplained`: the records show no other
   cause. If there are several causes, the *primary* cause is the first of them in the order of `CAUSES`.
   `strategy_changed` is first in this order, because it concerns the whole group. `member_gone` precedes
   `member_joined`, because a new member often replaces a lost member. In the record of a downgrade, the remaining
   members keep their partitions. Only the next rebalance assigns the partitions of the members that left. So members
   that left or joined with the downgrade are a cause of the next rebalance. If a static member was only replaced, the
   downgrade has no next rebalance of its own, and the replacement is no cause (rule 4).
6. `metadata_changed`: the number of known partitions of a topic rose. Members must subscribe to the topic before and
   after the rebalance. A partition is known if a member has or claims the partition. The known partitions before the
   rebalance also include the partitions that then had no owner. So a partition that gets an owner again does not
   increase the number of known partitions. Both before and after the rebalance, the known partitions must have no gap.
   In a KIP-848 group, a topic that was created again is a new topic, because its topic id differs.
   A lower number does not prove `metadata_changed`, because the leader may have left partitions without an owner.
   Samples are not used, because the monitor also reads records that are older than its first sample. After the record
   of an upgrade or downgrade, `metadata_changed` cannot be proven, because this record does not contain the partitions
   of members that left. In a share group, `metadata_changed` cannot be proven, because partitions are added to the
   group one by one. Streams groups are not checked for `metadata_changed`.
7. A partition has moved if its present owner is different from its previous owner. A partition that had no owner
   before, or has no owner now, has not moved. In a KIP-848 group, the partitions of a topic that was created again are
   new, so they have not moved. If a cooperative round withholds partitions, the moves of this round are not counted.
   The next round is compared with the owners before the first round, so each move is counted once. The first rebalance
   after a downgrade is compared with the owners before the downgrade. `assignors.fairness` computes `fewest_moves`.
   `fewest_moves` is None if a partition has no owner or several owners. It is also None if a partition moved and the
   subscription of a member is unknown. For Kafka Streams, Faust and Goka, `fewest_moves` is also None, because they
   assign partitions with the same number of several topics together.
8. The sync time is the time that the group waited for the leader's assignment. The sync time ends at the timestamp of
   the record. Only the first record of a generation shows the sync time. If the computed sync time is longer than the
   longest rebalance timeout of the members, the sync time is unknown.
9. If data of a KIP-848 group are missing before or after the rebalance, `causes` is None. `not_known` names the missing
   data. If the subscription of a classic member cannot be decoded, the subscription proves no cause. If the assignment
   of a classic member cannot be decoded, the moves are unknown. All other proven causes are still reported. If the
   owners before a downgrade are unknown, `not_known` of the next rebalance contains `target_assignment`. An unresolved
   regular expression is not missing data: the member has no topics yet. When the coordinator resolves the expression,
   the cause is `subscription_changed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from streaming.evaluation.rebalances.claim_conflicts import RecordedClaims, recorded_claims
from streaming.evaluation.rebalances.member_changes import (
    GONE,
    JOINED,
    RESUBSCRIBED,
    MemberChange,
    member_changes,
    with_old_names,
)
from streaming.evaluation.rebalances.partition_movement import (
    OwnersBefore,
    PartitionMovement,
    claims_by_member,
    is_all_known,
    member_key,
    metadata_changed,
    movement,
    targets_by_member,
    withheld_from,
)
from streaming.events import CLASSIC, CONSUMER, Position
from streaming.group.members import GroupMember, TopicPartitions, members
from streaming.group.modern import CURRENT_ASSIGNMENT, RESOLVED_REGEX, TARGET_ASSIGNMENT, is_assigning
from streaming.group.not_known import hides_regex_topics, unknown_bytes
from streaming.group.snapshot import DEAD, GroupSnapshot
from streaming.group.topic_names import without_taken_names

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
"""All causes. If a rebalance has several causes, the first in this order is the primary cause."""

_COMPARED = frozenset({REBALANCE, STATIC_REJOIN, BECAME_EMPTY, UPGRADED, DOWNGRADED})
_WITHOUT_MOVEMENT = frozenset({STATIC_REJOIN, DELETED})


class Rebalance(msgspec.Struct, frozen=True):
    """One generation or epoch, compared with the previous generation or epoch.

    `causes` contains all proven causes in the order of `CAUSES`. It can be empty if the change is not a rebalance, and
    is None if unknown. `members` is the number of members after the rebalance. `skipped_generations` is the number of
    generations without a record since the previous record. It is known only for the kinds `rebalance` and
    `became_empty` of classic groups. Other groups write a record for each epoch. `not_known` contains the names of the
    missing data.
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
        """The primary cause (rule 5). None if the cause is unknown, or if the change is not a rebalance."""
        return self.causes[0] if self.causes and self.kind == REBALANCE else None


class RebalanceBaseline(msgspec.Struct, frozen=True):
    """The state of the group after its last rebalance. The next rebalance is compared with the baseline.

    `snapshot` is stored as None if it is equal to the group's present state (see `rebalance_history`). `end` is the
    snapshot that shows the end of the group: there is a tombstone, or no broker listed the group. `owners_before`
    contains the partitions that each member had before a cooperative round that withheld partitions, or before a
    downgrade (None if unknown). `unowned` contains the partitions without an owner after the last rebalance. If
    `is_partial` is True, the last record was the record of an upgrade or downgrade. This record does not contain the
    partitions of members that left, so `snapshot` does not contain them.
    """

    snapshot: GroupSnapshot | None
    end: GroupSnapshot | None = None
    owners_before: dict[str, TopicPartitions] | None = None
    unowned: TopicPartitions = ()
    is_partial: bool = False

    @property
    def is_downgrade(self) -> bool:
        """True if the last record was the record of a downgrade."""
        return self.is_partial and self.snapshot is not None and self.snapshot.group_type == CLASSIC

    @property
    def hides_owners(self) -> bool:
        """True if the rebalance is a downgrade of the group, and the owners before it are unknown."""
        return self.is_downgrade and self.owners_before is None


def rebalance_between(baseline: RebalanceBaseline | None, after: GroupSnapshot) -> Rebalance | None:
    """Describe the change from the baseline to the next snapshot of a group. Return None if no row is needed.

    In the example, one of two members left, and its partition moved:

    >>> from streaming.protocol.classic import Assignment, ClassicMember, GroupMetadata, Subscription
    >>> def group(generation_id, **held):
    ...     members = tuple(
    ...         ClassicMember(name, None, name, "/h", 1, 1, Subscription(3, ("t",), None, (), -1, None),
    ...                       Assignment(3, tuple(("t", number) for number in numbers), None))
    ...         for name, numbers in held.items())
    ...     metadata = GroupMetadata("g", "consumer", generation_id, "range", "a", None, members, 3)
    ...     at = Position(0, generation_id, 0)
    ...     return GroupSnapshot("g", "classic", "Stable", at, generation_id, metadata)
    >>> found = rebalance_between(RebalanceBaseline(group(4, a=[0], b=[1])), group(5, a=[0, 1]))
    >>> found.kind, found.causes, found.movement.moved_partitions, found.movement.fewest_moves
    ('rebalance', ('member_gone',), 1, 1)
    """
    before = baseline.snapshot if baseline else None
    kind = _kind(baseline, before, after)
    if kind is None or after.position is None or after.generation_id is None:
        return None
    compared = before if kind in _COMPARED else None
    then, now = None if compared is None else members(without_taken_names(compared, after)), members(after)
    changes = () if compared is None or then is None else with_old_names(member_changes(then, now), compared)
    hidden = (TARGET_ASSIGNMENT,) if kind == REBALANCE and baseline and baseline.hides_owners else ()
    not_known = (*hidden, *(_not_known(compared) if compared else ()), *_not_known(after))
    is_complete = not _misses_members(compared) and not _misses_members(after)
    proven = _proven(baseline, compared, after, then or (), now) if baseline and compared and kind == REBALANCE else {}
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
        if kind in _WITHOUT_MOVEMENT
        else movement(_owners_before(baseline, then, now), now, after),
        claims=recorded_claims(after, now),
        sync_time_ms=_sync_time_ms(after) if kind in {REBALANCE, CREATED} else None,
        skipped_generations=_skipped_generations(kind, compared, after),
        not_known=tuple(dict.fromkeys(not_known)),
        group_type=after.group_type,
        protocol_source=after.protocol_source,
    )


def baseline_after(
    baseline: RebalanceBaseline | None, after: GroupSnapshot, rebalance: Rebalance | None
) -> RebalanceBaseline | None:
    """Return the baseline for the next comparison. `rebalance` is the result of `rebalance_between`."""
    before = baseline.snapshot if baseline else None
    if after.is_over:
        return None if baseline is None else RebalanceBaseline(before, end=after)
    if rebalance is None:
        is_rewritten = baseline is not None and baseline.end is None and after.classic is not None
        return msgspec.structs.replace(baseline, snapshot=after) if baseline and is_rewritten else baseline
    if baseline is not None and rebalance.kind == STATIC_REJOIN:
        return msgspec.structs.replace(baseline, snapshot=after)
    movement, then = rebalance.movement, None
    if movement.withheld or rebalance.kind == DOWNGRADED:
        compared = members(before) if before and rebalance.kind in _COMPARED else None
        owners = _owners_before(baseline, compared, members(after))
        is_unknown = rebalance.kind == DOWNGRADED and (not owners.is_complete or _misses_members(before))
        then = None if is_unknown else dict(owners.held)
    is_partial = rebalance.kind in {UPGRADED, DOWNGRADED}
    return RebalanceBaseline(after, owners_before=then, unowned=movement.unowned, is_partial=is_partial)


def _owners_before(
    baseline: RebalanceBaseline | None, then: Sequence[GroupMember] | None, now: Sequence[GroupMember]
) -> OwnersBefore:
    if baseline is None or then is None:
        return OwnersBefore(claims_by_member(now), is_complete=False)
    targets = targets_by_member(then)
    is_complete = is_all_known(then) and not baseline.hides_owners
    return OwnersBefore(
        baseline.owners_before or targets, unowned=baseline.unowned, held_last=targets, is_complete=is_complete
    )


def _kind(baseline: RebalanceBaseline | None, before: GroupSnapshot | None, after: GroupSnapshot) -> str | None:
    if after.is_over:
        is_new = after.state == DEAD and baseline is not None and baseline.end is None
        return DELETED if is_new else None
    if after.generation_id is None or _waits_for_targets(after):
        return None
    if baseline is None or before is None or before.generation_id is None:
        return FIRST_SEEN
    if before.group_type != after.group_type and after.is_carried_over:
        return DOWNGRADED if after.group_type == CLASSIC else UPGRADED
    is_lower = after.generation_id < before.generation_id
    is_anew = baseline.end is not None or after.totals.incarnations > before.totals.incarnations
    if is_anew or before.group_type != after.group_type or is_lower or _has_moved(before, after):
        return CREATED
    return _kind_of_change(before, after)


def _waits_for_targets(after: GroupSnapshot) -> bool:
    return after.modern is not None and after.member_count() > 0 and is_assigning(after.modern)


def _has_moved(before: GroupSnapshot, after: GroupSnapshot) -> bool:
    """Return True if the group was created again in a different `__consumer_offsets` partition."""
    if before.position is None or after.position is None:
        return False
    return before.position.offsets_topic_partition != after.position.offsets_topic_partition


def _kind_of_change(before: GroupSnapshot, after: GroupSnapshot) -> str | None:
    if after.generation_id != before.generation_id:
        return REBALANCE if after.member_count() else BECAME_EMPTY
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
    """Return the names of the missing data. Current assignments are ignored, because only targets are compared."""
    if snapshot.modern is None:
        return unknown_bytes(snapshot)
    ignored = {CURRENT_ASSIGNMENT, *([] if hides_regex_topics(snapshot, snapshot.modern) else [RESOLVED_REGEX])}
    return tuple(name for name in snapshot.modern.not_known() if name not in ignored)


def _misses_members(snapshot: GroupSnapshot | None) -> bool:
    """Return True if members can be missing from the snapshot. A classic group's record contains all members."""
    return snapshot is not None and snapshot.classic is None and bool(_not_known(snapshot))


def _proven(
    baseline: RebalanceBaseline,
    before: GroupSnapshot,
    after: GroupSnapshot,
    then: Sequence[GroupMember],
    now: Sequence[GroupMember],
) -> Mapping[str, bool]:
    """Return which causes are proven by other data than the changes of the members since the baseline."""
    has = set(map(member_key, then))
    had = set(baseline.owners_before) if baseline.is_downgrade and baseline.owners_before is not None else has
    had_all = after.group_type in {CLASSIC, CONSUMER} and not baseline.is_partial
    return {
        MEMBER_GONE: bool(had - has),
        MEMBER_JOINED: bool(has - had),
        STRATEGY_CHANGED: None not in {before.protocol, after.protocol} and before.protocol != after.protocol,
        METADATA_CHANGED: had_all and metadata_changed(then, baseline.unowned, now),
        COOPERATIVE_FOLLOWUP: _hands_over(baseline, then, now),
    }


def _hands_over(baseline: RebalanceBaseline, then: Sequence[GroupMember], now: Iterable[GroupMember]) -> bool:
    """Return True if a partition that the previous cooperative round withheld has a new owner now.

    Partitions of a member that timed out are ignored, because no round withheld these partitions.
    """
    if baseline.owners_before is None or baseline.is_downgrade:
        return False
    withheld = set(withheld_from(then, baseline.owners_before, baseline.unowned))
    return any(
        not withheld.difference(baseline.owners_before.get(member_key(member), ())).isdisjoint(member.target or ())
        for member in now
    )


def _causes(
    kind: str, proven: Mapping[str, bool], changes: Iterable[MemberChange], *, is_all_known: bool
) -> tuple[str, ...] | None:
    """Return all proven causes in the order of `CAUSES`, or None if no cause is proven and data are missing."""
    kinds = {change for member in changes for change in member.changes}
    by_members = {
        MEMBER_GONE: GONE in kinds,
        MEMBER_JOINED: JOINED in kinds,
        SUBSCRIPTION_CHANGED: RESUBSCRIBED in kinds,
    }
    causes = tuple(cause for cause in CAUSES if by_members.get(cause) or proven.get(cause))
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
    is_counted = kind in {REBALANCE, BECAME_EMPTY} and after.group_type == CLASSIC
    if not is_counted or before is None or before.generation_id is None:
        return None
    return max(0, (after.generation_id or 0) - before.generation_id - 1)
