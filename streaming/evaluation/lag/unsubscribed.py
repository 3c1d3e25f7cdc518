"""Find partitions that a group no longer reads.

If a group stops reading a partition, Kafka by default keeps the committed offset for a week. The lag of the partition
would grow during this week. So if the group is Stable, the monitor excludes the partition from the lag of the group.
The first rule that applies determines whether a partition is included or excluded:

1. The members of the group are unknown: the partition is included. Either the group uses `assign`, or the monitor does
   not read the records of this group type.
2. The group is not Stable: the partition is included. For an Empty group, lag is especially important
   (kafka-lag-exporter issues 63, 290). During a rebalance, the subscriptions can change.
3. The subscription of a member is unreadable: the partition is included, because the subscription may contain the
   topic.
4. A member subscribes to the topic or has a partition of the topic: the partition is included.
5. No member reads the topic: the partition is excluded.

Burrow continues to report topics that a group no longer reads (issues 14, 504, 854). Users of klag must exclude such
topics by configuration (issue 92).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from streaming.group.members import GroupMember, TopicPartitions, members
from streaming.group.snapshot import STABLE, GroupSnapshot
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE


@dataclass(frozen=True, slots=True)
class ReadTopics:
    """The state of a group, and the topics that its members read. `topics` is None if unknown."""

    state: str
    topics: frozenset[str] | None


def read_topics(snapshot: GroupSnapshot) -> ReadTopics:
    """Return the topics that a group of consumers reads.

    The topics come from subscriptions, assignments, targets and pending revocations. If at least one topic is unknown,
    `topics` is None. For example, a subscription is unreadable, or only the id of a topic is known.
    """
    group = members(snapshot)
    if snapshot.protocol_type != CONSUMER_PROTOCOL_TYPE or _hides_topics(snapshot):
        return ReadTopics(snapshot.state, None)
    if any(member.subscribed_topics is None or member.assigned is None for member in group):
        return ReadTopics(snapshot.state, None)
    assigned = {topic for member in group for topic, _ in _partitions(member)}
    return ReadTopics(snapshot.state, frozenset({*snapshot.subscribed_topics(), *assigned}))


def _hides_topics(snapshot: GroupSnapshot) -> bool:
    group = snapshot.modern
    if group is None:
        return False
    expressions = {member.subscribed_regex for member in group.members.values() if member.subscribed_regex}
    return bool(group.unnamed_topic_ids()) or not expressions <= group.regexes.keys()


def _partitions(member: GroupMember) -> TopicPartitions:
    return (*(member.assigned or ()), *(member.target or ()), *(member.pending_revocation or ()))


def is_unsubscribed(commits: pa.Table, groups: Mapping[str, ReadTopics]) -> pa.Array:
    """Return True for each commit whose group no longer reads its topic.

    `commits` has the columns `group_id` and `topic`.

    >>> commits = pa.table({"group_id": ["g", "g", "empty"], "topic": ["orders", "old", "old"]})
    >>> orders = frozenset({"orders"})
    >>> is_unsubscribed(commits, {"g": ReadTopics("Stable", orders), "empty": ReadTopics("Empty", orders)}).to_pylist()
    [False, True, False]
    """
    group_ids = commits["group_id"].combine_chunks().dictionary_encode()
    topics = commits["topic"].combine_chunks().dictionary_encode()
    # A pair of group and topic has many rows. So each pair gets a number, and is evaluated only once.
    pairs = pc.add(
        pc.multiply(group_ids.indices.cast(pa.int64()), len(topics.dictionary)), topics.indices.cast(pa.int64())
    ).dictionary_encode()
    group_names, topic_names = group_ids.dictionary.to_pylist(), topics.dictionary.to_pylist()
    evaluated = [
        _is_left_out(groups.get(group_names[pair // len(topic_names)]), topic_names[pair % len(topic_names)])
        for pair in pairs.dictionary.to_pylist()
    ]
    return pa.array(evaluated, pa.bool_()).take(pairs.indices)


def _is_left_out(group: ReadTopics | None, topic: str) -> bool:
    return group is not None and group.state == STABLE and group.topics is not None and topic not in group.topics
