"""KIP-848 members that do not get to the partitions they shall have.

The coordinator tells each member its target; the member gives up what it must, then takes what is free, and its current
assignment says how far it is. The rules go on from `silence.py`:

15. A member *lags* its target if it is not Stable at the epoch the targets were computed for. It lags since the group's
    last record at the first look at it in this state; so the time told is a lower bound, over a restart too. Whatever
    it does on its way (another epoch, partitions given up or taken) starts its time anew.
16. `stuck_reconciliation`: a member lags for longer than its rebalance timeout, the time in which it has to give
    partitions up; where nobody tells that (a coordinator that was asked), for longer than `stuck_after_seconds`. The
    coordinator fences who does not give up in time, so either that does not happen, or the member waits for another.
17. Of a member without a current assignment, or in a state this version of Kafka does not know, nothing is said; nor of
    a static member that is away (epoch -2): the coordinator keeps its partitions for its session timeout, which may be
    longer than the rebalance timeout, and does not expect it to reconcile. Members that wait for it do lag. Nor is
    anything said of share groups, whose members need not reconcile, nor of streams groups that were asked for: their
    tasks are not told.
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
"""Epoch of a static member that left and may come back (`LEAVE_GROUP_STATIC_MEMBER_EPOCH`)."""


@dataclass(frozen=True, slots=True)
class Lagging:
    """A member on its way to its target: where it stands, and since when it has stood there at the latest."""

    current: MemberAssignment
    since_ms: int


def lagging_members(snapshot: GroupSnapshot, known: Mapping[str, Lagging]) -> Mapping[str, Lagging]:
    """The members that lag their targets by member id (rule 15); `known` are those of the look before.

    >>> lagging_members(GroupSnapshot("g"), {})
    {}
    """
    group, position = snapshot.modern, snapshot.position
    if group is None or position is None or not group.unreconciled_members or not _tells_reconciling(snapshot):
        return {}
    lagging = {}
    for member_id in group.members:
        current = group.currents.get(member_id)
        if current is None or current.member_epoch == AWAY_EPOCH or is_reconciled(group, member_id):
            continue
        if not _is_told(current, snapshot):
            continue
        before = known.get(member_id)
        stands = before is not None and before.current == current
        lagging[member_id] = before if before and stands else Lagging(current, position.timestamp_ms)
    return lagging


def stuck_members(
    group: ModernGroup, lagging: Mapping[str, Lagging], now_ms: int, limits: Limits
) -> Mapping[str, Lagging]:
    """Those that lag for longer than they may (rule 16), by member id."""
    return {
        member_id: lag
        for member_id, lag in lagging.items()
        if now_ms - lag.since_ms > allowed_ms(group.members[member_id], limits)
    }


def allowed_ms(member: ModernMember, limits: Limits) -> float:
    """How long a member may take."""
    reported_ms = member.rebalance_timeout_ms
    return 1000 * limits.stuck_after_seconds if reported_ms is None or reported_ms <= 0 else reported_ms


def _tells_reconciling(snapshot: GroupSnapshot) -> bool:
    return snapshot.group_type == CONSUMER or (snapshot.group_type == STREAMS and not snapshot.is_polled)


def _is_told(current: MemberAssignment, snapshot: GroupSnapshot) -> bool:
    """A coordinator's answer never names the state; what it does not have yet is seen from what it holds."""
    return snapshot.is_polled or current.state != UNKNOWN_MEMBER_STATE
