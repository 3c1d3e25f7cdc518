"""Summarize a rebalance. The group's state stores the summaries, and the detectors evaluate them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from streaming.evaluation.rebalances.member_changes import GONE, JOINED, REJOINED, MemberChange
from streaming.evaluation.rebalances.rebalances import Rebalance
from streaming.events import CLASSIC
from streaming.group.members import member_name

KEPT_NAMES = 32
"""Maximum number of member names for each kind of change. Only `changed_members` includes the other members."""


class MemberName(msgspec.Struct, frozen=True):
    """The identity of a member (`key`), and its client id and host."""

    key: str
    client: str
    is_static: bool


class RebalanceSummary(msgspec.Struct, frozen=True):
    """The stored summary of a `Rebalance`. A summary contains numbers of partitions instead of lists of partitions."""

    timestamp_ms: int
    generation_id: int
    kind: str
    causes: tuple[str, ...] | None
    protocol: str | None
    members: int
    joined: tuple[MemberName, ...] = ()
    gone: tuple[MemberName, ...] = ()
    rejoined: tuple[MemberName, ...] = ()
    changed_members: int = 0
    skipped_generations: int = 0
    withheld_partitions: int = 0
    unowned_partitions: int = 0
    unowned_before_partitions: int = 0
    claimed_twice_partitions: int = 0
    eager_claimers: int = 0
    subscriptions: int = 0
    group_type: str = CLASSIC

    @property
    def is_whole(self) -> bool:
        """True if the summary names every member that joined, left or rejoined."""
        return self.changed_members == len(self.joined) + len(self.gone) + len(self.rejoined)


def summarize(rebalance: Rebalance) -> RebalanceSummary:
    """Return the summary of a rebalance."""
    by_change = {
        change: [member for member in rebalance.changes if change in member.changes]
        for change in (JOINED, GONE, REJOINED)
    }
    return RebalanceSummary(
        timestamp_ms=rebalance.position.timestamp_ms,
        generation_id=rebalance.generation_id,
        kind=rebalance.kind,
        causes=rebalance.causes,
        protocol=rebalance.protocol,
        members=rebalance.members,
        joined=_names(by_change[JOINED]),
        gone=_names(by_change[GONE]),
        rejoined=_names(by_change[REJOINED]),
        changed_members=sum(map(len, by_change.values())),
        skipped_generations=rebalance.skipped_generations or 0,
        withheld_partitions=len(rebalance.movement.withheld),
        unowned_partitions=len(rebalance.movement.unowned),
        unowned_before_partitions=rebalance.movement.unowned_before_partitions,
        claimed_twice_partitions=len(rebalance.claims.claimed_twice),
        eager_claimers=rebalance.claims.eager_claimers,
        subscriptions=rebalance.claims.subscriptions or 0,
        group_type=rebalance.group_type,
    )


def _names(members: Sequence[MemberChange]) -> tuple[MemberName, ...]:
    return tuple(
        MemberName(one.key, member_name(one.client_id, one.client_host, None), one.group_instance_id is not None)
        for one in members[:KEPT_NAMES]
    )
