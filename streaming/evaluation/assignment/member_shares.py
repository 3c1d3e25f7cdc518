"""What each member of a group has of each topic, what it should have, and how much of that is unread.

1. A member *has* what it may consume now. Under KIP-848 that need not be its target yet.
2. It *should have* what the group's own strategy would give it. That is known where everything is in place, and where
   all that is not is listed (verdicts `match` and `drift`) under the ids that members still have: a static member that
   rejoins gets another one, and the verdict stands.
3. Of a topic that it subscribes to, and has or should have nothing of, it has or should have 0 partitions. What no
   record tells is None, never 0; nor is it 0 while it has something of a topic that is known by its id only.
4. Its lag is the sum over what it has: 0 if that is nothing, None if that of any partition is not known.
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
    """One member's partitions of one topic: how many it has and should have; None is unknown."""

    member: GroupMember
    topic: str
    partitions: int | None
    expected: int | None


def topic_shares(
    members: Sequence[GroupMember], own: StrategyDrift | None, unnamed: frozenset[str] = frozenset()
) -> Iterator[TopicShare]:
    """Every member with every topic that it subscribes to, has or should have something of.

    `own` is the verdict on the group's own strategy, `unnamed` are ids that stand where names of topics should: of
    those topics nothing is told.

    >>> member = GroupMember("m", None, "app", "/h", None, ("t",), None, None, None, (("t", 0),), (("t", 0),), ())
    >>> [(one.topic, one.partitions, one.expected) for one in topic_shares([member], None)]
    [('t', 1, None)]
    """
    expected = _expected(members, own)
    for member in members:
        has = None if member.assigned is None else Counter(topic for topic, _ in member.assigned)
        should = None if expected is None else expected[member.member_id]
        topics = {*(member.subscribed_topics or ()), *(has or ()), *(should or ())} - unnamed
        for topic in sorted(topics):
            yield TopicShare(member, topic, _reported(has, topic, unnamed), _reported(should, topic, unnamed))


def _reported(partitions: Counter[str] | None, topic: str, unnamed: frozenset[str]) -> int | None:
    """Rule 3."""
    if partitions is None or (topic not in partitions and not unnamed.isdisjoint(partitions)):
        return None
    return partitions[topic]


def expected_partitions(members: Sequence[GroupMember], own: StrategyDrift | None) -> Mapping[str, int] | None:
    """How many partitions of all topics each member should have, by member id; None where not known (rule 2)."""
    expected = _expected(members, own)
    return None if expected is None else {member_id: sum(topics.values()) for member_id, topics in expected.items()}


def _expected(members: Iterable[GroupMember], own: StrategyDrift | None) -> Mapping[str, Counter[str]] | None:
    """Partitions by member and topic (rule 2): what is decided, with what is misplaced put where it belongs."""
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
    """The lag of everything a member reads (rule 4).

    >>> lag_of((("t", 0), ("t", 1)), {("t", 0): 7, ("t", 1): 1}), lag_of((("t", 0),), {}), lag_of((), {})
    (8, None, 0)
    """
    known = [lag.get(partition) for partition in partitions or ()]
    found = [records for records in known if records is not None]
    return sum(found) if partitions is not None and len(found) == len(known) else None
