"""Compute three values for each member: the partitions that it has, the partitions that it should have, and its lag.

1. A member *has* the partitions that it is allowed to consume now. In a KIP-848 group, the partitions of a member can
   differ from the member's target for some time.
2. A member *should have* the partitions that the group's own strategy assigns to it. The partitions that a member
   should have are known only for the verdicts `match` and `drift`. The verdict `drift` contains the member ids of the
   actual and the expected owner of each misplaced partition. If an actual or an expected owner has left the group, the
   expected partitions are unknown. For example, a static member that rejoins gets a new member id, but the verdict
   still contains the old id.
3. For each of its topics, a member has a partition count and an expected partition count. The partition count is 0 if
   the member has no partition of the topic. If no record shows the partition count, the count is None. A topic whose
   name is unknown can be any topic. So if the member has a partition of such a topic, the member's count for other
   topics is None instead of 0. The same rules apply to the expected partition count.
4. The lag of a member is the sum of the lags of its partitions (`GroupMember.held`). A member without partitions has
   the lag 0. If the lag of at least one partition is unknown, the lag of the member is None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from assignors import TopicPartition
from streaming.evaluation.assignment.drift import DRIFT, MATCH, StrategyDrift
from streaming.group.members import GroupMember, TopicPartitions


@dataclass(frozen=True, slots=True)
class TopicShare:
    """How many partitions of one topic a member has, and how many it should have. None means unknown."""

    member: GroupMember
    topic: str
    partitions: int | None
    expected: int | None


def topic_shares(
    members: Sequence[GroupMember], own: StrategyDrift | None, unnamed: frozenset[str] = frozenset()
) -> Iterator[TopicShare]:
    """Return one share for each member and each topic of the member.

    The topics of a member are its subscribed topics, and the topics of its actual and expected partitions. `own` is the
    verdict for the group's own strategy. Topics in `unnamed`, whose names are unknown, have no shares.

    >>> member = GroupMember("m", None, "app", "/h", None, ("t",), None, None, None, (("t", 0),), (("t", 0),), ())
    >>> [(share.topic, share.partitions, share.expected) for share in topic_shares([member], None)]
    [('t', 1, None)]
    """
    expected = _expected_by_topic(members, own)
    for member in members:
        has = None if member.assigned is None else Counter(topic for topic, _ in member.assigned)
        should = None if expected is None else expected[member.member_id]
        topics = {*(member.subscribed_topics or ()), *(has or ()), *(should or ())} - unnamed
        for topic in sorted(topics):
            yield TopicShare(
                member, topic, _count_of_topic(has, topic, unnamed), _count_of_topic(should, topic, unnamed)
            )


def _count_of_topic(partitions: Counter[str] | None, topic: str, unnamed: frozenset[str]) -> int | None:
    """Return a member's count for one topic, or None if the count is unknown (rule 3)."""
    if partitions is None or (topic not in partitions and not unnamed.isdisjoint(partitions)):
        return None
    return partitions[topic]


def expected_partitions(members: Sequence[GroupMember], own: StrategyDrift | None) -> Mapping[str, int] | None:
    """Return each member's expected partition count, by member id. Return None if a count is unknown (rule 2)."""
    expected = _expected_by_topic(members, own)
    return None if expected is None else {member_id: sum(topics.values()) for member_id, topics in expected.items()}


def _expected_by_topic(members: Iterable[GroupMember], own: StrategyDrift | None) -> Mapping[str, Counter[str]] | None:
    if own is None or own.verdict not in {MATCH, DRIFT}:
        return None
    expected = {member.member_id: Counter(topic for topic, _ in member.target or ()) for member in members}
    for misplaced in own.misplaced:
        should = () if misplaced.expected_member is None else (misplaced.expected_member,)
        if not expected.keys() >= {*misplaced.actual_members, *should}:
            return None
        for member_id in misplaced.actual_members:
            expected[member_id][misplaced.topic] -= 1
        for member_id in should:
            expected[member_id][misplaced.topic] += 1
    return expected


def lag_of(partitions: TopicPartitions | None, lag: Mapping[TopicPartition, int | None]) -> int | None:
    """Return the total lag of a member's partitions, in records (rule 4).

    >>> lag_of((("t", 0), ("t", 1)), {("t", 0): 7, ("t", 1): 1}), lag_of((("t", 0),), {}), lag_of((), {})
    (8, None, 0)
    """
    lags = [lag.get(partition) for partition in partitions or ()]
    known = [records for records in lags if records is not None]
    return sum(known) if partitions is not None and len(known) == len(lags) else None
