"""What is remembered of a rebalance beyond its row: enough to see what the last of them show together."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streaming.evaluation.rebalances.member_changes import JOINED, REJOINED, GONE, MemberChange
from streaming.evaluation.rebalances.rebalances import Rebalance
from streaming.events import CLASSIC
from streaming.group.members import member_name

KEPT_NAMES = 32
"""Members named in each of them; where more came or went at once, their number is kept."""


class MemberName(msgspec.Struct, frozen=True):
    """A member: by what it is told from others, and what program on what host it is."""

    key: str
    client: str
    is_static: bool


class RebalanceSummary(msgspec.Struct, frozen=True):
    """What is remembered of a rebalance, beyond its row. The fields are those of `Rebalance`, counted."""

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
        """Whether every member that came or went is named."""
        return self.changed_members == len(self.joined) + len(self.gone) + len(self.rejoined)


def summarize(rebalance: Rebalance) -> RebalanceSummary:
    """What is remembered of a rebalance when its row is written."""
    came_or_went = {change: rebalance.members_that(change) for change in (JOINED, GONE, REJOINED)}
    return RebalanceSummary(
        timestamp_ms=rebalance.position.timestamp_ms,
        generation_id=rebalance.generation_id,
        kind=rebalance.kind,
        causes=rebalance.causes,
        protocol=rebalance.protocol,
        members=rebalance.members,
        joined=_names(came_or_went[JOINED]),
        gone=_names(came_or_went[GONE]),
        rejoined=_names(came_or_went[REJOINED]),
        changed_members=sum(map(len, came_or_went.values())),
        skipped_generations=rebalance.skipped_generations or 0,
        withheld_partitions=len(rebalance.movement.withheld),
        unowned_partitions=len(rebalance.movement.unowned),
        unowned_before_partitions=rebalance.movement.unowned_before_partitions,
        claimed_twice_partitions=len(rebalance.claims.claimed_twice),
        eager_claimers=rebalance.claims.eager_claimers,
        subscriptions=rebalance.claims.subscriptions,
        group_type=rebalance.group_type,
    )


def _names(members: Iterable[MemberChange]) -> tuple[MemberName, ...]:
    named = (
        MemberName(
            member.key,
            member_name(member.client_id, member.client_host, None),
            member.group_instance_id is not None,
        )
        for member in members
    )
    return tuple(named)[:KEPT_NAMES]
