"""Check the common rules. The common rules apply to groups of consumers, with any strategy.

Rules:

1. The common rules apply to classic groups of protocol type `consumer` and to KIP-848 consumer groups. For a KIP-848
   group, the targets are checked. The rules do not apply to a group without members.
2. While a group rebalances, the owners of partitions are unknown. The owners are also unknown if the state of the group
   or a topic name is unknown. The state of a classic group is unknown if its last record cannot be decoded. If the
   owners are unknown, no rule is checked. The start times of unowned partitions then stay the same (rule 4). A member
   with an unknown assignment may own any partition. So the unowned partitions of the member's group are unknown. Rules
   6 and 7 are checked only for members with a known assignment.
3. Each existing partition of a subscribed topic must have an owner. A partition certainly exists if a sample after the
   record contains the partition. If the sample is earlier than the record, the partitions below the highest assigned
   partition of the topic certainly exist. All other partitions are *pending*. A pending partition counts as unowned
   only after a later sample shows the partition.
4. Each unowned partition has a start time. Usually, the start time is the time of the first record in which the
   partition has no owner. If the partition was created after this record, the start time is the time of the first
   sample with the partition. The start time stays the same until the partition has an owner. Exception: if the monitor
   corrects the times of samples (`broker_clocks.py`), the start time can become earlier.
5. An unowned partition is *withheld* if a member claims the partition and the strategy is not eager. The next round of
   the cooperative rebalance (KIP-429) assigns a withheld partition. So a withheld partition is not a violation until it
   has had no owner for longer than `stuck_after_seconds` (rule 3 of `unowned.py`).
6. The owner of a partition must subscribe to the topic of the partition. For members with an unknown subscription, rule
   6 is not checked.
7. A partition must have only one owner. Rule 7 applies only to strategies that never assign a partition to two members.
   Other strategies assign a partition to several members on purpose. For example, Faust assigns the partition of a
   standby table to a second member.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import msgspec

from assignors import BUILT_IN
from assignors.coordinator import EAGER_STRATEGIES
from streaming.evaluation.assignment.leader import KAFKA_GO_RACKS, KAFKAJS_PROTOCOL
from streaming.evaluation.assignment.sampled_topics import is_certain
from streaming.events import CONSUMER
from streaming.group.members import TopicPartitions
from streaming.group.snapshot import ASSIGNING, REBALANCING, UNKNOWN, GroupSnapshot
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, KAFKA_STREAMS_PROTOCOL

ONE_OWNER_STRATEGIES = frozenset({*BUILT_IN, KAFKA_STREAMS_PROTOCOL, KAFKAJS_PROTOCOL, KAFKA_GO_RACKS})
"""Strategies of classic groups that never assign a partition to two members."""

_STATES_WITHOUT_OWNERS = frozenset({UNKNOWN, ASSIGNING, *REBALANCING})


class Unowned(msgspec.Struct, frozen=True):
    """An unowned partition (rules 3 to 5). The partition may have lost its owner before `since_ms`."""

    topic: str
    partition: int
    since_ms: int
    is_withheld: bool = False
    is_pending: bool = False


class RuleViolations(msgspec.Struct, frozen=True):
    """The partitions of one group that break a common rule, in sorted order.

    If `is_known` is False, `unowned` contains the last known unowned partitions, and the other fields can be incomplete
    (rule 2).
    """

    unowned: tuple[Unowned, ...] = ()
    owned_twice: TopicPartitions = ()
    not_subscribed: TopicPartitions = ()
    is_known: bool = True

    def unowned_partitions(self, lasting: Collection[Unowned] = ()) -> int | None:
        """Return the number of unowned partitions, or None if unknown.

        Pending partitions do not count. A withheld partition counts only if it is in `lasting`.
        """
        if not self.is_known:
            return None
        counted = frozenset(lasting)
        return sum(not one.is_pending and (not one.is_withheld or one in counted) for one in self.unowned)


class _Member(msgspec.Struct, frozen=True):
    """The subscription and the partitions of one member. None means unknown."""

    topics: Collection[str] | None
    held: TopicPartitions | None
    claimed: TopicPartitions = ()


def rule_violations(snapshot: GroupSnapshot, previous: RuleViolations | None) -> RuleViolations | None:
    """Check the common rules for a group. Return None if the rules do not apply to the group (rule 1).

    >>> from streaming.protocol.classic import Assignment, ClassicMember, GroupMetadata, Subscription
    >>> from streaming.events import Position, TopicMetadata
    >>> subscription, assignment = Subscription(3, ("t",), None, (), -1, None), Assignment(3, (("t", 0),), None)
    >>> metadata = GroupMetadata("g", "consumer", 1, "mine", "a", None,
    ...     (ClassicMember("a", None, "a", "/h", 1, 1, subscription, assignment),), 3)
    >>> group = GroupSnapshot("g", "classic", "Stable", Position(0, 1, 1_000), 1, metadata,
    ...     topics={"t": TopicMetadata(2, 5_000)})
    >>> rule_violations(group, None).unowned
    (Unowned(topic='t', partition=1, since_ms=5000, is_withheld=False, is_pending=False),)
    """
    result = with_unowned(snapshot, previous)
    if result is None or not _are_owners_known(snapshot):
        return result
    owners: dict[tuple[str, int], int] = defaultdict(int)
    not_subscribed = set()
    for member in _members(snapshot):
        for at in set(member.held or ()):
            owners[at] += 1
            if member.topics is not None and at[0] not in member.topics:
                not_subscribed.add(at)
    twice = (at for at, times in owners.items() if times > 1) if has_one_owner(snapshot) else ()
    return msgspec.structs.replace(
        result, owned_twice=tuple(sorted(twice)), not_subscribed=tuple(sorted(not_subscribed))
    )


def with_unowned(snapshot: GroupSnapshot, previous: RuleViolations | None) -> RuleViolations | None:
    """Check only rule 3.

    This is done at each record, because each record can set the start time of an unowned partition (rule 4).
    """
    is_unreadable = snapshot.state == UNKNOWN and snapshot.classic is None and snapshot.modern is None
    if previous is not None and is_unreadable:
        return RuleViolations(previous.unowned, is_known=False)
    if not _has_rules(snapshot) or snapshot.position is None:
        return None
    known = previous or RuleViolations()
    members = list(_members(snapshot)) if _are_owners_known(snapshot) else []
    if not members or any(member.held is None for member in members):
        return RuleViolations(known.unowned, is_known=False)
    claimed = set() if snapshot.protocol in EAGER_STRATEGIES else {at for member in members for at in member.claimed}
    return RuleViolations(tuple(_find_unowned(snapshot, members, known, claimed)))


def _has_rules(snapshot: GroupSnapshot) -> bool:
    if snapshot.is_over or not snapshot.member_count():
        return False
    if snapshot.classic is not None:
        return snapshot.classic.protocol_type == CONSUMER_PROTOCOL_TYPE
    return snapshot.group_type == CONSUMER


def _are_owners_known(snapshot: GroupSnapshot) -> bool:
    hides_names = snapshot.modern is not None and bool(snapshot.modern.unnamed_target_ids())
    return snapshot.state not in _STATES_WITHOUT_OWNERS and not hides_names


def _members(snapshot: GroupSnapshot) -> Iterator[_Member]:
    group = snapshot.modern
    if group is not None:
        has_targets = group.assignment_epoch is not None
        for member_id in group.members:
            target = group.targets.get(member_id, None if has_targets else ())
            named = ((group.topic_names[topic_id], number) for topic_id, numbers in target or () for number in numbers)
            yield _Member(group.topics_of(member_id), None if target is None else tuple(named))
        return
    for member in snapshot.classic.members if snapshot.classic else ():
        subscription, assignment = member.subscription, member.assignment
        topics = None if subscription is None else frozenset(subscription.topics)
        held = None if assignment is None else assignment.partitions
        yield _Member(topics, held, subscription.owned if subscription else ())


def _find_unowned(
    snapshot: GroupSnapshot, members: list[_Member], known: RuleViolations, claimed: set[tuple[str, int]]
) -> Iterator[Unowned]:
    """Yield the unowned partitions (rules 3 to 5).

    A record can contain invalid partition numbers. So partition numbers that the sample does not contain are ignored.
    """
    known_since_ms = {(one.topic, one.partition): one.since_ms for one in known.unowned}
    assigned: Mapping[str, set[int]] = defaultdict(set)
    for member in members:
        for topic, partition in member.held or ():
            assigned[topic].add(partition)
    written_at_ms = snapshot.position.timestamp_ms if snapshot.position else 0
    for topic in snapshot.subscribed_topics():
        sampled, held = snapshot.topics.get(topic), assigned.get(topic, set())
        count = sampled.partitions or 0 if sampled else 0
        if sampled is None or held.issuperset(range(count)):
            continue
        is_older = sampled.sampled_at_ms < written_at_ms
        did_exist = is_older or is_certain(snapshot, sampled)
        since_ms = written_at_ms if did_exist else max(written_at_ms, sampled.known_since_ms)
        proven = max(held, default=-1) + 1 if is_older else count  # partitions below this number certainly exist
        for partition in range(count):
            at = topic, partition
            if partition not in held:
                yield Unowned(
                    *at,
                    since_ms=min(known_since_ms.get(at, since_ms), since_ms),
                    is_withheld=at in claimed,
                    is_pending=partition >= proven,
                )


def has_one_owner(snapshot: GroupSnapshot) -> bool:
    """Return True if the strategy never assigns a partition to two members (rule 7)."""
    return snapshot.modern is not None or snapshot.protocol in ONE_OWNER_STRATEGIES
