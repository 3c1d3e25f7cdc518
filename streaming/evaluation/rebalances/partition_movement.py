"""What went from whom to whom at a rebalance, how much of it had to, and what is left to nobody.

Counted from the records alone: which partitions a topic has follows from who was given what, so a row says the same
whenever the topic is sampled. A topic of which not all partitions up to the highest are assigned has no fewest moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec

from assignors import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.fairness.fewest_moves import count_moves
from streaming.events import CLASSIC, CONSUMER
from streaming.group.members import GroupMember, TopicPartitions
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, KAFKA_STREAMS_PROTOCOL

EAGER_STRATEGIES = frozenset({"range", "roundrobin", "sticky"})
"""Of Kafka's own strategies those under which members give up everything before they join (KIP-429)."""


Held = Mapping[str, TopicPartitions]
"""By member (`member_key`) what it holds."""


class PartitionMovement(msgspec.Struct, frozen=True):
    """What was moved at one rebalance, and what has no owner after it.

    Attributes:
        moved_partitions: None where unknown, or counted in the round that hands over what this one withheld.
        fewest_moves: None where `moved_partitions` is, or where a partition has no owner or several.
        is_exact: False says that `fewest_moves` is only a lower bound.
        withheld: partitions a member of the group has to give up before somebody gets them (KIP-429, round one).
        unowned: all that nobody was given and somebody had, claims, or lacked before; of subscribed topics.
        unowned_before_partitions: how many of `unowned` nobody had after the rebalance before either.

    """

    moved_partitions: int | None = None
    fewest_moves: int | None = None
    is_exact: bool = False
    withheld: TopicPartitions = ()
    unowned: TopicPartitions = ()
    unowned_before_partitions: int = 0


class Earlier(msgspec.Struct, frozen=True):
    """Who held what before: owners from before all rounds (`held`), as of the last round (`held_last`), and nobody's.

    `should_report` False: no record tells all of before; `held` is what members claim, or what is known of some.
    """

    held: Held
    held_last: Held = {}
    unowned: TopicPartitions = ()
    should_report: bool = True


def member_key(member: GroupMember) -> str:
    """By what a member is the same before and after: a static member comes back under another member id."""
    return member.member_id if member.group_instance_id is None else member.group_instance_id


def held_by(group: Iterable[GroupMember]) -> Held:
    """What each member was given, or shall have."""
    return {member_key(member): member.target or () for member in group}


def claimed_by(group: Iterable[GroupMember]) -> Held:
    """What each member claimed to own when it joined."""
    return {member_key(member): member.owned or () for member in group}


def is_all_known(group: Iterable[GroupMember]) -> bool:
    """Whether it is known of every member what it shall have."""
    return all(member.target is not None for member in group)


def movement(earlier: Earlier, now: Sequence[GroupMember], after: GroupSnapshot) -> PartitionMovement:
    """Hold what members have now against who had what before.

    `a` has `t-0` and shall give it to `b`. A cooperative leader first gives it to nobody:

    >>> def member(name, owned, target):
    ...     return GroupMember(name, None, name, "/h", None, ("t",), None, None, owned, target, target, ())
    >>> group = [member("a", (("t", 0), ("t", 1)), (("t", 1),)), member("b", (), ())]
    >>> from streaming.protocol.classic import GroupMetadata
    >>> metadata = GroupMetadata("g", "consumer", 7, "cooperative-sticky", "a", None, (), 3)
    >>> found = movement(Earlier(claimed_by(group)), group, GroupSnapshot("g", classic=metadata))
    >>> found.moved_partitions, found.withheld
    (None, (('t', 0),))
    """
    if not is_all_known(now):
        return PartitionMovement()
    held, claims = held_by(now), claimed_by(now)
    assigned = set(chain.from_iterable(held.values()))
    subscribed = {topic for member in now for topic in member.subscribed_topics or ()}
    had = chain(chain.from_iterable((earlier.held_last or earlier.held).values()), *claims.values(), earlier.unowned)
    unowned = sorted(at for at in set(had) - assigned if at[0] in subscribed and _exists(after, at))
    withheld = _withheld(unowned, [claims, _of_present(earlier.held_last, held)]) if _may_withhold(after) else ()
    found = PartitionMovement(
        withheld=withheld,
        unowned=tuple(unowned),
        unowned_before_partitions=len(set(unowned).intersection(earlier.unowned)),
    )
    if not earlier.should_report or withheld or not _is_counted(after, now):
        return found
    moved, fewest, is_exact = _moves(earlier.held, held, now, after, is_whole=not unowned)
    return msgspec.structs.replace(found, moved_partitions=moved, fewest_moves=fewest, is_exact=is_exact)


def _exists(after: GroupSnapshot, topic_partition: TopicPartition) -> bool:
    """Whether no sample says that the topic lost the partition."""
    sampled = after.topics.get(topic_partition[0])
    return sampled is None or topic_partition[1] < (sampled.partitions or 0)


def _may_withhold(after: GroupSnapshot) -> bool:
    return after.classic is not None and after.protocol not in EAGER_STRATEGIES


def _of_present(then: Held, now: Held) -> Held:
    return {key: held for key, held in then.items() if key in now}


def _withheld(unowned: Iterable[TopicPartition], holders: Iterable[Held]) -> TopicPartitions:
    with_members = {at for held in holders for at in chain.from_iterable(held.values())}
    return tuple(at for at in unowned if at in with_members)


def _is_counted(after: GroupSnapshot, now: Iterable[GroupMember]) -> bool:
    """Whether members divide partitions among them, one owner each, and all is known of who shall have what."""
    if after.group_type not in {CLASSIC, CONSUMER} or (after.protocol_type or "") != CONSUMER_PROTOCOL_TYPE:
        return after.group_type in {CLASSIC, CONSUMER} and not after.member_count()
    return is_all_known(now)


def _owners(held: Held) -> dict[TopicPartition, str]:
    """The owner of each partition that has one; those with several have none that could be named."""
    owners: dict[TopicPartition, str] = {}
    several = set()
    for key, topic_partitions in held.items():
        for topic_partition in topic_partitions:
            if owners.setdefault(topic_partition, key) != key:
                several.add(topic_partition)
    return {at: key for at, key in owners.items() if at not in several}


def _moves(
    then: Held, held: Held, now: Sequence[GroupMember], after: GroupSnapshot, *, is_whole: bool
) -> tuple[int, int | None, bool]:
    """How many moved, the fewest, and whether that is exact. What did not move needs no search for fewer."""
    owners, owners_now = _owners(then), _owners(held)
    moved = sum(owners_now.get(at, key) != key for at, key in owners.items())
    partitions = whole_topics(held.values())
    is_lawful = is_whole and None not in partitions.values() and len(owners_now) == sum(map(len, held.values()))
    if not is_lawful or after.protocol == KAFKA_STREAMS_PROTOCOL:
        return moved, None, False
    if not moved:
        return 0, 0, True
    members = tuple(MemberSubscription(member_key(member), member.subscribed_topics or ()) for member in now)
    counts = {topic: count for topic, count in partitions.items() if count is not None}
    found = count_moves(owners, GroupSpec(members, counts), GroupAssignment(dict(held)))
    return moved, found.fewest, found.is_exact


def whole_topics(held: Iterable[TopicPartitions]) -> Mapping[str, int | None]:
    """Partitions of each topic that anybody holds; None where a number below the highest is held by nobody."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for topic, partition in chain.from_iterable(held):
        numbers[topic].add(partition)
    return {topic: len(of) if min(of) == 0 and max(of) == len(of) - 1 else None for topic, of in numbers.items()}


def metadata_changed(then: Sequence[GroupMember], now: Sequence[GroupMember], after: GroupSnapshot) -> bool:
    """Whether a topic subscribed to before and after has more or fewer partitions assigned (`rebalances`, rule 6)."""
    if not is_all_known((*then, *now)):
        return False
    before = whole_topics([*held_by(then).values(), *claimed_by(then).values()])
    partitions = whole_topics([*held_by(now).values(), *claimed_by(now).values()])
    subscribed = {topic for member in then for topic in member.subscribed_topics or ()}
    return any(
        _has_changed(before.get(topic, 0), partitions.get(topic, 0), topic, after)
        for topic in subscribed.intersection(topic for member in now for topic in member.subscribed_topics or ())
    )


def _has_changed(then: int | None, now: int | None, topic: str, after: GroupSnapshot) -> bool:
    if then is None or now is None or then == now:
        return False
    sampled = after.topics.get(topic)
    return now > then or (sampled is not None and (sampled.partitions or 0) == now)
