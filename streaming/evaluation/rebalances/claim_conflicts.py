"""Find contradictions in the claims and in the subscriptions that classic members send when they join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from assignors.coordinator import EAGER_STRATEGIES
from streaming.group.members import GroupMember, TopicPartitions
from streaming.group.snapshot import GroupSnapshot


class RecordedClaims(msgspec.Struct, frozen=True):
    """The contradictions in the claims and subscriptions of one generation.

    `claimed_twice` contains the partitions that two members claim to own. The two claims of a partition have the same
    generation, or both have no generation. `eager_claimers` is the number of members that claim partitions under an
    eager strategy. With an eager strategy, members must revoke all partitions before they join. If the strategy is not
    eager, `eager_claimers` is 0. `subscriptions` is the number of different subscriptions among the members.
    """

    claimed_twice: TopicPartitions = ()
    eager_claimers: int = 0
    subscriptions: int = 0


def recorded_claims(snapshot: GroupSnapshot, of_group: Iterable[GroupMember]) -> RecordedClaims:
    """Return the contradictions in a snapshot. Only classic members claim partitions.

    >>> recorded_claims(GroupSnapshot("g"), ())
    RecordedClaims(claimed_twice=(), eager_claimers=0, subscriptions=0)
    """
    subscriptions = len({member.subscribed_topics for member in of_group})
    if snapshot.classic is None:
        return RecordedClaims(subscriptions=subscriptions)
    joined = [member.subscription for member in snapshot.classic.members if member.subscription]
    claims = Counter(
        (subscription.generation_id, claim) for subscription in joined for claim in set(subscription.owned)
    )
    return RecordedClaims(
        claimed_twice=tuple(sorted({claim for (_, claim), claimers in claims.items() if claimers > 1})),
        eager_claimers=sum(bool(subscription.owned) for subscription in joined)
        if snapshot.protocol in EAGER_STRATEGIES
        else 0,
        subscriptions=subscriptions,
    )
