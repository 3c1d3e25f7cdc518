"""Find contradictions in the claims and in the subscriptions that classic members send when they join."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from assignors.coordinator import EAGER_STRATEGIES
from streaming.group.claims import member_claim
from streaming.group.members import GroupMember, TopicPartitions
from streaming.group.snapshot import GroupSnapshot


class RecordedClaims(msgspec.Struct, frozen=True):
    """The contradictions in the claims and subscriptions of one generation.

    `claimed_twice` contains the partitions that two members claim to own. The two claims of a partition have the same
    generation, or both have no generation. A `sticky` member revokes its partitions before it joins. So its claim in
    the user data is not compared. `eager_claimers` is the number of members that claim partitions in `ownedPartitions`
    under an eager strategy. With an eager strategy, members must revoke all partitions before they join. If the
    strategy is not eager, `eager_claimers` is 0. `subscriptions` is the number of different subscriptions of the
    members whose subscription is known. It is None if every subscription is unknown, and 0 if there are no members.
    """

    claimed_twice: TopicPartitions = ()
    eager_claimers: int = 0
    subscriptions: int | None = 0


def recorded_claims(snapshot: GroupSnapshot, of_group: Sequence[GroupMember]) -> RecordedClaims:
    """Return the contradictions in a snapshot. Only classic members claim partitions.

    >>> recorded_claims(GroupSnapshot("g"), ())
    RecordedClaims(claimed_twice=(), eager_claimers=0, subscriptions=0)
    """
    known = {member.subscribed_topics for member in of_group if member.subscribed_topics is not None}
    subscriptions = len(known) if known or not of_group else None
    if snapshot.classic is None:
        return RecordedClaims(subscriptions=subscriptions)
    joined = [member.subscription for member in snapshot.classic.members if member.subscription]
    claimed = [member_claim(subscription, snapshot.protocol) for subscription in joined if subscription.owned]
    claims = Counter((claim.generation_id, at) for claim in claimed for at in set(claim.partitions))
    return RecordedClaims(
        claimed_twice=tuple(sorted({at for (_, at), claimers in claims.items() if claimers > 1})),
        eager_claimers=sum(bool(subscription.owned) for subscription in joined)
        if snapshot.protocol in EAGER_STRATEGIES
        else 0,
        subscriptions=subscriptions,
    )
