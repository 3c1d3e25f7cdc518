"""Who owned which partition before: the claims of all members, with their conflicts settled by generation.

A classic group has no record of its own assignment: members tell the leader what they own (KIP-54 in the userData of
``sticky``; KIP-429 in ``ownedPartitions``). A member that missed a rebalance can come back and claim what now belongs
to another, so every claim carries the generation it was made in (KIP-792): the newer claim wins, and of two claims of
one generation neither can be believed.

Source: ``AbstractStickyAssignor.allSubscriptionsEqual`` and ``prepopulateCurrentAssignments``. Java's outcome depends
on the order in which it meets the claims; ours is the order of member ids. Unlike Java we drop claims to partitions
that do not exist: with them it can throw, or assign a partition that was deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assignors.model import NO_GENERATION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assignors.model import MemberSubscription, TopicPartition

NOBODY = -1
"""In place of a member's position: the partition has no owner."""

Owners = dict[str, list[int]]
"""Topic -> for each partition the position of its owner among the members, or NOBODY."""


@dataclass(slots=True)
class Claims:
    """The claims settled. ``contested`` ones were made twice in one generation, whoever has the partition now."""

    owners: Owners
    contested: set[TopicPartition] = field(default_factory=set)
    max_generation: int = NO_GENERATION


def settle_claims(
    members: Sequence[MemberSubscription], partitions: Mapping[str, int], scan: Iterable[int] | None = None
) -> Claims:
    """Find the owner of every partition of ``partitions`` (topic -> count) from what ``members`` claim.

    ``scan`` is the order, by position, in which claims are met; that of ``members`` if left out.

    Java holds two numbers to be a claim's generation: its own when it is the newcomer, the Subscription's when it is
    the one in place. They differ only for sticky members of mixed versions.

    >>> from assignors.model import MemberSubscription as Member
    >>> old = Member("A", ("t0",), owned=(("t0", 0), ("t0", 1)), generation_id=4)
    >>> new = Member("B", ("t0",), owned=(("t0", 1),), generation_id=5)
    >>> settle_claims([old, new], {"t0": 3}).owners
    {'t0': [0, 1, -1]}
    """
    claims = Claims({topic: [NOBODY] * count for topic, count in partitions.items()})
    unowned: set[TopicPartition] = set()  # claimed, but by two of one generation: it has a claimant and no owner
    for claimant in range(len(members)) if scan is None else scan:
        member = members[claimant]
        claims.max_generation = max(claims.max_generation, member.claim_generation)
        for partition in member.owned:
            topic, number = partition
            owners = claims.owners.get(topic, ())
            if not 0 <= number < len(owners) or owners[number] == claimant:
                continue
            rival = owners[number]
            if rival == NOBODY:
                claims.owners[topic][number] = claimant
            elif member.claim_generation >= members[rival].rival_generation:
                claims.owners[topic][number] = claimant
                if member.claim_generation > members[rival].rival_generation:
                    unowned.discard(partition)
                else:
                    unowned.add(partition)
                    claims.contested.add(partition)
    for topic, number in unowned:
        claims.owners[topic][number] = NOBODY
    return claims


def earlier_owners(
    members: Sequence[MemberSubscription], max_generation: int, scan: Iterable[int]
) -> dict[TopicPartition, int]:
    """Map partitions to the position of the member with the newest claim *older* than the group's newest generation.

    The general algorithm prefers to move a partition back there, where part of its state may still be. The first of
    several claims of one generation, in the order of ``scan``, counts.
    """
    newest: dict[TopicPartition, int] = {}
    for claimant in scan:
        member = members[claimant]
        if member.claim_generation >= max_generation:
            continue
        for partition in member.owned:
            rival = newest.get(partition)
            if rival is None or member.claim_generation > members[rival].claim_generation:
                newest[partition] = claimant
    return newest
