"""The laws of every group whose members divide partitions of topics among them, whatever its strategy.

Rules:

1. The laws hold for groups of protocol type `consumer`, classic and KIP-848. A KIP-848 group is held to its targets. A
   group without members has no laws to keep.
2. Nothing is known while the group rebalances or its state is unknown, and while a topic id has no name: the owner of
   any partition may be hidden there. While the assignment of a member is unknown, it may own any partition: which ones
   have no owner is unknown, and rules 6 and 7 are checked for the other members.
3. Each partition of a subscribed topic that exists has an owner. A partition exists if a sample that is not older than
   the record shows it, or if an older sample shows it and the record assigns a higher partition of the topic.
   Where only an older sample shows it, it is *awaited*: remembered, and not counted until a later sample decides.
4. A partition has been *unowned* since the record that left it out, if samples show that it existed then. If not, it
   has been so since the first sample that shows it. Later records that leave it out, too, do not change this time.
5. An unowned partition is *withheld* if a member claims it and the strategy is not eager: the next round of a
   cooperative rebalance (KIP-429) hands it over. This is legal for a short time.
6. The owner of a partition subscribes to its topic. Unknown for members whose subscription is unknown.
7. A partition has one owner. Some strategies share partitions on purpose: Faust gives standby tables to its consumers
   as partitions. So this law holds only for strategies that are known not to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import msgspec

from assignors import BUILT_IN
from streaming.evaluation.assignment.leader import KAFKA_GO_RACKS, KAFKAJS_PROTOCOL
from streaming.evaluation.assignment.sampled_topics import is_certain
from streaming.evaluation.rebalances.partition_movement import EAGER_STRATEGIES
from streaming.events import CONSUMER
from streaming.group.members import TopicPartitions
from streaming.group.snapshot import ASSIGNING, REBALANCING, UNKNOWN, GroupSnapshot
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, KAFKA_STREAMS_PROTOCOL

ONE_OWNER_STRATEGIES = frozenset({*BUILT_IN, KAFKA_STREAMS_PROTOCOL, KAFKAJS_PROTOCOL, KAFKA_GO_RACKS})
"""Strategies of classic groups that never give a partition to two members."""

_NOTHING_KNOWN_IN = frozenset({UNKNOWN, ASSIGNING, *REBALANCING})


class Unowned(msgspec.Struct, frozen=True):
    """A partition of a subscribed topic that no member owns, and since when at the latest (rules 3 to 5)."""

    topic: str
    partition: int
    since_ms: int
    is_withheld: bool = False
    is_pending: bool = False


class RuleViolations(msgspec.Struct, frozen=True):
    """Where a group breaks the laws, sorted.

    `is_known` False: `unowned` is what was known last, and the rest is what is known of some members (rule 2).
    """

    unowned: tuple[Unowned, ...] = ()
    owned_twice: TopicPartitions = ()
    not_subscribed: TopicPartitions = ()
    is_known: bool = True

    def unowned_partitions(self) -> int | None:
        """Partitions without an owner, without those that a cooperative round withholds; None where unknown."""
        return sum(not (one.is_withheld or one.is_pending) for one in self.unowned) if self.is_known else None


class _Member(msgspec.Struct, frozen=True):
    """What the laws need of one member; None is unknown."""

    topics: Collection[str] | None
    held: TopicPartitions | None
    claimed: TopicPartitions = ()


def rule_violations(snapshot: GroupSnapshot, before: RuleViolations | None) -> RuleViolations | None:
    """Hold a group to the laws; `before` is what was found last. None for a group that has no laws to keep.

    >>> from streaming.protocol.classic import Assignment, ClassicMember, GroupMetadata, Subscription
    >>> from streaming.events import Position, TopicMetadata
    >>> said, got = Subscription(3, ("t",), None, (), -1, None), Assignment(3, (("t", 0),), None)
    >>> metadata = GroupMetadata("g", "consumer", 1, "mine", "a", None,
    ...     (ClassicMember("a", None, "a", "/h", 1, 1, said, got),), 3)
    >>> group = GroupSnapshot("g", "classic", "Stable", Position(0, 1, 1_000), 1, metadata,
    ...     topics={"t": TopicMetadata(2, 5_000)})
    >>> rule_violations(group, None).unowned
    (Unowned(topic='t', partition=1, since_ms=5000, is_withheld=False, is_pending=False),)
    """
    found = with_unowned(snapshot, before)
    if found is None or not _shows_owners(snapshot):
        return found
    owners: dict[tuple[str, int], int] = defaultdict(int)
    strangers = set()
    for member in _members(snapshot):
        for at in set(member.held or ()):
            owners[at] += 1
            if member.topics is not None and at[0] not in member.topics:
                strangers.add(at)
    twice = (at for at, times in owners.items() if times > 1) if has_one_owner(snapshot) else ()
    return msgspec.structs.replace(found, owned_twice=tuple(sorted(twice)), not_subscribed=tuple(sorted(strangers)))


def with_unowned(snapshot: GroupSnapshot, before: RuleViolations | None) -> RuleViolations | None:
    """The same for rule 3 alone, the one law whose breach has a time: what stays of a record that is not the last."""
    if not _is_bound(snapshot) or snapshot.position is None:
        return None
    known = before or RuleViolations()
    members = list(_members(snapshot)) if _shows_owners(snapshot) else []
    if not members or any(member.held is None for member in members):
        return RuleViolations(known.unowned, is_known=False)
    since_ms = {(one.topic, one.partition): one.since_ms for one in known.unowned}
    claimed = set() if snapshot.protocol in EAGER_STRATEGIES else {at for member in members for at in member.claimed}
    return RuleViolations(
        tuple(
            Unowned(
                *(at := (found.topic, partition)),
                since_ms=since_ms.get(at, found.since_ms),
                is_withheld=at in claimed,
                is_pending=partition >= found.proven,
            )
            for found in _left_out(snapshot, members)
            for partition in found.partitions
        )
    )


def _is_bound(snapshot: GroupSnapshot) -> bool:
    """Rule 1."""
    if snapshot.is_over or not snapshot.member_count():
        return False
    if snapshot.classic is not None:
        return snapshot.classic.protocol_type == CONSUMER_PROTOCOL_TYPE
    return snapshot.group_type == CONSUMER


def _shows_owners(snapshot: GroupSnapshot) -> bool:
    """Rule 2."""
    hides_names = snapshot.modern is not None and bool(snapshot.modern.unnamed_target_ids())
    return snapshot.state not in _NOTHING_KNOWN_IN and not hides_names


def _members(snapshot: GroupSnapshot) -> Iterator[_Member]:
    group = snapshot.modern
    if group is not None:
        has_targets = group.assignment_epoch is not None
        for member_id in group.members:
            target = group.targets.get(member_id, None if has_targets else ())
            held = None if target is None else tuple((group.topic_names[of], at) for of, all_ in target for at in all_)
            yield _Member(group.topics_of(member_id), held)
        return
    for joined in snapshot.classic.members if snapshot.classic else ():
        said, got = joined.subscription, joined.assignment
        topics = None if said is None else frozenset(said.topics)
        yield _Member(topics, None if got is None else got.partitions, said.owned if said else ())


class _LeftOut(msgspec.Struct, frozen=True):
    """Partitions of a topic that nobody owns, and since when. Those below `proven` exist for certain."""

    topic: str
    partitions: list[int]
    since_ms: int
    proven: int


def _left_out(snapshot: GroupSnapshot, members: list[_Member]) -> Iterator[_LeftOut]:
    """Rules 3 and 4. Counted is up to the sampled number: the numbers in a record may be absurd."""
    numbers: Mapping[str, set[int]] = defaultdict(set)
    for member in members:
        for topic, partition in member.held or ():
            numbers[topic].add(partition)
    written_at_ms = snapshot.position.timestamp_ms if snapshot.position else 0
    for topic in snapshot.subscribed_topics():
        sampled, held = snapshot.topics.get(topic), numbers.get(topic, set())
        count = sampled.partitions or 0 if sampled else 0
        if sampled is None or held.issuperset(range(count)):
            continue
        is_older = sampled.sampled_at_ms < written_at_ms
        was_there = is_older or is_certain(snapshot, sampled)
        yield _LeftOut(
            topic=topic,
            partitions=[partition for partition in range(count) if partition not in held],
            since_ms=written_at_ms if was_there else max(written_at_ms, sampled.known_since_ms),
            proven=max(held, default=-1) + 1 if is_older else count,
        )


def has_one_owner(snapshot: GroupSnapshot) -> bool:
    """Whether no partition may be given to two members (rule 7)."""
    return snapshot.modern is not None or snapshot.protocol in ONE_OWNER_STRATEGIES
