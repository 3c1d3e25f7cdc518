"""What members of a classic group said when they joined that should not be said together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from streaming.evaluation.rebalances.partition_movement import EAGER_STRATEGIES
from streaming.group.members import GroupMember, TopicPartitions
from streaming.group.snapshot import GroupSnapshot


class RecordedClaims(msgspec.Struct, frozen=True):
    """Claims and subscriptions of one generation that do not fit each other.

    Attributes:
        claimed_twice: partitions that two members claim to own, both since the same generation or without naming one.
        eager_claimers: members that claim partitions although the strategy is eager: they should have given them up.
        subscriptions: how many different subscriptions the members have.

    """

    claimed_twice: TopicPartitions = ()
    eager_claimers: int = 0
    subscriptions: int = 0


def recorded_claims(snapshot: GroupSnapshot, of_group: Iterable[GroupMember]) -> RecordedClaims:
    """Look at what the snapshot's members said; other than classic members claim nothing.

    >>> recorded_claims(GroupSnapshot("g"), ())
    RecordedClaims(claimed_twice=(), eager_claimers=0, subscriptions=0)
    """
    subscriptions = len({member.subscribed_topics for member in of_group})
    if snapshot.classic is None:
        return RecordedClaims(subscriptions=subscriptions)
    said = [member.subscription for member in snapshot.classic.members if member.subscription]
    claims = Counter((one.generation_id, claim) for one in said for claim in set(one.owned))
    return RecordedClaims(
        claimed_twice=tuple(sorted({claim for (_, claim), members_ in claims.items() if members_ > 1})),
        eager_claimers=sum(bool(one.owned) for one in said) if snapshot.protocol in EAGER_STRATEGIES else 0,
        subscriptions=subscriptions,
    )
