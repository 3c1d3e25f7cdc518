"""Find KIP-848 members that do not reach their target assignment in time.

The coordinator gives each member a target assignment. The member first revokes the partitions that are not in its
target. Then the member takes the partitions of its target that no other member owns. The current assignment of the
member shows the progress of the member. The rule numbers continue after those of `silence.py`:

15. A member *lags* its target until the member is Stable at the epoch of the target. At the first sample that shows the
    lag, the start time of the lag is set to the time of the group's last record. The lag may have started earlier, so
    the reported duration is a lower bound. When the member makes progress, the start time is set again in the same way.
    Progress is a new epoch, revoked partitions or new partitions.
16. `stuck_reconciliation`: a member lags its target for longer than its rebalance timeout. A member must revoke its
    partitions within its rebalance timeout. In the polling mode the rebalance timeout is unknown, so the limit is
    `stuck_after_seconds`. The coordinator fences a member that does not revoke its partitions in time. So there are two
    possible reasons for a stuck member. First: the coordinator should have fenced the member, but has not. Second: the
    member waits for a partition that a different member has not revoked.
17. Some members are not evaluated: members without a current assignment, and members whose state is unknown. After a
    static member left for a restart (epoch -2), it is not evaluated until it returns or its session timeout expires.
    During this time, the coordinator reserves the partitions of the static member. Members that wait for a reserved
    partition are not evaluated. The records of a streams group do not show the tasks of members. So while a static
    member of a streams group is away, the members that wait for tasks are not evaluated. Share groups are not
    evaluated, because their members do not have to reconcile. Streams groups are not evaluated in the polling mode,
    because coordinators do not report the tasks of members.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.events import CONSUMER, STREAMS
from streaming.group.modern import ModernGroup, is_reconciled
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.modern import (
    UNKNOWN_MEMBER_STATE,
    UNRELEASED_MEMBER,
    UNRELEASED_STREAMS_MEMBER,
    IdPartitions,
    MemberAssignment,
    ModernMember,
)

STUCK_RECONCILIATION = "stuck_reconciliation"

AWAY_EPOCH = -2
"""Epoch of a static member that has left and can return (`LEAVE_GROUP_STATIC_MEMBER_EPOCH`)."""


@dataclass(frozen=True, slots=True)
class LaggingMember:
    """A member that has not reached its target. `since_ms` is the start time of rule 15."""

    current: MemberAssignment
    since_ms: int


def lagging_members(snapshot: GroupSnapshot, known: Mapping[str, LaggingMember]) -> Mapping[str, LaggingMember]:
    """Return the members that lag their targets, by member id (rule 15). `known` is the previous result.

    >>> lagging_members(GroupSnapshot("g"), {})
    {}
    """
    group, position = snapshot.modern, snapshot.position
    is_reported = snapshot.group_type == CONSUMER or (snapshot.group_type == STREAMS and not snapshot.is_polled)
    if group is None or position is None or not group.unreconciled_members or not is_reported:
        return {}
    away = [current for current in group.currents.values() if current.member_epoch == AWAY_EPOCH]
    reserved = _partitions(*(held for current in away for held in (current.assigned, current.pending_revocation or ())))
    lagging = {}
    for member_id in group.members:
        current = group.currents.get(member_id)
        if current is None or current.member_epoch == AWAY_EPOCH or is_reconciled(group, member_id):
            continue
        # No response of the polling mode contains a state. So the monitor compares the assignment with the target.
        is_state_known = snapshot.is_polled or current.state != UNKNOWN_MEMBER_STATE
        if not is_state_known or (away and _may_wait_for(reserved, member_id, current, snapshot)):
            continue
        before = known.get(member_id)
        is_same = before is not None and before.current == current
        lagging[member_id] = before if before and is_same else LaggingMember(current, position.timestamp_ms)
    return lagging


def stuck_members(
    group: ModernGroup, lagging: Mapping[str, LaggingMember], now_ms: int, limits: Limits
) -> Mapping[str, LaggingMember]:
    """Return the members that lag their targets for longer than allowed, by member id (rule 16)."""
    return {
        member_id: lag
        for member_id, lag in lagging.items()
        if now_ms - lag.since_ms > allowed_ms(group.members[member_id], limits)
    }


def allowed_ms(member: ModernMember, limits: Limits) -> float:
    """Return how long a member is allowed to lag its target, in milliseconds (rule 16)."""
    reported_ms = member.rebalance_timeout_ms
    return 1000 * limits.stuck_after_seconds if reported_ms is None or reported_ms <= 0 else reported_ms


def _may_wait_for(
    reserved: AbstractSet[tuple[str, int]], member_id: str, current: MemberAssignment, snapshot: GroupSnapshot
) -> bool:
    if current.state == UNRELEASED_STREAMS_MEMBER:
        return True
    targets = snapshot.modern.targets if snapshot.modern else {}
    waits = current.state == UNRELEASED_MEMBER or snapshot.is_polled
    return waits and not reserved.isdisjoint(_partitions(targets.get(member_id, ())) - _partitions(current.assigned))


def _partitions(*held: IdPartitions) -> frozenset[tuple[str, int]]:
    return frozenset((topic_id, number) for one in held for topic_id, numbers in one for number in numbers)
