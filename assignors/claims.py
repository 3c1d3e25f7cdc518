"""Finds the previous owner of each partition from the claims of all members.

In a classic group, the leader does not know the previous assignment. Each member *claims* its partitions: it sends a
list of them in ``userData`` (KIP-54) or in ``ownedPartitions`` (KIP-429). A member that missed a rebalance can later
claim partitions that now belong to a different member. So every claim contains a generation (KIP-792). The claim with
the newer generation wins. If two claims to a partition have the same generation, both claims are ignored.

Source: ``AbstractStickyAssignor.allSubscriptionsEqual`` and ``prepopulateCurrentAssignments``. As in Java, the result
can depend on the order in which the claims are read. This module ignores claims to partitions that do not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from assignors.model import NO_GENERATION, MemberSubscription, TopicPartition

NO_OWNER = -1
"""The value that ``Owners`` contains for a partition without an owner."""

Owners = dict[str, list[int]]
"""Maps each topic to a list. Element n is the owner of partition n: a position in the list of members, or NO_OWNER."""


@dataclass(slots=True)
class Claims:
    """The owner of each partition, computed from all claims.

    ``contested`` contains partitions that two members claim in the same generation. A contested partition still has an
    owner if a third member claims the partition in a newer generation.
    """

    owners: Owners
    contested: set[TopicPartition] = field(default_factory=set)
    max_generation: int = NO_GENERATION


def settle_claims(
    members: Sequence[MemberSubscription], partitions: Mapping[str, int], scan: Iterable[int] | None = None
) -> Claims:
    """Find the owner of each partition from the claims of ``members``.

    ``partitions`` maps each topic to its partition count. ``scan`` contains the positions of the members, in the
    order in which their claims are read (default: the order of ``members``).

    If two members claim a partition, Java compares ``rival_generation`` of the first member with ``claim_generation``
    of the second member. For one member, these two values differ only if the group contains sticky members of different
    versions.

    >>> from assignors.model import MemberSubscription as Member
    >>> old = Member("A", ("t0",), owned=(("t0", 0), ("t0", 1)), generation_id=4)
    >>> new = Member("B", ("t0",), owned=(("t0", 1),), generation_id=5)
    >>> settle_claims([old, new], {"t0": 3}).owners
    {'t0': [0, 1, -1]}
    """
    claims = Claims({topic: [NO_OWNER] * count for topic, count in partitions.items()})
    unowned: set[TopicPartition] = set()  # partitions that two members claim in the same generation
    for claimant in range(len(members)) if scan is None else scan:
        member = members[claimant]
        claims.max_generation = max(claims.max_generation, member.claim_generation)
        for partition in member.owned:
            topic, number = partition
            owners = claims.owners.get(topic, ())
            if not 0 <= number < len(owners) or owners[number] == claimant:
                continue
            rival = owners[number]
            if rival == NO_OWNER:
                claims.owners[topic][number] = claimant
            elif member.claim_generation >= members[rival].rival_generation:
                claims.owners[topic][number] = claimant
                if member.claim_generation > members[rival].rival_generation:
                    unowned.discard(partition)
                else:
                    unowned.add(partition)
                    claims.contested.add(partition)
    for topic, number in unowned:
        claims.owners[topic][number] = NO_OWNER
    return claims


def find_earlier_owners(
    members: Sequence[MemberSubscription], max_generation: int, scan: Iterable[int]
) -> dict[TopicPartition, int]:
    """Map each partition to its earlier owner, as a position in ``members``.

    Only claims with a generation *below* ``max_generation`` count. Of these, the claim with the newest generation wins.
    If several claims have this generation, the claim that comes first in ``scan`` wins. The general algorithm prefers
    the earlier owner, because this member may still have state for the partition.
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
