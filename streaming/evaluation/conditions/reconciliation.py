"""Find KIP-848 members that do not reach their target assignment in time.

The coordinator gives each member a target assignment. The member first revokes the partitions that are not in its
target. Then it takes the target partitions that are free. The current assignment of the member shows this progress. The
rule numbers continue those of `silence.py`:

15. A member *lags* its target until it is Stable at the epoch of the target. The lag starts at the first sample that
    shows it. The start time is the time of the group's last record at this sample. So the reported duration is a lower
    bound, also after a restart of the monitor. The lag starts again with each progress of the member: a new epoch,
    revoked partitions or new partitions.
16. `stuck_reconciliation`: a member lags for longer than its rebalance timeout. A member must revoke its partitions
    within this timeout. In the polling mode the timeout is unknown, because coordinators do not report it. In this
    case, the limit is `stuck_after_seconds`. The coordinator fences a member that does not revoke its partitions in
    time. So there are two causes for a stuck member. Either the coordinator did not fence it, or it waits for a
    partition of a different member.
17. Some members are not evaluated: members without a current assignment, and members in a state that this version of
    Kafka does not know. A static member that left for a restart (epoch -2) is not evaluated either. The coordinator
    reserves the partitions of this member during the session timeout, and does not expect the member to reconcile. The
    session timeout can be longer than the rebalance timeout. Members that wait for these partitions do lag their
    targets. Share groups are not evaluated, because their members need not reconcile. Streams groups are not evaluated
    in the polling mode, because coordinators do not report the tasks of members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.evaluation.rebalances.detectors import Limits
from streaming.events import CONSUMER, STREAMS
from streaming.group.modern import ModernGroup, is_reconciled
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.modern import UNKNOWN_MEMBER_STATE, MemberAssignment, ModernMember

STUCK_RECONCILIATION = "stuck_reconciliation"

AWAY_EPOCH = -2
"""Epoch of a static member that left and may return (`LEAVE_GROUP_STATIC_MEMBER_EPOCH`)."""


@dataclass(frozen=True, slots=True)
class LaggingMember:
    """A member that has not reached its target.

    `current` is its current assignment. `since_ms` is the start of its lag (rule 15).
    """

    current: MemberAssignment
    since_ms: int


def lagging_members(snapshot: GroupSnapshot, known: Mapping[str, LaggingMember]) -> Mapping[str, LaggingMember]:
    """Return, by member id, the members that lag their targets (rule 15). `known` is the previous result.

    >>> lagging_members(GroupSnapshot("g"), {})
    {}
    """
    group, position = snapshot.modern, snapshot.position
    if group is None or position is None or not group.unreconciled_members or not _reports_reconciliation(snapshot):
        return {}
    lagging = {}
    for member_id in group.members:
        current = group.currents.get(member_id)
        if current is None or current.member_epoch == AWAY_EPOCH or is_reconciled(group, member_id):
            continue
        if not _is_state_known(current, snapshot):
            continue
        before = known.get(member_id)
        is_same = before is not None and before.current == current
        lagging[member_id] = before if before and is_same else LaggingMember(current, position.timestamp_ms)
    return lagging


def stuck_members(
    group: ModernGroup, lagging: Mapping[str, LaggingMember], now_ms: int, limits: Limits
) -> Mapping[str, LaggingMember]:
    """Return, by member id, the members that lag for longer than allowed (rule 16)."""
    return {
        member_id: lag
        for member_id, lag in lagging.items()
        if now_ms - lag.since_ms > allowed_ms(group.members[member_id], limits)
    }


def allowed_ms(member: ModernMember, limits: Limits) -> float:
    """Return the allowed lag of a member in milliseconds (rule 16)."""
    reported_ms = member.rebalance_timeout_ms
    return 1000 * limits.stuck_after_seconds if reported_ms is None or reported_ms <= 0 else reported_ms


def _reports_reconciliation(snapshot: GroupSnapshot) -> bool:
    return snapshot.group_type == CONSUMER or (snapshot.group_type == STREAMS and not snapshot.is_polled)


def _is_state_known(current: MemberAssignment, snapshot: GroupSnapshot) -> bool:
    """Return True if it is known whether the member has its target.

    The answer to a poll never contains the member state. In this case, the assignment of the member is compared with
    its target.
    """
    return snapshot.is_polled or current.state != UNKNOWN_MEMBER_STATE
