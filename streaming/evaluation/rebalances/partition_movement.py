"""Count the partitions that a rebalance moved, the necessary moves, and the partitions without an owner.

`assignors/fairness/fewest_moves.py` defines which moves are necessary.

The counts come only from records. So the rows do not depend on the time at which the monitor reads the records. The
assigned partitions show which partitions a topic has. A topic has a *gap* if a partition is unassigned, and a partition
with a higher number is assigned. If a topic has a gap, `fewest_moves` is unknown.

No record shows that a topic was deleted, or created again with fewer partitions. So if a classic group no longer
assigns a partition, the partition may no longer exist. A partition that may no longer exist counts as a partition
without an owner, and `fewest_moves` is unknown. In a KIP-848 group, the coordinator knows which topics exist. So if no
target contains a topic, the partitions of the topic are ignored. The targets contain topic ids. So a topic that was
created again is a different topic (`topic_names.without_taken_names`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from assignors import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.coordinator import EAGER_STRATEGIES
from assignors.fairness.fewest_moves import count_moves
from streaming.events import CLASSIC, CONSUMER
from streaming.group.members import GroupMember, TopicPartitions
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, COPARTITIONING_PROTOCOLS

Partitions = Mapping[str, TopicPartitions]
"""The partitions of each member, by `member_key`."""


class PartitionMovement(msgspec.Struct, frozen=True):
    """The partitions that one rebalance moved (`rebalances`, rule 7). None means unknown.

    `is_exact` is False if `fewest_moves` is only a lower bound. `withheld` contains the partitions that a member must
    revoke in this round (KIP-429, first round). No member gets these partitions in this round. `unowned` contains the
    partitions of subscribed topics that have no owner after the rebalance. Each of these partitions had an owner
    before, was already unowned, or is claimed by a member. Some of these partitions may no longer exist.
    `unowned_before_partitions` is the number of partitions in `unowned` that already had no owner after the previous
    rebalance.
    """

    moved_partitions: int | None = None
    fewest_moves: int | None = None
    is_exact: bool = False
    withheld: TopicPartitions = ()
    unowned: TopicPartitions = ()
    unowned_before_partitions: int = 0


class OwnersBefore(msgspec.Struct, frozen=True):
    """The partitions of each member before a rebalance.

    `held` contains each member's partitions before the first cooperative round. If there is no earlier snapshot, `held`
    contains the claims of the members. `held_last` contains each member's partitions after the previous round. If
    `is_complete` is False, the records do not show all earlier owners.
    """

    held: Partitions
    held_last: Partitions = {}
    unowned: TopicPartitions = ()
    is_complete: bool = True


def member_key(member: GroupMember) -> str:
    """Return the identity of a member. A static member that returns with a new member id has the same identity."""
    return member.member_id if member.group_instance_id is None else member.group_instance_id


def targets_by_member(group: Iterable[GroupMember]) -> Partitions:
    """Return the target partitions of each member."""
    return {member_key(member): member.target or () for member in group}


def claims_by_member(group: Iterable[GroupMember]) -> Partitions:
    """Return the partitions that each member claimed to own when it joined."""
    return {member_key(member): member.owned or () for member in group}


def is_all_known(group: Iterable[GroupMember]) -> bool:
    """Return True if the target of every member is known."""
    return all(member.target is not None for member in group)


def movement(owners_before: OwnersBefore, now: Sequence[GroupMember], after: GroupSnapshot) -> PartitionMovement:
    """Compare the members' partitions with the earlier owners.

    In the example, `t-0` will move from `a` to `b`. First, a cooperative leader withholds the partition `t-0`:

    >>> def member(name, owned, target):
    ...     return GroupMember(name, None, name, "/h", None, ("t",), None, None, owned, target, target, ())
    >>> group = [member("a", (("t", 0), ("t", 1)), (("t", 1),)), member("b", (), ())]
    >>> from streaming.protocol.classic import GroupMetadata
    >>> metadata = GroupMetadata("g", "consumer", 7, "cooperative-sticky", "a", None, (), 3)
    >>> found = movement(OwnersBefore(claims_by_member(group)), group, GroupSnapshot("g", classic=metadata))
    >>> found.moved_partitions, found.withheld
    (None, (('t', 0),))
    """
    if not is_all_known(now):
        return PartitionMovement()
    held, held_before = targets_by_member(now), owners_before.held_last or owners_before.held
    assigned = set(chain.from_iterable(held.values()))
    subscribed = {topic for member in now for topic in member.subscribed_topics or ()}
    had = chain(*held_before.values(), *claims_by_member(now).values(), owners_before.unowned)
    if after.modern is not None:
        subscribed.intersection_update(topic for topic, _ in assigned)
    unowned = tuple(sorted(at for at in set(had) - assigned if at[0] in subscribed))
    may_withhold = after.classic is not None and after.protocol not in EAGER_STRATEGIES
    withheld = withheld_from(now, owners_before.held_last, unowned) if may_withhold else ()
    unmoved = PartitionMovement(
        withheld=withheld,
        unowned=unowned,
        unowned_before_partitions=len(set(unowned).intersection(owners_before.unowned)),
    )
    is_counted = after.group_type in {CLASSIC, CONSUMER} and (
        after.protocol_type == CONSUMER_PROTOCOL_TYPE or not after.member_count()
    )
    if not owners_before.is_complete or withheld or not is_counted:
        return unmoved
    moved, fewest, is_exact = count_moves_between(owners_before.held, held, now, after.protocol, is_whole=not unowned)
    return msgspec.structs.replace(unmoved, moved_partitions=moved, fewest_moves=fewest, is_exact=is_exact)


def withheld_from(group: Sequence[GroupMember], held_before: Partitions, unowned: TopicPartitions) -> TopicPartitions:
    """Return the partitions in `unowned` that a member of the group claims, or had before the rebalance."""
    keys = map(member_key, group)
    with_members = set(chain(*claims_by_member(group).values(), *(held_before.get(key, ()) for key in keys)))
    return tuple(at for at in unowned if at in with_members)


def _owners(held: Partitions) -> dict[TopicPartition, str]:
    """Return the owner of each partition that has exactly one owner."""
    owners: dict[TopicPartition, str] = {}
    several = set()
    for key, topic_partitions in held.items():
        for topic_partition in topic_partitions:
            if owners.setdefault(topic_partition, key) != key:
                several.add(topic_partition)
    return {at: key for at, key in owners.items() if at not in several}


def count_moves_between(
    then: Partitions, held: Partitions, now: Sequence[GroupMember], protocol: str | None, *, is_whole: bool
) -> tuple[int, int | None, bool]:
    """Return the number of moves, the smallest possible number of moves, and True if the smallest number is exact.

    `is_whole` is False if a partition of a subscribed topic has no owner now. If a partition moved and a subscription
    is unknown, the smallest possible number is unknown.
    """
    owners, owners_now = _owners(then), _owners(held)
    moved = sum(owners_now.get(at, key) != key for at, key in owners.items())
    partitions = whole_topics(held.values())
    is_valid = is_whole and None not in partitions.values() and len(owners_now) == sum(map(len, held.values()))
    if not is_valid or protocol in COPARTITIONING_PROTOCOLS:
        return moved, None, False
    if not moved:
        return 0, 0, True
    subscribed = {member_key(member): member.subscribed_topics for member in now}
    members = tuple(MemberSubscription(key, topics) for key, topics in subscribed.items() if topics is not None)
    if len(members) < len(subscribed):
        return moved, None, False
    counts = {topic: count for topic, count in partitions.items() if count is not None}
    necessary = count_moves(owners, GroupSpec(members, counts), GroupAssignment(dict(held)))
    return moved, necessary.fewest, necessary.is_exact


def whole_topics(held: Iterable[TopicPartitions]) -> Mapping[str, int | None]:
    """Return the number of assigned partitions of each topic, or None if the topic has a gap."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for topic, partition in chain.from_iterable(held):
        numbers[topic].add(partition)
    return {
        topic: len(partitions) if min(partitions) == 0 and max(partitions) == len(partitions) - 1 else None
        for topic, partitions in numbers.items()
    }


def metadata_changed(then: Sequence[GroupMember], unowned_then: TopicPartitions, now: Sequence[GroupMember]) -> bool:
    """Return True if the number of known partitions of a topic rose (`rebalances`, rule 6)."""
    if not is_all_known((*then, *now)):
        return False
    before = whole_topics([*targets_by_member(then).values(), *claims_by_member(then).values(), unowned_then])
    partitions = whole_topics([*targets_by_member(now).values(), *claims_by_member(now).values()])
    subscribed = {topic for member in then for topic in member.subscribed_topics or ()}
    compared = subscribed.intersection(topic for member in now for topic in member.subscribed_topics or ())
    counts = ((before.get(topic, 0), partitions.get(topic, 0)) for topic in compared)
    return any(had is not None and has is not None and has > had for had, has in counts)
